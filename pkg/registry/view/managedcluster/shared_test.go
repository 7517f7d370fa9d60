// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// answers is a cache that returns the given results in order.
type answers struct {
	next  []any
	asked []string
	// unready is the number of times that it reports not to be ready.
	unready int
}

// ReadinessCheck implements Cached.
func (a *answers) ReadinessCheck() error {
	if a.unready > 0 {
		a.unready--
		return errors.New("not ready")
	}
	return nil
}

// Cached implements Cached.
func (a *answers) Cached(_ context.Context, _, version string) (runtime.Object, error) {
	a.asked = append(a.asked, version)
	next := a.next[0]
	a.next = a.next[1:]
	if a.unready > 0 {
		return nil, errors.New("not ready")
	}
	if err, ok := next.(error); ok {
		return nil, err
	}
	return next.(runtime.Object), nil
}

func versioned(version, uid string) *cluster.ManagedCluster {
	c := newCluster("c1", "k")
	c.ResourceVersion, c.UID = version, types.UID(uid)
	return c
}

// TestShared_SameVersion: a cluster is taken from the cache if it has the same version there, and otherwise is the one that was read. A cache
// that does not keep up is not waited for again before it does.
func TestShared_SameVersion(t *testing.T) {
	cache := &answers{}
	s := &shared{cached: cache}
	late := apierrors.NewTimeoutError("Too large resource version", 1)
	for i, c := range []struct {
		answer any
		shares bool
		asks   string
	}{
		{versioned("7", "u"), true, "7"},
		{versioned("8", "u"), false, "7"},
		{versioned("7", "other"), false, "7"},
		{&cluster.ManagedClusterSet{}, false, "7"},
		{apierrors.NewNotFound(resource.GroupResource, "c1"), false, "7"},
		{late, false, "7"},
		{versioned("6", "u"), false, "0"},
		{apierrors.NewNotFound(resource.GroupResource, "c1"), false, "0"},
		{versioned("7", "u"), true, "0"},
		{versioned("7", "u"), true, "7"},
		{generic.Unavailable(late), false, "7"},
		{versioned("7", "u"), true, "0"},
	} {
		cache.next = []any{c.answer}
		read := versioned("7", "u")
		got := s.of(read)
		if shares := runtime.Object(got) == c.answer; shares != c.shares || !shares && got != read {
			t.Errorf("step %d: shares %v, want %v", i, shares, c.shares)
		}
		if asked := cache.asked[len(cache.asked)-1]; asked != c.asks {
			t.Errorf("step %d: asked for version %s, want %s", i, asked, c.asks)
		}
	}
}

// TestIndex_SharesCachedClusters: all rows of a cluster share the cached object, and the index holds no other.
func TestIndex_SharesCachedClusters(t *testing.T) {
	cached := versioned("7", "u")
	x := newIndex(&answers{next: []any{cached, cached}, unready: 2}) // It starts at the same time.
	x.Set(newSet("s", "k"))
	var rows []*cluster.ManagedCluster
	for _, change := range x.Set(versioned("7", "u")) {
		if c := change.Object.(*cluster.ManagedCluster); c.Name == "c1" {
			rows = append(rows, c)
		}
	}
	x.Each(func(object generic.Object, _, _ string) { rows = append(rows, object.(*cluster.ManagedCluster)) })
	rows = append(rows, x.clusters["c1"])
	pointer := func(c *cluster.ManagedCluster) uintptr { return reflect.ValueOf(c.Labels).Pointer() }
	if len(rows) != 5 || slices.ContainsFunc(rows, func(c *cluster.ManagedCluster) bool { return pointer(c) != pointer(cached) }) {
		t.Errorf("of %d rows, want 5, some have labels of their own", len(rows))
	}
	for _, row := range rows[:4] {
		if row == cached {
			t.Error("a row is the object of the cache")
		}
	}
}
