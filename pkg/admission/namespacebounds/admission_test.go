// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacebounds_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/namespacebounds"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// fixture is a server whose events the test sends. The size of an object is the value of its annotation.
type fixture struct {
	*namespacebounds.Plugin
	*testing.T
	clock                 *testclock.FakePassiveClock
	placements, decisions cache.ReflectorStore
}

func newFixture(t *testing.T, objects, bytes int) *fixture {
	f := &fixture{T: t, clock: testclock.NewFakePassiveClock(time.Unix(1000, 0))}
	size := func(_ schema.GroupResource, object runtime.Object) (int, error) {
		annotations := object.(metav1.Object).GetAnnotations()
		if annotations["odd"] != "" {
			return 0, errors.New("no codec")
		}
		return len(annotations["a"]) + 100*len(object.(metav1.Object).GetFinalizers()), nil
	}
	f.Plugin = namespacebounds.New(size, f.clock)
	f.MaxObjects, f.MaxBytes = objects, bytes
	f.placements, f.decisions = f.Usage.Store(cluster.Resource("placements")), f.Usage.Store(cluster.Resource("placementdecisions"))
	f.told(f.placements.Replace(nil, ""))
	f.told(f.decisions.Replace(nil, ""))
	return f
}

func (f *fixture) told(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func placement(namespace, name string, size int) *cluster.Placement {
	return &cluster.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"a": strings.Repeat("x", size)}}}
}

func decision(namespace, name string, size int) *cluster.PlacementDecision {
	return &cluster.PlacementDecision{ObjectMeta: placement(namespace, name, size).ObjectMeta}
}

func (f *fixture) write(r at.Request) error {
	if r.Resource == "" {
		r.Resource = "placements"
	}
	r.Version = "v1beta1"
	_, err := at.Validate(f.T, f.Plugin, r.Attributes())
	return err
}

// want verifies whether a write is admitted, and the end of the message of a quota error.
func (f *fixture) want(what string, refused string, r at.Request) {
	f.Helper()
	switch err := f.write(r); {
	case refused == "" && err != nil:
		f.Errorf("%s: %v", what, err)
	case refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: "+refused)):
		f.Errorf("%s: got %v", what, err)
	}
}

const (
	objectsFlag = "--max-objects-per-namespace of hub-apiserver, requested: objects=1, "
	bytesFlag   = "--max-bytes-per-namespace of hub-apiserver, requested: bytes="
)

func TestAdmission_LimitsObjectsOfAllKinds(t *testing.T) {
	f := newFixture(t, 4, 0)
	f.told(f.placements.Replace([]any{placement("a", "p1", 1), placement("b", "p1", 1)}, ""))
	f.told(f.decisions.Add(decision("a", "p1", 1)))
	f.want("a third", "", at.Request{Object: placement("a", "p2", 1)})
	f.want("what is there already", "", at.Request{Object: placement("a", "p1", 1)})
	f.want("what is being made already", "", at.Request{Object: placement("a", "p2", 1)})
	f.want("a dry run", "", at.Request{Object: placement("a", "dry", 1), DryRun: true})
	f.want("a fourth, without a name", "", at.Request{Object: placement("a", "", 1)})
	full := objectsFlag + "used: objects=4, limited: objects=4"
	f.want("a fifth", full, at.Request{Object: placement("a", "p5", 1)})
	f.want("another without a name", full, at.Request{Object: placement("a", "", 1)})
	f.want("a dry run in a full one", full, at.Request{Object: placement("a", "dry", 1), DryRun: true})
	f.want("another namespace", "", at.Request{Object: placement("b", "p5", 1)})
	f.want("no namespace", "", at.Request{Object: at.Cluster("c1")})
	// A written object is counted once. A deletion makes room, and so does an object that was not written, after a while.
	f.told(f.placements.Add(placement("a", "p2", 1)))
	f.want("after the event", full, at.Request{Object: placement("a", "p5", 1)})
	f.told(f.placements.Delete(placement("a", "p1", 1)))
	f.want("after a deletion", "", at.Request{Object: placement("a", "p5", 1)})
	f.want("once", full, at.Request{Object: placement("a", "p6", 1)})
	f.clock.SetTime(f.clock.Now().Add(11 * time.Second))
	f.want("after a while", "", at.Request{Object: placement("a", "p6", 1)})
	// A list replaces all counts of its kind.
	f.told(f.placements.Replace([]any{placement("a", "p1", 1), placement("a", "p2", 1), placement("a", "p6", 1)}, ""))
	f.want("after a list", full, at.Request{Object: placement("a", "p7", 1)})
	f.told(f.placements.Replace(nil, ""))
	f.want("after an empty list", "", at.Request{Object: placement("a", "p7", 1)})
	f.MaxObjects = 0
	for i := range 10 {
		f.want("without a bound", "", at.Request{Object: placement("a", fmt.Sprint("q", i), 1)})
	}
}

