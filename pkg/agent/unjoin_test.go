// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// leaving returns a world with a cluster that has joined and is accepted, and whose agent has ended.
func leaving(t *testing.T) (*world, *unjoiner, *bytes.Buffer) {
	t.Helper()
	w := newWorld(t)
	_, stop := w.joined()
	stop()
	c := w.Cluster()
	c.Spec.HubAcceptsClient = true
	w.acceptedCondition(c, metav1.ConditionTrue, registration.ReasonAccepted)
	out := &bytes.Buffer{}
	return w, &unjoiner{store: w.Store(), own: w.Own(), drivers: drivers(), connect: w.Connect,
		random: func() float64 { return 0 }, out: out}, out
}

func (w *world) acceptedCondition(c *clusterv1.ManagedCluster, status metav1.ConditionStatus, reason string) {
	w.T.Helper()
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: registration.ConditionHubAccepted, Status: status, Reason: reason})
	if err := w.HubClusters.Tracker().Update(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), c, ""); err != nil {
		w.T.Fatal(err)
	}
}

func (w *world) secretIsThere() bool {
	_, err := w.Management.CoreV1().Secrets(agenttest.Namespace).Get(w.T.Context(), registration.HubKubeconfigSecret, metav1.GetOptions{})
	return err == nil
}

func within(t *testing.T, u *unjoiner, timeout time.Duration) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- u.run(ctx) }()
	return ended
}

func TestUnjoin_RetainsIdentityUntilRightsAreRevoked(t *testing.T) {
	for name, clean := range map[string]func(*world){
		"by the condition": func(w *world) {
			w.acceptedCondition(w.Cluster(), metav1.ConditionFalse, registration.ReasonDenied)
		},
		"by a refusal": func(w *world) { w.Set(func() { w.Granted = false }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, u, out := leaving(t)
				ended := within(t, u, time.Hour)
				agenttest.Pass(time.Minute)
				if w.Cluster().Spec.HubAcceptsClient {
					t.Error("the hub was not told")
				}
				if !w.secretIsThere() {
					t.Fatal("the secret was removed too early")
				}
				w.acceptedCondition(w.Cluster(), metav1.ConditionFalse, registration.ReasonError)
				agenttest.Pass(time.Minute)
				if !w.secretIsThere() {
					t.Fatal("the secret was removed although the hub has not cleaned up")
				}
				clean(w)
				agenttest.Pass(time.Minute)
				if err := <-ended; err != nil || w.secretIsThere() {
					t.Errorf("got %v, the secret is there: %t", err, w.secretIsThere())
				}
				if n := w.Asked("update managedclusters"); n != 1 {
					t.Errorf("the hub was told %d times", n)
				}
				for _, line := range []string{"Notifying the hub", "Waiting until", "Deleting secret", "has left the hub"} {
					if !strings.Contains(out.String(), line) {
						t.Errorf("%q is not in %q", line, out)
					}
				}
			})
		})
	}
}

func TestUnjoin_TimesOutAndRetainsIdentity(t *testing.T) {
	for name, refuse := range map[string]func(user, verb, resource string) error{
		"the hub does nothing": nil,
		"the hub is away": func(string, string, string) error {
			return errors.New("connection refused")
		},
		"the agent may not leave": func(_, verb, resource string) error {
			if verb == "update" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "c1", errors.New("no leave"))
			}
			return nil
		},
		"the hub does not know the agent": func(string, string, string) error { return apierrors.NewUnauthorized("x") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, u, _ := leaving(t)
				w.Set(func() { w.Refuse = refuse })
				began := time.Now()
				err := <-within(t, u, time.Minute)
				if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--timeout") {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took != time.Minute || !w.secretIsThere() {
					t.Errorf("after %s the secret is there: %t", took, w.secretIsThere())
				}
			})
		})
	}
}

// impatient is a cluster whose secrets cannot be deleted after the context has ended, unlike those of a fake.
type impatient struct{ kubernetes.Interface }

func (i impatient) CoreV1() corev1client.CoreV1Interface { return impatientCore{i.Interface.CoreV1()} }

type impatientCore struct{ corev1client.CoreV1Interface }

