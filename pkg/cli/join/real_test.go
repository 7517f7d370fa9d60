// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/test/await"
)

func TestMain(m *testing.M) { os.Exit(operatortest.Shared.Main(m)) }

// TestDetached_OnRealClusters verifies what fake servers cannot show: that the management cluster accepts the objects, that a second run changes none
// of them, and which permissions are missing. The test plays hub-operator, which has its own tests.
func TestDetached_OnRealClusters(t *testing.T) {
	management, managed := operatortest.Shared.Config(t, "management"), operatortest.Shared.Config(t, "managed")
	file := func(config *rest.Config) string {
		data, err := operatortest.Kubeconfig(config)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	c, err := client.New(management, client.Options{Scheme: kit.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	hub := clitest.NewServer(t)
	hub.Allow(true)
	at, source := file(management), file(managed)
	args := []string{"join", "--mode", "detached", "--managed-kubeconfig", source, "--works", "admin", "--works-namespaces", "default", "--cluster-labels", "region=eu",
		"--cluster-server-url", "https://c1.example.com", "--hub-token", clitest.BootstrapToken, "--hub-apiserver", hub.URL,
		"--ca-data", base64.StdEncoding.EncodeToString(hub.CA()), "--cluster-name", "c1", "--wait", "--timeout", await.Limit.String()}
	// This does not use runWith, whose time limit is for fake servers.
	do := func(kubeconfig string, args ...string) (stderr string, err error) {
		_, stderr, err = clitest.RunFor(t.Context(), t, await.Limit, &kit.Options{PollInterval: 100 * time.Millisecond}, kubeconfig, args...)
		return stderr, err
	}

	// A user without permissions gets an error before anything is created.
	_, err = do(file(nobody(t, c, management)), args...)
	if err == nil {
		t.Fatal("a user without rights has a cluster join")
	}
	clitest.Says(t, command.ErrorLine(err), "cannot get resource \"namespaces\"")

	operate(t, c)
	if stderr, err := do(at, args...); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	before := versions(t, c)
	if stderr, err := do(at, args...); err != nil || strings.Contains(stderr, " created\n") {
		t.Fatalf("again: %v: %s", err, stderr)
	}
	if after := versions(t, c); !slices.Equal(before, after) {
		t.Errorf("a second run changes\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	_, err = do(at, clitest.With(args, "--mode", "hosted", "--klusterlet", "c1")...)
	if err == nil {
		t.Error("the mode is changed")
	}
	_, err = do(at, clitest.With(args, "--managed-kubeconfig", at)...)
	if err == nil || !strings.Contains(err.Error(), "are the same cluster") {
		t.Errorf("the management cluster as the managed one: %v", err)
	}
	if stderr, err := do(at, "unjoin", "--mode", "detached", "--cluster-name", "c1", "--purge-operator"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	// hub-operator deletes the namespace of the agent and the secrets in it.
	left := slices.DeleteFunc(versions(t, c), func(id string) bool { return strings.HasPrefix(id, "Secret "+clitest.DetachedSpace) })
	if len(left) > 0 {
		t.Errorf("it has left %q", left)
	}
}

// nobody returns a configuration for a ServiceAccount without permissions.
func nobody(t *testing.T, c client.Client, config *rest.Config) *rest.Config {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nobody"}}
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	other := rest.AnonymousClientConfig(config)
	other.BearerToken = request.Status.Token
	return other
}

// operate does what join waits for until the test ends: it creates the namespace, and sets the conditions of a working agent.
func operate(t *testing.T, c client.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			k := &operatorv1.Klusterlet{}
			err := c.Get(ctx, client.ObjectKey{Name: "c1"}, k)
			if err == nil {
				err = c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.AgentNamespace()}})
			}
			if err == nil || apierrors.IsAlreadyExists(err) {
				k.Status.ObservedGeneration = k.Generation
				meta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{Type: operatorv1.ConditionKlusterletAvailable, Status: metav1.ConditionTrue,
					Reason: operatorv1.ReasonKlusterletAvailable, ObservedGeneration: k.Generation})
				err = c.Status().Update(ctx, k)
			}
			if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
				t.Errorf("playing hub-operator: %v", err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
}

// versions returns the objects that the command has created, with their resource versions. It omits the versions of objects that other programs write
// periodically.
func versions(t *testing.T, c client.Client) (all []string) {
	t.Helper()
	objects, err := deploy.Operator{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := management.ToUnstructured(management.NewKubeconfigSecret(clitest.DetachedSpace, operatorv1.ExternalManagedKubeconfig, nil), management.NewKubeconfigSecret(clitest.DetachedSpace, operatorv1.BootstrapHubKubeconfig, nil))
	if err != nil {
		t.Fatal(err)
	}
	objects = append(objects, secrets...)
	for _, o := range objects {
		have, err := (&remote.Applier{Client: c}).Get(t.Context(), o)
		if meta.IsNoMatchError(err) || err == nil && have == nil || err == nil && !have.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.GetNamespace() == clitest.DetachedSpace && !kit.Owner.Owns(have) {
			t.Errorf("%s is not ours", remote.IDOf(o))
		}
		version := have.GetResourceVersion()
		if o.GetKind() == "Deployment" || o.GetKind() == "PodDisruptionBudget" {
			version = "" // controllers update its status
		}
		all = append(all, remote.IDOf(o).String()+" "+version)
	}
	return all
}
