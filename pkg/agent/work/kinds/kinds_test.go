// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestKinds(t *testing.T) {
	client := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"}}}}
	k, now := New(client), time.Now()
	k.now = func() time.Time { return now }
	resource, namespaced, err := k.Resource(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if resource.Resource != "configmaps" || !namespaced || err != nil {
		t.Errorf("a ConfigMap is %v, %v, %v", resource, namespaced, err)
	}
	_, namespaced, err = k.Resource(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if namespaced || err != nil {
		t.Errorf("a Namespace is in a namespace: %v", err)
	}

	// Repeated lookups of a kind that does not exist send requests to the cluster from time to time only.
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "X"}
	unknown := (*Unknown)(nil)
	for range 10 {
		_, _, err = k.Resource(kind)
		if !errors.As(err, &unknown) || unknown.Kind != kind {
			t.Fatalf("what does not exist is %v", err)
		}
	}
	asked := len(client.Actions())
	for range 10 {
		_, _, _ = k.Resource(kind)
	}
	if more := len(client.Actions()); more != asked {
		t.Errorf("the cluster was asked %d times, and then %d times", asked, more)
	}
	client.Resources = append(client.Resources, &metav1.APIResourceList{GroupVersion: "example.com/v2", APIResources: []metav1.APIResource{{Name: "xs", Kind: "X"}}})
	now = now.Add(RefreshEvery)
	resource, _, err = k.Resource(kind)
	if resource.Resource != "xs" || err != nil {
		t.Errorf("what exists now is %v, %v", resource, err)
	}

	// An object that was applied in a version that is no longer served still exists.
	if served, ok := k.Served(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "xs"}); !ok || served.Version != "v2" {
		t.Errorf("it is served as %v, %v", served, ok)
	}
	client.Resources = client.Resources[:1]
	now = now.Add(RefreshEvery)
	k.Changed()
	if _, ok := k.Served(schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "xs"}); ok {
		t.Error("what is not served any more is served")
	}
}
