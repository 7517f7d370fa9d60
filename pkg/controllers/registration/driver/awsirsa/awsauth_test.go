// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
)

const (
	nodes = `# who runs the nodes
- rolearn: arn:aws:iam::123456789012:role/Nodes   # do not remove
  username: system:node:{{EC2PrivateDNSName}}
  groups: ["system:bootstrappers", 'system:nodes']
  note: kept
`
	ours = `- rolearn: ` + role1AR + `
  username: system:open-cluster-management:c
  groups:
    - system:open-cluster-management:c
    - system:open-cluster-management:managed-clusters
`
)

func newAWSAuth(mapRoles string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth", Labels: map[string]string{"a": "b"}},
		Data:       map[string]string{"mapRoles": mapRoles, "mapUsers": "- {not: [ours", "mapAccounts": "[]"},
	}
}

func awsAuthDriver(t *testing.T, f *hubAWS, objs ...runtime.Object) (*Driver, *fake.Clientset) {
	t.Helper()
	kube := fake.NewClientset(objs...)
	d, _ := newDriver(t, f, Options{Access: AWSAuth, Kube: kube})
	return d, kube
}

func awsAuthOf(t *testing.T, kube *fake.Clientset) *corev1.ConfigMap {
	t.Helper()
	got, err := kube.CoreV1().ConfigMaps("kube-system").Get(context.Background(), "aws-auth", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// inBubble runs a function in a bubble, whose time passes only when all goroutines wait: all edits that come at once are in one update.
func inBubble(t *testing.T, do func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		do(t)
		time.Sleep(2 * gatherTime) // until no edit is waiting
	})
}

func writes(kube *fake.Clientset) (n int) {
	for _, a := range kube.Actions() {
		if a.GetVerb() != "get" {
			n++
		}
	}
	kube.ClearActions()
	return n
}

func TestAWSAuth_IsWrittenOnce(t *testing.T) {
	f := newHubAWS(t)
	d, kube := awsAuthDriver(t, f, newAWSAuth(nodes))
	rec := f.plan(d, "c", arn1)
	mustGrant(t, d, "c", rec)
	mustEqual(t, "calls", f.taken(), []string{"GetRole", "CreateRole", "PutRolePolicy"})
	mustEqual(t, "writes", writes(kube), 1)
	want := newAWSAuth(nodes + ours)
	got := awsAuthOf(t, kube)
	mustEqual(t, "labels", got.Labels, want.Labels)
	mustEqual(t, "data", got.Data, want.Data)

	mustGrant(t, d, "c", rec)
	mustEqual(t, "calls of the next", f.taken(), reads[:4])
	mustEqual(t, "writes of the next", writes(kube), 0)

	mustRevoke(t, d, "c", rec)
	f.mustBeEmpty(t)
	mustEqual(t, "data", awsAuthOf(t, kube).Data, newAWSAuth(nodes).Data)
	writes(kube)
	mustRevoke(t, d, "c", rec)
	mustEqual(t, "writes of the next", writes(kube), 0)
}

// RBAC cannot limit create to a ConfigMap of one name, so the hub may not create any.
func TestAWSAuth_IsNotCreated(t *testing.T) {
	f := newHubAWS(t)
	d, kube := awsAuthDriver(t, f)
	rec := f.plan(d, "c", arn1)
	mustRevoke(t, d, "c", rec)
	err := d.Grant(t.Context(), "c", rec)
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "kubectl create configmap aws-auth --namespace kube-system") {
		t.Errorf("got %v", err)
	}
	mustEqual(t, "writes", writes(kube), 0)
	// As that command creates it.
	empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"}}
	if _, err := kube.CoreV1().ConfigMaps("kube-system").Create(t.Context(), empty, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mustGrant(t, d, "c", rec)
	mustEqual(t, "data", awsAuthOf(t, kube).Data, map[string]string{"mapRoles": ours})
}

func TestAWSAuth_MalformedIsNotChanged(t *testing.T) {
	f := newHubAWS(t)
	d, kube := awsAuthDriver(t, f, newAWSAuth("- rolearn: x\n bad: ["))
	rec := f.plan(d, "c", arn1)
	for _, err := range []error{d.Grant(t.Context(), "c", rec), d.Revoke(t.Context(), "c", rec)} {
		if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "the ConfigMap kube-system/aws-auth: mapRoles is malformed") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	}
	mustEqual(t, "writes", writes(kube), 0)
	// The role stays until the access is known to be gone.
	if _, there := f.role(); !there {
		t.Error("the role went before its access")
	}
}

func TestAWSAuth_RetriesConcurrentEdits(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "aws-auth", errors.New("changed"))
	for name, test := range map[string]struct {
		times int
		works bool
	}{
		"some":     {3, true},
		"too many": {100, false},
	} {
		f := newHubAWS(t)
		d, kube := awsAuthDriver(t, f, newAWSAuth(nodes))
		left := test.times
		kube.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			left--
			if left >= 0 {
				// The next try must see the edit of another client.
				other := newAWSAuth(nodes + fmt.Sprintf("- rolearn: other-%d\n", left))
				return true, nil, errors.Join(kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), other, "kube-system"), conflict)
			}
			return false, nil, nil
		})
		err := d.Grant(t.Context(), "c", f.plan(d, "c", arn1))
		if (err == nil) != test.works || errors.Is(err, driver.ErrTerminal) {
			t.Errorf("%s: got %v", name, err)
		}
		if test.works && !strings.Contains(awsAuthOf(t, kube).Data["mapRoles"], "- rolearn: other-0\n"+ours) {
			t.Errorf("%s: got %s", name, awsAuthOf(t, kube).Data["mapRoles"])
		}
	}
}

