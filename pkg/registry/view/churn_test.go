// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// follower does what an informer does: it lists, watches, is cut off, and continues at any replica from the last version that it observed.
type follower struct {
	h        *hub
	replicas []registry
	client   client
	random   *rand.Rand
	options  []option
	// strict means that every event must correspond to a change of the members. Users who gain and lose sets may get objects again that they have.
	strict bool

	at       string
	store    map[string]generic.Object
	problems []string
	lists    int
}

func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		f.client.r = f.replicas[f.random.IntN(len(f.replicas))]
		if f.at == "" && !f.list(ctx) {
			continue
		}
		f.watch(ctx)
	}
}

func (f *follower) list(ctx context.Context) bool {
	list, err := f.client.r.List(as(ctx, f.client.who), optionsOf(f.options))
	if err != nil {
		return false
	}
	f.lists++
	f.at, f.store = versionOf(list), byName(list)
	return true
}

// watch receives events until it is cut off after a random number of them.
func (f *follower) watch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+f.random.IntN(200))*time.Millisecond)
	defer cancel()
	w, err := f.client.r.Watch(as(ctx, f.client.who), optionsOf(append(slices.Clone(f.options), version(f.at),
		bookmarks)))
	if err != nil {
		if apierrors.IsResourceExpired(err) {
			f.at = ""
		}
		return
	}
	defer w.Stop()
	for range f.random.IntN(30) {
		event, open := <-w.ResultChan()
		if !open {
			return
		}
		if event.Type == watch.Error {
			f.at = ""
			return
		}
		f.apply(event)
	}
}

func (f *follower) apply(event watch.Event) {
	stored := event.Object
	if shared, ok := stored.(runtime.CacheableObject); ok {
		stored = shared.GetObject()
	}
	object := stored.(generic.Object)
	f.at = object.GetResourceVersion()
	_, known := f.store[object.GetName()]
	if f.strict && event.Type != watch.Bookmark && known == (event.Type == watch.Added) {
		f.problems = append(f.problems, fmt.Sprintf("%s %s at %s, known: %v", event.Type, object.GetName(), f.at, known))
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		f.store[object.GetName()] = object
	case watch.Deleted:
		delete(f.store, object.GetName())
	}
}

// same reports whether the follower has the content of a list.
func (f *follower) same(list runtime.Object) (bool, string) {
	want := byName(list)
	if got := slices.Sorted(maps.Keys(f.store)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		return false, fmt.Sprintf("holds %v\nwant %v", got, slices.Sorted(maps.Keys(want)))
	}
	for name, w := range want {
		a, b := w.DeepCopyObject().(generic.Object), f.store[name].DeepCopyObject().(generic.Object)
		a.SetResourceVersion("")
		b.SetResourceVersion("")
		if !equality.Semantic.DeepEqual(a, b) {
			return false, fmt.Sprintf("holds %+v\nwant %+v", b, a)
		}
	}
	return true, ""
}

func versionOf(list runtime.Object) string {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		panic(err)
	}
	return accessor.GetResourceVersion()
}

func byName(list runtime.Object) map[string]generic.Object {
	objects := map[string]generic.Object{}
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(generic.Object)
		objects[object.GetName()] = object
		return nil
	})
	return objects
}