func (i impatientCore) Secrets(namespace string) corev1client.SecretInterface {
	return impatientSecrets{i.CoreV1Interface.Secrets(agenttest.Namespace)}
}

type impatientSecrets struct{ corev1client.SecretInterface }

func (i impatientSecrets) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return i.SecretInterface.Delete(ctx, name, options)
}

func TestUnjoin_ForceDeletesWithUnresponsiveHub(t *testing.T) {
	for name, c := range map[string]struct {
		cancelled, left bool
	}{"until the time is up": {false, false}, "until somebody gives up": {true, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, u, out := leaving(t)
				u.store.Client, u.force = impatient{w.Spoke}, true
				w.Set(func() { w.Refuse = func(string, string, string) error { return errors.New("connection refused") } })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if c.cancelled {
					time.AfterFunc(30*time.Second, cancel)
				}
				if err := u.run(ctx); (err != nil) != c.left || w.secretIsThere() != c.left {
					t.Errorf("got %v, the secret is there: %t; it said %s", err, w.secretIsThere(), out)
				}
			})
		})
	}
}

func TestUnjoin_ForceDeletesSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, u, out := leaving(t)
		agenttest.Pass(11 * time.Hour) // the certificate has expired
		if err := u.run(t.Context()); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("without force: %v", err)
		}
		u.force = true
		if err := u.run(t.Context()); err != nil || w.secretIsThere() || !strings.Contains(out.String(), "admin") {
			t.Errorf("got %v, %q, the secret is there: %t", err, out, w.secretIsThere())
		}
	})
}

func TestUnjoin_IsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, u, out := leaving(t)
		c := w.Cluster()
		c.Spec.HubAcceptsClient = false
		w.acceptedCondition(c, metav1.ConditionFalse, registration.ReasonDenied)
		for range 2 {
			if err := u.run(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if !strings.Contains(out.String(), "not registered with a hub") || w.Asked("update managedclusters") > 0 {
			t.Errorf("it said %q", out)
		}
	})
}

func TestUnjoin_NeverAcceptedCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, u, _ := leaving(t)
		if _, err := u.store.Update(t.Context(), func(s *state.State) { s.Kubeconfig, s.Cert, s.Key = nil, nil, nil }); err != nil {
			t.Fatal(err)
		}
		asked := w.Asked("")
		if err := u.run(t.Context()); err != nil || w.secretIsThere() || w.Asked("") != asked {
			t.Errorf("got %v, the secret is there: %t", err, w.secretIsThere())
		}
	})
}

func TestUnjoin_OrphansNamespaces(t *testing.T) {
	for name, refuse := range map[string]error{"": nil, "without the right": errors.New("no such right")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, u, out := leaving(t)
				w.AddNamespace("a", map[string]string{agenttest.HubLabel: "true", "team": "payments"})
				w.AddNamespace("b", map[string]string{"clusterset.open-cluster-management.io/another": "true"})
				w.RefuseNamespaces(func(string, string) error { return refuse })
				w.Set(func() { w.Granted = false })
				if err := u.run(t.Context()); err != nil || w.secretIsThere() {
					t.Errorf("got %v, the secret is there: %t", err, w.secretIsThere())
				}
				if refuse != nil {
					if !strings.Contains(out.String(), agenttest.HubLabel) || !strings.Contains(out.String(), refuse.Error()) {
						t.Errorf("it said %q", out)
					}
					return
				}
				w.ExpectLabel("a", "false")
				if got := w.Labels(); got["a"]["team"] != "payments" || got["b"]["clusterset.open-cluster-management.io/another"] != "true" {
					t.Errorf("the namespaces have the labels %v", got)
				}
			})
		})
	}
}

// Before the hub was notified, a role that AWS rejects may also mean that this process is not the agent.
func TestUnjoin_RejectedRoleCountsOnlyAfterNotification(t *testing.T) {
	refusal := &url.Error{Op: "Get", URL: "x", Err: &identity.RefusedError{Message: "AccessDenied"}}
	if isRevoked(refusal, false) || !isRevoked(refusal, true) {
		t.Errorf("before: %t, after: %t", isRevoked(refusal, false), isRevoked(refusal, true))
	}
	if broken := errors.New("getting credentials"); isRevoked(broken, true) {
		t.Error("no credentials are not taken for no rights")
	}
}
