// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func validCluster() *cluster.ManagedCluster {
	return &cluster.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{"env": "x"}, Annotations: map[string]string{"note": "y"}},
		Spec: cluster.ManagedClusterSpec{
			ManagedClusterClientConfigs: []cluster.ClientConfig{{URL: "https://a.example.com"}, {URL: "https://b.example.com"}},
			LeaseDurationSeconds:        60,
			Taints:                      []cluster.Taint{{Key: "a", Effect: "NoSelect", TimeAdded: metav1.Unix(1, 0)}},
		},
	}
}

func TestStorage(t *testing.T) {
	registrytest.Suite[*cluster.ManagedCluster]{
		Kind: Kind,
		Valid: func() *cluster.ManagedCluster {
			c := validCluster()
			// The suite expects two creations of one object to be equal, and the server sets the time of taints, which TestStorage_TaintTimes checks.
			c.Spec.Taints = nil
			return c
		},
		Invalid: []func(*cluster.ManagedCluster){
			func(c *cluster.ManagedCluster) { c.Name = "c.1" },
			func(c *cluster.ManagedCluster) { c.Spec.ManagedClusterClientConfigs[0].URL = "http://a.example.com" },
		},
		Change: func(c *cluster.ManagedCluster) { c.Spec.LeaseDurationSeconds = 30 },
		InvalidChanges: []func(*cluster.ManagedCluster){
			func(c *cluster.ManagedCluster) { c.Spec.LeaseDurationSeconds = -1 },
			func(c *cluster.ManagedCluster) { c.Labels = map[string]string{"a": strings.Repeat("x", 64)} },
		},
		Matching: []fields.Set{{"spec.hubAcceptsClient": "false"}},
		Others:   []fields.Set{{"spec.hubAcceptsClient": "true"}},
		Status: func(c *cluster.ManagedCluster) {
			c.Status.Conditions = []metav1.Condition{{
				Type: "ManagedClusterJoined", Status: "True", Reason: "Because", LastTransitionTime: metav1.Unix(1, 0),
			}}
		},
		BadStatus:  func(c *cluster.ManagedCluster) { c.Status.ClusterClaims = []cluster.ManagedClusterClaim{{}} },
		Columns:    "Name/0 Hub Accepted/0 Managed Cluster URLs/0 Joined/0 Available/0 Age/0 Version/1 Cluster Set/1",
		Cells:      "c1|false|https://a.example.com,https://b.example.com|True||<unknown>||",
		ShortNames: "mcl mcls",
	}.Run(t)
}

func newStorage(t *testing.T) *generic.Resource {
	t.Helper()
	return registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, nil)
}

func TestStorage_ListsClustersOfSet(t *testing.T) {
	s := newStorage(t)
	ctx := registrytest.Context(s)
	for name, set := range map[string]string{"c1": "dev", "c2": "qa", "c3": "dev", "c4": ""} {
		c := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if set != "" {
			c.Labels = map[string]string{cluster.ClusterSetLabel: set}
		}
		registrytest.Create(t, ctx, s, c)
	}
	moved, err := s.Get(ctx, "c2", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	into := moved.DeepCopyObject().(*cluster.ManagedCluster)
	into.Labels = map[string]string{cluster.ClusterSetLabel: "dev"}
	if _, err := registrytest.Update(ctx, s, into); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{
		cluster.ClusterSetLabel + "=dev":            "c1 c2 c3",
		cluster.ClusterSetLabel + "=qa":             "",
		cluster.ClusterSetLabel:                     "c1 c2 c3",
		"!" + cluster.ClusterSetLabel:               "c4",
		cluster.ClusterSetLabel + " notin (dev)":    "c4",
		cluster.ClusterSetLabel + " in (dev,other)": "c1 c2 c3",
	} {
		parsed, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.List(ctx, &metainternalversion.ListOptions{LabelSelector: parsed})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range list.(*cluster.ManagedClusterList).Items {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
}

func TestStorage_CreateResetsStatusAndTaintTimes(t *testing.T) {
	s := newStorage(t)
	c := validCluster()
	c.Generation = 7
	c.Status.Version.Kubernetes = "v1"
	before := metav1.Now().Unix()
	created := registrytest.Create(t, registrytest.Context(s), s, c)
	if created.Generation != 1 || created.Status.Version.Kubernetes != "" {
		t.Errorf("got generation %d, status %+v", created.Generation, created.Status)
	}
	if added := created.Spec.Taints[0].TimeAdded; added.Unix() < before || added.Nanosecond() != 0 {
		t.Errorf("the taint was added at %v", added)
	}
}

func TestStorage_SpecChangeIncrementsGeneration(t *testing.T) {
	s := newStorage(t)
	ctx := registrytest.Context(s)
	created := registrytest.Create(t, ctx, s, validCluster())
	created.Status.Version.Kubernetes = "v1"
	created.Labels["env"] = "z"
	relabelled, err := registrytest.Update(ctx, s, created)
	if err != nil {
		t.Fatal(err)
	}
	if relabelled.Generation != 1 || relabelled.Labels["env"] != "z" || relabelled.Status.Version.Kubernetes != "" {
		t.Errorf("after a change of labels and status: generation %d, %v, %+v", relabelled.Generation, relabelled.Labels, relabelled.Status)
	}
	relabelled.Spec.HubAcceptsClient = true
	accepted, err := registrytest.Update(ctx, s, relabelled)
	if err != nil || accepted.Generation != 2 {
		t.Errorf("after a change of the spec: %v, %v", accepted, err)
	}
}

func TestStorage_TaintTimes(t *testing.T) {
	s := newStorage(t)
	ctx := registrytest.Context(s)
	created := registrytest.Create(t, ctx, s, validCluster())

	added := created.DeepCopy()
	added.Spec.Taints = append(added.Spec.Taints, cluster.Taint{Key: "b", Effect: "NoSelect", TimeAdded: metav1.Now()})
	if _, err := registrytest.Update(ctx, s, added); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), `Taint "b"`) {
		t.Errorf("a made-up time: got %v", err)
	}
	left := created.DeepCopy()
	left.Spec.Taints[0].TimeAdded = metav1.Time{}
	updated, err := registrytest.Update(ctx, s, left)
	if err != nil {
		t.Fatal(err)
	}
	if want := created.Spec.Taints[0].TimeAdded; !updated.Spec.Taints[0].TimeAdded.Equal(&want) || updated.Generation != 1 {
		t.Errorf("a left-out time: got %v in generation %d, want %v", updated.Spec.Taints[0].TimeAdded, updated.Generation, want)
	}
}

func TestStorage_UpdateRequiresResourceVersion(t *testing.T) {
	s := newStorage(t)
	ctx := registrytest.Context(s)
	created := registrytest.Create(t, ctx, s, validCluster())
	for name, u := range map[string]rest.Updater{
		"main": s, "status": s.Subresources["status"], "label": s.Subresources["label"], "accept": s.Subresources["accept"],
	} {
		without := created.DeepCopy()
		without.ResourceVersion = ""
		if _, err := registrytest.Update(ctx, u, without); !apierrors.IsInvalid(err) {
			t.Errorf("%s without a version: got %v", name, err)
		}
		stale := created.DeepCopy()
		stale.ResourceVersion = "1"
		if _, err := registrytest.Update(ctx, u, stale); !apierrors.IsConflict(err) {
			t.Errorf("%s of an old version: got %v", name, err)
		}
	}
}
