// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaceplacements_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	testclock "k8s.io/utils/clock/testing"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/namespaceplacements"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// fixture is a plugin with a cache that the test fills.
type fixture struct {
	rest.Lister
	*namespaceplacements.Plugin
	*testing.T
	clock *testclock.FakePassiveClock
	cache []cluster.Placement
	err   error
}

func newFixture(t *testing.T, most int) *fixture {
	f := &fixture{T: t, clock: testclock.NewFakePassiveClock(time.Unix(1000, 0))}
	f.Plugin = namespaceplacements.New(f.clock)
	f.Placements, f.Most = f, most
	return f
}

func (f *fixture) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion != "0" {
		return nil, fmt.Errorf("asked for %+v", o)
	}
	list := &cluster.PlacementList{}
	for _, p := range f.cache {
		if p.Namespace == request.NamespaceValue(ctx) {
			list.Items = append(list.Items, p)
		}
	}
	return list, f.err
}

func placement(namespace, name string) *cluster.Placement {
	return &cluster.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func (f *fixture) create(namespace, name string, dryRun bool) error {
	_, err := at.Validate(f.T, f.Plugin, at.Request{
		Object: placement(namespace, name), Resource: "placements", Version: "v1beta1", DryRun: dryRun,
	}.Attributes())
	return err
}

func (f *fixture) want(namespace, name string, allowed bool) {
	f.Helper()
	err := f.create(namespace, name, false)
	if (err == nil) != allowed || err != nil && !apierrors.IsForbidden(err) {
		f.Errorf("%s/%s: got %v", namespace, name, err)
	}
}

func TestAdmission_LimitsPlacementsPerNamespace(t *testing.T) {
	f := newFixture(t, 3)
	f.cache = []cluster.Placement{*placement("a", "p1"), *placement("b", "p1")}
	f.want("a", "p2", true)
	f.want("a", "p3", true)
	f.want("a", "p4", false)
	f.want("b", "p4", true)
	if err := f.create("a", "p4", false); err == nil || !strings.Contains(err.Error(), "has 3 placements") || !strings.Contains(err.Error(), "--max-placements-per-namespace") {
		t.Errorf("got %v", err)
	}
	// Storage rejects a placement that exists already.
	f.want("a", "p1", true)
	f.want("a", "p2", true)
	// A written placement is counted once, and a deletion makes room.
	f.cache = append(f.cache, *placement("a", "p2"), *placement("a", "p3"))
	f.want("a", "p4", false)
	f.cache = f.cache[1:]
	f.want("a", "p4", true)
	f.want("a", "p5", false)
	// A placement that was not written counts for a while.
	f.clock.SetTime(f.clock.Now().Add(11 * time.Second))
	f.want("a", "p5", true)

	f.Most = 0
	f.want("a", "p6", true)
}

// TestAdmission_AllCreatesCount verifies that placements without a name count as well, and that a dry run does not.
func TestAdmission_AllCreatesCount(t *testing.T) {
	f := newFixture(t, 2)
	for range 3 {
		if err := f.create("a", "dry", true); err != nil {
			t.Error(err)
		}
	}
	f.want("a", "", true)
	f.want("a", "", true)
	f.want("a", "", false)
	if err := f.create("a", "dry", true); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

func TestAdmission_Concurrently(t *testing.T) {
	const most = 10
	f := newFixture(t, most)
	if n := at.AdmittedConcurrently(100, func(i int) error { return f.create("a", fmt.Sprint("p", i), false) }); n != most {
		t.Errorf("%d are admitted, want %d", n, most)
	}
}

// TestAdmission_WithoutCache verifies that no placement is admitted while their number is not known. All other requests are.
func TestAdmission_WithoutCache(t *testing.T) {
	f := newFixture(t, 3)
	f.err = errors.New("no cache")
	if err := f.create("a", "p1", false); !apierrors.IsInternalError(err) {
		t.Errorf("got %v", err)
	}
	f.Placements = nil
	if err := f.create("a", "p1", false); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("got %v", err)
	}
	for _, r := range []at.Request{
		{Object: placement("a", "p1"), Old: placement("a", "p1"), Resource: "placements", Version: "v1beta1"},
		{Object: placement("a", "p1"), Old: placement("a", "p1"), Resource: "placements", Version: "v1beta1", Subresource: "status"},
		{Object: at.Cluster("c1")},
	} {
		if _, err := at.Validate(t, f.Plugin, r.Attributes()); err != nil {
			t.Errorf("%s: %v", r.Resource, err)
		}
	}
}