func TestAWSAuth_ReportsMissingPermission(t *testing.T) {
	f := newHubAWS(t)
	d, kube := awsAuthDriver(t, f, newAWSAuth(nodes))
	kube.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "aws-auth", errors.New("no"))
	})
	if err := d.Grant(t.Context(), "c", f.plan(d, "c", arn1)); !errors.Is(err, driver.ErrTerminal) || !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

func TestAWSAuth_BatchesConcurrentClusters(t *testing.T) {
	const clusters = 50
	f := newHubAWS(t)
	d, kube := awsAuthDriver(t, f, newAWSAuth(nodes))
	records := map[string]driver.Record{}
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		records[name] = f.plan(d, name, arn1+name)
	}
	atOnce := func(do func(context.Context, string, driver.Record) error) {
		t.Helper()
		inBubble(t, func(t *testing.T) {
			var wg sync.WaitGroup
			for name, rec := range records {
				wg.Go(func() {
					if err := do(t.Context(), name, rec); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
	atOnce(d.Grant)
	mustEqual(t, "entries", strings.Count(awsAuthOf(t, kube).Data["mapRoles"], "rolearn"), 1+clusters)
	mustEqual(t, "updates to let them in", writes(kube), 1)
	atOnce(d.Revoke)
	mustEqual(t, "data", awsAuthOf(t, kube).Data, newAWSAuth(nodes).Data)
	mustEqual(t, "updates to keep them out", writes(kube), 1)
	f.mustBeEmpty(t)
}

// An entry that makes the ConfigMap too large must not prevent the removal of another role.
func TestAWSAuth_OversizedEntryFailsAlone(t *testing.T) {
	f := newHubAWS(t)
	d, kube := awsAuthDriver(t, f, newAWSAuth(nodes))
	out := f.plan(d, "c", arn1)
	inBubble(t, func(t *testing.T) { mustGrant(t, d, "c", out) })
	most := len(awsAuthOf(t, kube).Data["mapRoles"])
	kube.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		written := a.(clienttesting.UpdateAction).GetObject().(*corev1.ConfigMap)
		if len(written.Data["mapRoles"]) > most {
			return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "aws-auth", nil)
		}
		return false, nil, nil
	})
	inBubble(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 3 {
			name := fmt.Sprintf("a%d", i)
			rec := f.plan(d, name, arn1+name)
			wg.Go(func() {
				if err := d.Grant(t.Context(), name, rec); err != nil && !errors.Is(err, driver.ErrTerminal) {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if err := d.Revoke(t.Context(), "c", out); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
	})
	if got := awsAuthOf(t, kube).Data["mapRoles"]; strings.Contains(got, role1) || strings.Count(got, "rolearn") > 2 {
		t.Errorf("got %s", got)
	}
}

// An entry that others refer to cannot be removed, which must not prevent the removal of other entries.
func TestAWSAuth_InvalidEditFailsAlone(t *testing.T) {
	f := newHubAWS(t)
	bound := strings.Replace(ours, "groups:\n", "groups: &g\n", 1)
	d, kube := awsAuthDriver(t, f, newAWSAuth(bound+"- rolearn: b\n  groups: *g\n"))
	rec, other := f.plan(d, "c", arn1), f.plan(d, "a", arn1+"a")
	inBubble(t, func(t *testing.T) {
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := d.Revoke(t.Context(), "c", rec); !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "would break it") {
				t.Errorf("got %v", err)
			}
		})
		wg.Go(func() {
			if err := d.Grant(t.Context(), "a", other); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
	})
	if got := awsAuthOf(t, kube).Data["mapRoles"]; !strings.HasPrefix(got, bound) || !strings.Contains(got, "username: system:open-cluster-management:a\n") {
		t.Errorf("got %s", got)
	}
}

// An edit whose context ends does not block others, and is not written after a later edit.
func TestAWSAuth_CancelledEdit(t *testing.T) {
	f := newHubAWS(t)
	d, kube := awsAuthDriver(t, f, newAWSAuth(nodes))
	rec := f.plan(d, "c", arn1)
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		granted := make(chan error)
		go func() { granted <- d.Grant(ctx, "c", rec) }()
		synctest.Wait() // until its edit waits for others
		cancel()
		if err := <-granted; !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrTerminal) {
			t.Errorf("got %v", err)
		}
		mustRevoke(t, d, "c", rec)
	})
	mustEqual(t, "data", awsAuthOf(t, kube).Data, newAWSAuth(nodes).Data)
	f.mustBeEmpty(t)
}

func TestAWSAuth_TwoClustersWithOneARN(t *testing.T) {
	f := newHubAWS(t)
	d, kube := awsAuthDriver(t, f, newAWSAuth(nodes))
	a, b := f.plan(d, "c", arn1), f.plan(d, "b", arn1)
	mustGrant(t, d, "c", a)
	if err := d.Grant(t.Context(), "b", b); !errors.Is(err, driver.ErrTerminal) {
		t.Errorf("got %v", err)
	}
	mustRevoke(t, d, "b", b)
	// The entry is found whatever its user name was changed to.
	before := awsAuthOf(t, kube)
	before.Data["mapRoles"] = strings.ReplaceAll(before.Data["mapRoles"], "username: system:open-cluster-management:c", "username: x")
	if _, err := kube.CoreV1().ConfigMaps("kube-system").Update(t.Context(), before, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	mustRevoke(t, d, "b", b)
	mustEqual(t, "data", awsAuthOf(t, kube).Data, before.Data)
	mustRevoke(t, d, "c", a)
	if strings.Contains(awsAuthOf(t, kube).Data["mapRoles"], role1) {
		t.Error("the access is left")
	}
	f.mustBeEmpty(t)
}
