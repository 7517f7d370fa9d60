// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingclusters_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	testclock "k8s.io/utils/clock/testing"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/pendingclusters"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// cache is the server's cache. It ignores selectors, which are the store's task.
type cache struct {
	rest.Lister
	lock  sync.Mutex
	items []cluster.ManagedCluster
	// accepted are the clusters that a selector does not match.
	accepted []cluster.ManagedCluster
	err      error
	lists    int
}

func (c *cache) List(_ context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.lists++
	if o.ResourceVersion != "0" || o.FieldSelector.String() != "spec.hubAcceptsClient=false" {
		return nil, fmt.Errorf("asked for %+v", o)
	}
	return &cluster.ManagedClusterList{Items: append([]cluster.ManagedCluster(nil), c.items...)}, c.err
}

func (c *cache) Get(_ context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if o.ResourceVersion != "0" {
		return nil, fmt.Errorf("asked for %+v", o)
	}
	if c.err != nil {
		return nil, c.err
	}
	for _, item := range append(c.items, c.accepted...) {
		if item.Name == name {
			return &item, nil
		}
	}
	return nil, apierrors.NewNotFound(cluster.Resource("managedclusters"), name)
}

func (c *cache) has(name string, conditions ...metav1.Condition) {
	item := at.Cluster(name)
	item.Status.Conditions = conditions
	c.items = append(c.items, *item)
}

type fixture struct {
	*pendingclusters.Plugin
	cache *cache
	clock *testclock.FakePassiveClock
	a     *at.Authorizer
}

func newFixture(most int) *fixture {
	f := &fixture{cache: &cache{}, clock: testclock.NewFakePassiveClock(time.Unix(1000, 0)), a: &at.Authorizer{}}
	f.Plugin = pendingclusters.New(f.clock)
	f.SetAuthorizer(f.a)
	f.Clusters, f.Most = f.cache, most
	return f
}

func (f *fixture) create(t *testing.T, name string, change ...func(*at.Request)) error {
	t.Helper()
	r := at.Request{Object: at.Cluster(name)}
	for _, c := range change {
		c(&r)
	}
	_, err := at.Validate(t, f.Plugin, r.Attributes())
	return err
}

func (f *fixture) pass(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func TestAdmission_LimitsPendingClusters(t *testing.T) {
	f := newFixture(3)
	f.cache.has("p1")
	f.cache.has("denied", metav1.Condition{Type: registration.ConditionHubAccepted, Status: "False"})
	for _, name := range []string{"p2", "p3"} {
		if err := f.create(t, name); err != nil {
			t.Fatal(err)
		}
	}
	err := f.create(t, "p4")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "3 clusters wait to be accepted") || !strings.Contains(err.Error(), "--max-pending-clusters") {
		t.Fatalf("got %v", err)
	}
	// A written cluster is counted once.
	f.cache.has("p2")
	f.cache.has("p3")
	f.pass(time.Second)
	if err := f.create(t, "p4"); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v", err)
	}
	// An accepted cluster is no longer selected.
	f.cache.items = f.cache.items[1:]
	f.pass(time.Second)
	if err := f.create(t, "p4"); err != nil {
		t.Fatal(err)
	}
}

// TestAdmission_ExistingClustersDoNotCount verifies that creating an existing cluster takes no room, so that a flood of such requests does not keep other
// clusters from joining.
func TestAdmission_ExistingClustersDoNotCount(t *testing.T) {
	f := newFixture(2)
	f.cache.has("p1")
	for i := range 9 {
		f.cache.accepted = append(f.cache.accepted, *at.Cluster(fmt.Sprint("c", i)))
	}
	f.cache.has("denied", metav1.Condition{Type: registration.ConditionHubAccepted, Status: "False"})
	for _, name := range []string{"c0", "c1", "c2", "c3", "denied", "p1"} {
		if err := f.create(t, name); err != nil {
			t.Errorf("%s, which storage refuses: %v", name, err)
		}
	}
	if err := f.create(t, "p2"); err != nil {
		t.Errorf("there is room for one: %v", err)
	}
	if err := f.create(t, "p3"); !apierrors.IsForbidden(err) {
		t.Errorf("there is room for no more: got %v", err)
	}
}

func TestAdmission_AcceptersAreExempt(t *testing.T) {
	for _, group := range []string{cluster.GroupName, permission.RegisterGroup} {
		f := newFixture(1)
		f.cache.has("p1")
		f.a.Grants = []rbac.Permission{at.Rule("update", group, "managedclusters/accept", "p2")}
		if err := f.create(t, "p2"); err != nil {
			t.Errorf("%s: %v", group, err)
		}
		if err := f.create(t, "p3"); !apierrors.IsForbidden(err) {
			t.Errorf("%s: another cluster: got %v", group, err)
		}
	}
	f := newFixture(1)
	f.cache.has("p1")
	f.a.Err = errors.New("connection refused")
	if err := f.create(t, "p2"); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if err := f.create(t, "p2", func(r *at.Request) { r.Object.(*cluster.ManagedCluster).Spec.HubAcceptsClient = true }); err != nil {
		t.Errorf("an accepted one, which is another plugin's: %v", err)
	}
}

func TestAdmission_ConcurrentCreates(t *testing.T) {
	f := newFixture(10)
	n := at.AdmittedConcurrently(100, func(i int) error {
		return f.Validate(t.Context(), at.Request{Object: at.Cluster(fmt.Sprintf("c%d", i))}.Attributes(), nil)
	})
	if n != 10 || f.cache.lists != 1 {
		t.Errorf("%d were admitted, the clusters were listed %d times", n, f.cache.lists)
	}
}

func TestAdmission_ReleasesFailedCreates(t *testing.T) {
	f := newFixture(1)
	for range 3 {
		if err := f.create(t, "p1"); err != nil {
			t.Fatalf("the same again: %v", err)
		}
	}
	if err := f.create(t, "p2"); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v", err)
	}
	f.pass(11 * time.Second)
	for range 3 {
		if err := f.create(t, "p2", func(r *at.Request) { r.DryRun = true }); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.create(t, "p3"); err != nil {
		t.Fatalf("dry runs take room: %v", err)
	}
}

func TestAdmission_RejectsWithoutCache(t *testing.T) {
	f := newFixture(10)
	f.cache.err = errors.New("not ready")
	if err := f.create(t, "p1"); !apierrors.IsInternalError(err) {
		t.Errorf("got %v", err)
	}
	f.Clusters = nil
	if err := f.create(t, "p1"); !apierrors.IsInternalError(err) {
		t.Errorf("got %v", err)
	}
	f.Most = 0
	if err := f.create(t, "p1"); err != nil {
		t.Errorf("without a bound: %v", err)
	}
}
