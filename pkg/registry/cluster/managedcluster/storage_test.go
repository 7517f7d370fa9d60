// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"
	etcd3testing "k8s.io/apiserver/pkg/storage/etcd3/testing"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func newStorage(t *testing.T) *Storage {
	t.Helper()
	_, etcd := etcd3testing.NewUnsecuredEtcd3TestClientServer(t)
	scheme := registrytest.Scheme()
	s, err := NewStorage(scheme, registrytest.Options(etcd.Transport, scheme, v1.SchemeGroupVersion, "managedclusters"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.ManagedCluster.Destroy)
	registrytest.WaitUntilReady(t, s.ManagedCluster.Store)
	return s
}

func requestContext(s *Storage, subresources ...string) context.Context {
	return genericregistrytest.NewClusterScopeContext(s.ManagedCluster.Store, subresources...)
}

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

func TestStorage_Create(t *testing.T) {
	s := newStorage(t)
	unnamed, dotted, plain := validCluster(), validCluster(), validCluster()
	unnamed.Name = ""
	dotted.Name = "c.1"
	plain.Spec.ManagedClusterClientConfigs[0].URL = "http://a.example.com"
	genericregistrytest.New(t, s.ManagedCluster.Store).ClusterScope().TestCreate(validCluster(), unnamed, dotted, plain)
}

func TestStorage_Update(t *testing.T) {
	change := func(f func(*cluster.ManagedCluster)) genericregistrytest.UpdateFunc {
		return func(object runtime.Object) runtime.Object {
			f(object.(*cluster.ManagedCluster))
			return object
		}
	}
	s := newStorage(t)
	genericregistrytest.New(t, s.ManagedCluster.Store).ClusterScope().TestUpdate(validCluster(),
		change(func(c *cluster.ManagedCluster) { c.Spec.LeaseDurationSeconds = 30 }),
		change(func(c *cluster.ManagedCluster) { c.Spec.LeaseDurationSeconds = -1 }),
		change(func(c *cluster.ManagedCluster) { c.Labels = map[string]string{"a": strings.Repeat("x", 64)} }),
	)
}

func TestStorage_Delete(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ManagedCluster.Store).ClusterScope().ReturnDeletedObject().TestDelete(validCluster())
}

func TestStorage_Get(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ManagedCluster.Store).ClusterScope().TestGet(validCluster())
}

func TestStorage_List(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ManagedCluster.Store).ClusterScope().TestList(validCluster())
}

func TestStorage_Watch(t *testing.T) {
	accepted := validCluster()
	accepted.Spec.HubAcceptsClient = true
	genericregistrytest.New(t, newStorage(t).ManagedCluster.Store).ClusterScope().TestWatch(accepted,
		[]labels.Set{{"env": "x"}}, []labels.Set{{"env": "z"}, {cluster.ClusterSetLabel: "x"}},
		[]fields.Set{{"metadata.name": "c1"}, {"spec.hubAcceptsClient": "true"}},
		[]fields.Set{{"metadata.name": "c2"}, {"spec.hubAcceptsClient": "false"}},
	)
}

func TestStorage_ListsTheClustersOfASetByTheirLabel(t *testing.T) {
	s := newStorage(t)
	ctx := requestContext(s)
	for name, set := range map[string]string{"c1": "dev", "c2": "qa", "c3": "dev", "c4": ""} {
		c := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if set != "" {
			c.Labels = map[string]string{cluster.ClusterSetLabel: set}
		}
		registrytest.Create(t, ctx, s.ManagedCluster, c)
	}
	moved, err := s.ManagedCluster.Get(ctx, "c2", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	into := moved.DeepCopyObject().(*cluster.ManagedCluster)
	into.Labels = map[string]string{cluster.ClusterSetLabel: "dev"}
	if _, err := registrytest.Update(ctx, s.ManagedCluster, into); err != nil {
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
		list, err := s.ManagedCluster.List(ctx, &metainternalversion.ListOptions{LabelSelector: parsed})
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

func TestStorage_ACreatedClusterHasNoStatusAndTaintsOfNow(t *testing.T) {
	s := newStorage(t)
	c := validCluster()
	c.Generation = 7
	c.Status.Version.Kubernetes = "v1"
	before := metav1.Now().Unix()
	created := registrytest.Create(t, requestContext(s), s.ManagedCluster, c)
	if created.Generation != 1 || created.Status.Version.Kubernetes != "" {
		t.Errorf("got generation %d, status %+v", created.Generation, created.Status)
	}
	if added := created.Spec.Taints[0].TimeAdded; added.Unix() < before || added.Nanosecond() != 0 {
		t.Errorf("the taint was added at %v", added)
	}
}

func TestStorage_AChangeOfTheSpecIsANewGeneration(t *testing.T) {
	s := newStorage(t)
	ctx := requestContext(s)
	created := registrytest.Create(t, ctx, s.ManagedCluster, validCluster())
	created.Status.Version.Kubernetes = "v1"
	created.Labels["env"] = "z"
	relabelled, err := registrytest.Update(ctx, s.ManagedCluster, created)
	if err != nil {
		t.Fatal(err)
	}
	if relabelled.Generation != 1 || relabelled.Labels["env"] != "z" || relabelled.Status.Version.Kubernetes != "" {
		t.Errorf("after a change of labels and status: generation %d, %v, %+v", relabelled.Generation, relabelled.Labels, relabelled.Status)
	}
	relabelled.Spec.HubAcceptsClient = true
	accepted, err := registrytest.Update(ctx, s.ManagedCluster, relabelled)
	if err != nil || accepted.Generation != 2 {
		t.Errorf("after a change of the spec: %v, %v", accepted, err)
	}
}

func TestStorage_AMadeUpTaintTimeIsRefusedAndALeftOutOneIsRestored(t *testing.T) {
	s := newStorage(t)
	ctx := requestContext(s)
	created := registrytest.Create(t, ctx, s.ManagedCluster, validCluster())

	added := created.DeepCopy()
	added.Spec.Taints = append(added.Spec.Taints, cluster.Taint{Key: "b", Effect: "NoSelect", TimeAdded: metav1.Now()})
	if _, err := registrytest.Update(ctx, s.ManagedCluster, added); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), `Taint "b"`) {
		t.Errorf("a made-up time: got %v", err)
	}
	left := created.DeepCopy()
	left.Spec.Taints[0].TimeAdded = metav1.Time{}
	updated, err := registrytest.Update(ctx, s.ManagedCluster, left)
	if err != nil {
		t.Fatal(err)
	}
	if want := created.Spec.Taints[0].TimeAdded; !updated.Spec.Taints[0].TimeAdded.Equal(&want) || updated.Generation != 1 {
		t.Errorf("a left-out time: got %v in generation %d, want %v", updated.Spec.Taints[0].TimeAdded, updated.Generation, want)
	}
}

func TestStorage_AnUpdateNeedsTheVersionThatItChanges(t *testing.T) {
	s := newStorage(t)
	ctx := requestContext(s)
	created := registrytest.Create(t, ctx, s.ManagedCluster, validCluster())
	for name, u := range map[string]rest.Updater{
		"main": s.ManagedCluster, "status": s.Status, "label": s.Label, "accept": s.Accept,
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

func TestStorage_ShortNames(t *testing.T) {
	if got := strings.Join(newStorage(t).ManagedCluster.ShortNames(), " "); got != "mcl mcls" {
		t.Errorf("got %q", got)
	}
}