func TestAdmission_LimitsBytes(t *testing.T) {
	f := newFixture(t, 0, 10000)
	stored := placement("a", "p1", 6000)
	f.told(f.placements.Add(stored))
	f.told(f.decisions.Add(decision("a", "d1", 3000)))
	f.want("what has room", "", at.Request{Object: placement("a", "p2", 1000)})
	f.want("a byte more", bytesFlag+"1, used: bytes=10000, limited: bytes=10000", at.Request{Object: placement("a", "p3", 1)})
	f.want("growth", bytesFlag+"1, ", at.Request{Object: placement("a", "p1", 6001), Old: stored})
	f.want("the same size", "", at.Request{Object: placement("a", "p1", 6000), Old: stored})
	f.want("less", "", at.Request{Object: placement("a", "p1", 5000), Old: stored})
	f.want("less than is known to be stored", "", at.Request{Object: placement("a", "p1", 7000), Old: placement("a", "p1", 7001)})
	// A quarter is reserved for what must continue.
	held := placement("a", "p1", 6000)
	held.Finalizers = []string{"example.com/a"}
	f.want("a finalizer", "", at.Request{Object: held, Old: stored})
	labelled := held.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	labelled.Finalizers = append(labelled.Finalizers, "example.com/b")
	f.want("a finalizer, and more", bytesFlag, at.Request{Object: labelled, Old: held})
	f.want("the status", "", at.Request{Object: placement("a", "p1", 7000), Old: stored, Subresource: "status"})
	dying := placement("a", "p1", 7000)
	dying.DeletionTimestamp = new(metav1.Now())
	f.want("what is being deleted", "", at.Request{Object: placement("a", "p1", 7500), Old: dying})
	f.want("what the hub derives", "", at.Request{Object: decision("a", "d2", 1000), Resource: "placementdecisions"})
	f.want("more than the quarter", bytesFlag+"1, used: bytes=12500, limited: bytes=12500", at.Request{Object: decision("a", "d3", 1), Resource: "placementdecisions"})
	f.want("a status beyond it", bytesFlag+"1, ", at.Request{Object: placement("a", "p1", 7501), Old: stored, Subresource: "status"})
	f.want("a smaller status", "", at.Request{Object: placement("a", "p1", 7500), Old: stored, Subresource: "status"})
}

// TestAdmission_StaleEventReleasesNothing verifies that the event of an earlier write does not release the reservation of a later one.
func TestAdmission_StaleEventReleasesNothing(t *testing.T) {
	f := newFixture(t, 0, 1000)
	stored := placement("a", "p1", 10)
	f.told(f.placements.Add(stored))
	f.want("a little growth", "", at.Request{Object: placement("a", "p1", 20), Old: stored})
	f.want("much growth", "", at.Request{Object: placement("a", "p1", 900), Old: stored})
	f.told(f.placements.Update(placement("a", "p1", 20)))
	f.want("what has no room", bytesFlag+"200, used: bytes=900, ", at.Request{Object: placement("a", "p2", 200)})
	f.told(f.placements.Update(placement("a", "p1", 900)))
	f.told(f.placements.Update(placement("a", "p1", 30)))
	f.want("what has room again", "", at.Request{Object: placement("a", "p2", 200)})
}

func TestAdmission_Concurrently(t *testing.T) {
	f := newFixture(t, 10, 0)
	if n := at.AdmittedConcurrently(100, func(i int) error { return f.write(at.Request{Object: placement("a", fmt.Sprint("p", i), 1)}) }); n != 10 {
		t.Errorf("%d are admitted, want 10", n)
	}
}

// TestAdmission_WithoutCounts verifies that writes are rejected while the counts are not known, and that an object that cannot be measured is
// rejected.
func TestAdmission_WithoutCounts(t *testing.T) {
	f := newFixture(t, 10, 10)
	odd := placement("a", "p1", 1)
	odd.Annotations["odd"] = "x"
	if err := f.write(at.Request{Object: odd}); !apierrors.IsInternalError(err) {
		t.Errorf("got %v", err)
	}
	if err := f.placements.Add(odd); err == nil {
		t.Error("it counts what it cannot measure")
	}
	if err := f.write(at.Request{Object: placement("a", "p1", 1), Resource: "addonplacementscores"}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v", err)
	}
	f.MaxObjects, f.MaxBytes = 0, 0
	f.want("without bounds", "", at.Request{Object: odd})
}

// TestAdmission_SkipsMeasuringSmallUpdates verifies that updates are not measured while there is room for all that are in flight.
func TestAdmission_SkipsMeasuringSmallUpdates(t *testing.T) {
	f := newFixture(t, 1, 300<<20)
	odd := placement("a", "p1", 1)
	odd.Annotations["odd"] = "x"
	f.told(f.placements.Add(placement("a", "p2", 40<<20)))
	f.want("with room", "", at.Request{Object: odd, Old: odd})
	f.told(f.placements.Update(placement("a", "p2", 45<<20)))
	if err := f.write(at.Request{Object: odd, Old: odd}); !apierrors.IsInternalError(err) {
		t.Errorf("got %v", err)
	}
	f.MaxBytes = 0
	f.want("without a bound on bytes", "", at.Request{Object: odd, Old: odd})
}
