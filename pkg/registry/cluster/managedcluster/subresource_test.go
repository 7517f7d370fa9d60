// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

// spoilt returns the cluster with changes of everything that a client can try to change.
func spoilt(c *cluster.ManagedCluster) *cluster.ManagedCluster {
	s := c.DeepCopy()
	registrytest.Spoil(s)
	s.Spec = cluster.ManagedClusterSpec{
		ManagedClusterClientConfigs: []cluster.ClientConfig{{URL: "https://spoilt.example.com"}},
		HubAcceptsClient:            !c.Spec.HubAcceptsClient,
		LeaseDurationSeconds:        99,
		Taints:                      []cluster.Taint{{Key: "spoilt", Effect: "NoSelect"}},
	}
	s.Status = cluster.ManagedClusterStatus{
		Version:  cluster.ManagedClusterVersion{Kubernetes: "v9"},
		Capacity: cluster.ResourceList{"cpu": resource.MustParse("9")},
		Conditions: []metav1.Condition{{
			Type: "HubAcceptedManagedCluster", Status: "True", Reason: "Spoilt", LastTransitionTime: metav1.Unix(1, 0),
		}},
	}
	return s
}

func TestSubresources_ChangeOnlyTheirPart(t *testing.T) {
	for name, c := range map[string]struct {
		of func(*generic.Resource) rest.Updater
		// want computes the expected stored object, except metadata, from the stored and the sent one.
		want   func(want, sent *cluster.ManagedCluster)
		exempt []string
	}{
		"status": {
			of:   func(s *generic.Resource) rest.Updater { return s.Subresources["status"] },
			want: func(want, sent *cluster.ManagedCluster) { want.Status = sent.Status },
		},
		"label": {
			of:     func(s *generic.Resource) rest.Updater { return s.Subresources["label"] },
			want:   func(want, sent *cluster.ManagedCluster) { want.Labels = sent.Labels },
			exempt: []string{"labels"},
		},
		"accept": {
			of:     func(s *generic.Resource) rest.Updater { return s.Subresources["accept"] },
			want:   func(want, sent *cluster.ManagedCluster) { want.Spec.HubAcceptsClient = sent.Spec.HubAcceptsClient },
			exempt: []string{"generation", "annotations"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t)
			old := registrytest.Create(t, registrytest.Context(s), s, validCluster())
			sent := spoilt(old)
			updated, err := registrytest.Update(registrytest.Context(s, name), c.of(s), sent)
			if err != nil {
				t.Fatal(err)
			}
			want := old.DeepCopy()
			c.want(want, sent)
			if !equality.Semantic.DeepEqual(updated.Spec, want.Spec) {
				t.Errorf("spec\ngot  %+v\nwant %+v", updated.Spec, want.Spec)
			}
			if !equality.Semantic.DeepEqual(updated.Status, want.Status) {
				t.Errorf("status\ngot  %+v\nwant %+v", updated.Status, want.Status)
			}
			if !maps.Equal(updated.Labels, want.Labels) {
				t.Errorf("labels: got %v, want %v", updated.Labels, want.Labels)
			}
			registrytest.WantSameMeta(t, updated, old, c.exempt...)

			read, err := s.Get(registrytest.Context(s), "c1", &metav1.GetOptions{})
			if err != nil || !equality.Semantic.DeepEqual(read, runtime.Object(updated)) {
				t.Errorf("stored is %+v, %v, returned was %+v", read, err, updated)
			}
		})
	}
}

func TestAccept_IncrementsGeneration(t *testing.T) {
	s := newStorage(t)
	created := registrytest.Create(t, registrytest.Context(s), s, validCluster())
	created.Spec.HubAcceptsClient = true
	accepted, err := registrytest.Update(registrytest.Context(s, "accept"), s.Subresources["accept"], created)
	if err != nil || !accepted.Spec.HubAcceptsClient || accepted.Generation != 2 {
		t.Fatalf("got %+v, %v", accepted, err)
	}
}

