// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// TestAttack_ReportedFactsAreBounded: otherwise the hub would reject the whole status, including that the cluster is
// available.
func TestAttack_ReportedFactsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("9", 1<<20)
		odd := node("a", "1", "1", false)
		odd.Labels[corev1.LabelTopologyRegion] = long
		odd.Status.Capacity[corev1.ResourceName(long)] = resource.MustParse("1")
		f, _ := observing(t, Claims{Most: 20}, func() {}, []*corev1.Node{odd}, claim(strings.Repeat("n", maxName+1), "1"), claim("x", long))
		f.spoke.Client.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: long}
		o := f.Observe(quiet(t))
		if o.Version != "" || len(o.Capacity) != 1 || len(o.Claims) == 0 {
			t.Errorf("there are a version of %d bytes, %d resources and %d claims", len(o.Version), len(o.Capacity), len(o.Claims))
		}
		for _, c := range o.Claims {
			if len(c.Name) > maxName || len(c.Value) > maxClaim {
				t.Errorf("a claim has a name of %d bytes and a value of %d", len(c.Name), len(c.Value))
			}
		}
		for i := range 2 * maxResources {
			odd.Status.Capacity[corev1.ResourceName(fmt.Sprint("example.com/", i))] = resource.MustParse("1")
		}
		if capacity, allocatable := sumNodes([]*corev1.Node{odd}); capacity != nil || allocatable != nil {
			t.Errorf("there are %d resources, and %d are allocatable", len(capacity), len(allocatable))
		}
	})
}

// An invalid ID is requested again, and no claims are reported without it.
func TestAttack_UnboundedClusterID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := observing(t, Claims{Most: 20}, func() {}, []*corev1.Node{node("a", "1", "1", false)})
		namespaces := f.spoke.Client.CoreV1().Namespaces()
		system, err := namespaces.Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		good := system.UID
		for _, uid := range []types.UID{types.UID(strings.Repeat("u", maxClaim+1)), good} {
			system.UID = uid
			if _, err := namespaces.Update(t.Context(), system, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if told := asMap(f.Observe(quiet(t)).Claims)[claimID]; (told != "") != (uid == good) {
				t.Errorf("of an id of %d bytes, %d bytes are told", len(uid), len(told))
			}
		}
	})
}

// TestAttack_UnboundedClusterClaims: each page has a continue token for another one.
func TestAttack_UnboundedClusterClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dynamic := observing(t, Claims{Most: 20}, func() {}, []*corev1.Node{node("a", "1", "1", false)})
		pages := 0
		dynamic.PrependReactor("list", "clusterclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "ClusterClaimList"}}
			for i := range 500 {
				list.Items = append(list.Items, *claim(fmt.Sprintf("c%d-%d", pages, i), "1"))
			}
			list.SetContinue("more")
			pages++
			if pages > 2*maxRead/500 {
				t.Error("it goes on")
				list.SetContinue("")
			}
			return true, list, nil
		})
		if o := f.Observe(quiet(t)); o.Claims != nil {
			t.Errorf("%d claims are told of more than are read", len(o.Claims))
		}
		if pages != maxRead/500+1 {
			t.Errorf("%d pages were read", pages)
		}
	})
}

// TestAttack_UnboundedHealthMessage: the message is shortened in the status and in the log.
func TestAttack_UnboundedHealthMessage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(strings.Repeat("etcd failed, ", 1<<16)))
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	err = probeLive(client.Discovery().RESTClient())(context.Background())
	if err == nil || len(err.Error()) > 2*maxMessage || !strings.Contains(err.Error(), "etcd failed") {
		t.Errorf("%.3000v", err)
	}
}