// TestWatch_ReconnectMissesNothing: however clusters, sets and rules change, and whenever and wherever a client reconnects, it
// finally has the content of a list; and a client that sees everything got each change once.
func TestWatch_ReconnectMissesNothing(t *testing.T) {
	h := newHub(t)
	sets := []string{"a", "a-b", "b", "c"}
	for i, set := range sets {
		h.set(set, labelled(fmt.Sprintf("k%d=v0", i%2)))
	}
	h.front.allow("ann", "a")
	h.front.allow("bob", "b", "c")
	firstMembers, firstSets, _ := h.wholeReplica()
	secondMembers, secondSets, _ := h.wholeReplica()
	h.awaitVisibility(firstMembers, secondMembers)
	for _, sets := range []registry{firstSets, secondSets} {
		h.client(sets, admin).list() // Its history begins with its first reader.
	}
	h.front.allowClusters("cid", []string{"c1", "c2"}, []string{"a", "b"})
	h.front.allowClusters("dan", []string{"c1", "c9"}, []string{"a", "a-b", "c"})
	h.front.allowClusters("eve", nil, []string{"*"})
	h.front.allowClusters("fay", []string{"*"}, nil)
	clusters := []registry{h.clusterReplica(), h.clusterReplica()}

	var followers []*follower
	add := func(replicas []registry, who user.Info, options ...option) {
		n := uint64(len(followers))
		// The rights of these do not change.
		strict := slices.Contains([]string{admin.Name, "dan", "eve", "fay"}, who.GetName())
		followers = append(followers, &follower{h: h, replicas: replicas, client: h.client(nil, who), strict: strict,
			options: options, random: rand.New(rand.NewPCG(1, n))})
	}
	for _, who := range []user.Info{admin, someone("cid"), someone("dan"), someone("eve"), someone("fay")} {
		add(clusters, who)
	}
	for _, who := range []user.Info{someone("cid"), someone("dan")} {
		add(clusters, who, byLabels("k0=v1"))
		add(clusters, who, byFields("metadata.name=c1"))
	}
	for _, who := range []user.Info{admin, someone("ann"), someone("bob")} {
		members, sets := []registry{firstMembers, secondMembers}, []registry{firstSets, secondSets}
		add(members, who)
		add(members, who, byLabels("k0=v1"))
		add(members, who, byFields("spec.clusterSet=b"))
		add(members, who, byFields("spec.cluster=c3"))
		add(sets, who)
		add(sets, who, byFields("metadata.name=b"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{}, len(followers))
	for _, f := range followers {
		go func() {
			f.run(ctx)
			done <- struct{}{}
		}()
	}

	churn(h, sets, 300)
	// Each continues from its version until nothing changes any more.
	cancel()
	for range followers {
		<-done
	}
	for _, f := range followers {
		h.eventually("a follower holds what a list shows", func() (bool, string) {
			list, err := f.replicas[0].List(as(t.Context(), f.client.who), optionsOf(f.options))
			if err != nil {
				return false, err.Error()
			}
			same, state := f.same(list)
			if same {
				return true, ""
			}
			f.client.r = f.replicas[f.random.IntN(2)]
			if f.at != "" || f.list(t.Context()) {
				f.watch(t.Context())
			}
			return false, fmt.Sprintf("%s %+v: %s", f.client.who.GetName(), optionsOf(f.options), state)
		})
		for _, problem := range f.problems {
			t.Errorf("%s: %s", f.client.who.GetName(), problem)
		}
		if f.client.who == user.Info(admin) && f.lists > 1 {
			t.Errorf("a follower of all had to list %d times", f.lists)
		}
	}
}

// churn makes random changes of clusters, sets and rules.
func churn(h *hub, sets []string, steps int) {
	h.t.Helper()
	random := rand.New(rand.NewPCG(2, 3))
	clusters := map[string]bool{}
	value := func() string { return fmt.Sprintf("v%d", random.IntN(2)) }
	labels := func() map[string]string {
		return map[string]string{"k0": value(), "k1": value()}
	}
	for range steps {
		name := fmt.Sprintf("c%d", random.IntN(8))
		switch n := random.IntN(20); {
		case !clusters[name]:
			h.cluster(name, labels())
			clusters[name] = true
		case n < 2:
			h.deleteCluster(name)
			delete(clusters, name)
		case n < 9:
			h.relabel(name, labels())
		case n < 12:
			h.changeCluster(name, func(c *cluster.ManagedCluster) {
				c.Status.Conditions = []metav1.Condition{{Type: cluster.ManagedClusterConditionAvailable,
					Status: []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[random.IntN(2)]}}
			})
		case n < 16:
			selector := map[string]string{fmt.Sprintf("k%d", random.IntN(2)): value()}
			if random.IntN(4) == 0 {
				selector = []map[string]string{nil, {}}[random.IntN(2)]
			}
			h.changeSet(sets[random.IntN(len(sets))], selector)
		case n < 18:
			set := sets[random.IntN(len(sets))]
			h.deleteSet(set)
			h.set(set, labels())
		default:
			granted := []string{sets[random.IntN(len(sets))], sets[random.IntN(len(sets))]}
			if random.IntN(4) == 0 {
				granted = []string{"*"}
			}
			if random.IntN(2) == 0 {
				h.front.allowClusters("cid", []string{name, fmt.Sprintf("c%d", random.IntN(8))}, granted)
				break
			}
			h.front.allow([]string{"ann", "bob"}[random.IntN(2)], granted...)
		}
	}
}