func TestLabel_RejectsInvalid(t *testing.T) {
	s := newStorage(t)
	created := registrytest.Create(t, registrytest.Context(s), s, validCluster())
	created.Labels = map[string]string{"info.open-cluster-management.io/a": "*"}
	if _, err := registrytest.Update(registrytest.Context(s, "label"), s.Subresources["label"], created); !apierrors.IsInvalid(err) {
		t.Fatalf("got %v", err)
	}
}

func TestStatus_RejectsInvalid(t *testing.T) {
	s := newStorage(t)
	created := registrytest.Create(t, registrytest.Context(s), s, validCluster())
	created.Status.ClusterClaims = []cluster.ManagedClusterClaim{{}}
	if _, err := registrytest.Update(registrytest.Context(s, "status"), s.Subresources["status"], created); !apierrors.IsInvalid(err) {
		t.Fatalf("got %v", err)
	}
}

func TestSubresources_RejectOtherUID(t *testing.T) {
	s := newStorage(t)
	created := registrytest.Create(t, registrytest.Context(s), s, validCluster())
	for name, u := range s.Subresources {
		// A patch has its UID in the patched object only.
		patch := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			patched := old.DeepCopyObject().(*cluster.ManagedCluster)
			patched.UID = "another"
			return patched, nil
		})
		_, _, err := u.Update(registrytest.Context(s, name), "c1", patch, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc,
			false, &metav1.UpdateOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("patch of %s: got %v", name, err)
		}
		put := created.DeepCopy()
		put.UID = "another"
		if _, err := registrytest.Update(registrytest.Context(s, name), u, put); !apierrors.IsConflict(err) {
			t.Errorf("put of %s: got %v", name, err)
		}
	}
}

// TestSubresources_CreateNothing: a server-side apply may create an object that does not exist, but not through a subresource.
func TestSubresources_CreateNothing(t *testing.T) {
	s := newStorage(t)
	for name, u := range s.Subresources {
		_, _, err := u.Update(registrytest.Context(s, name), "c1", rest.DefaultUpdatedObjectInfo(validCluster()),
			rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestResetFields_AllOfUnchangedFields(t *testing.T) {
	s := newStorage(t)
	paths := map[string]fieldpath.Path{
		"labels":      fieldpath.MakePathOrDie("metadata", "labels", "a"),
		"annotations": fieldpath.MakePathOrDie("metadata", "annotations", "a"),
		"finalizers":  fieldpath.MakePathOrDie("metadata", "finalizers"),
		"accepts":     fieldpath.MakePathOrDie("spec", "hubAcceptsClient"),
		"lease":       fieldpath.MakePathOrDie("spec", "leaseDurationSeconds"),
		"taints":      fieldpath.MakePathOrDie("spec", "taints"),
		"configs":     fieldpath.MakePathOrDie("spec", "managedClusterClientConfigs"),
		"version":     fieldpath.MakePathOrDie("status", "version", "kubernetes"),
	}
	for name, c := range map[string]struct {
		of    rest.ResetFieldsStrategy
		owned []string
	}{
		"main": {s,
			[]string{"labels", "annotations", "finalizers", "accepts", "lease", "taints", "configs"}},
		"status": {s.Subresources["status"], []string{"version"}},
		"label":  {s.Subresources["label"], []string{"labels"}},
		"accept": {s.Subresources["accept"], []string{"accepts"}},
	} {
		reset := c.of.GetResetFields()["cluster.open-cluster-management.io/v1"]
		if reset == nil {
			t.Fatalf("%s: nothing for v1", name)
		}
		for field, path := range paths {
			owned := !fieldpath.NewSet(path).RecursiveDifference(reset).Empty()
			if owned != slices.Contains(c.owned, field) {
				t.Errorf("%s: an applier owns %s: %t", name, field, owned)
			}
		}
	}
}
