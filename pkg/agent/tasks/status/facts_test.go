// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func node(name, cpu, allocatable string, unschedulable bool) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyRegion: "eu-1", "x": "y"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///x", Unschedulable: unschedulable},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse(allocatable)},
			Images:      []corev1.ContainerImage{{Names: []string{"large"}}}},
	}
}

func claim(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.open-cluster-management.io/v1alpha1",
		"kind": "ClusterClaim", "metadata": map[string]any{"name": name}, "spec": map[string]any{"value": value}}}
}

// observing returns the facts of a cluster with these nodes and claims.
func observing(t *testing.T, of Claims, changed func(), nodes []*corev1.Node, claims ...runtime.Object) (*spokeFacts, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	client := kubefake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-of-kube-system"}})
	for _, n := range nodes {
		if err := client.Tracker().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{clusterClaims: "ClusterClaimList"}, claims...)
	f := &spokeFacts{spoke: &spoke.Cluster{Client: client, Watching: client, Dynamic: dynamic}, claims: of,
		probe: func(context.Context) error { return nil }}
	stop, err := f.Start(quiet(t), changed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	synctest.Wait()
	return f, dynamic
}

func asMap(claims []clusterv1.ManagedClusterClaim) map[string]string {
	m := map[string]string{}
	for _, c := range claims {
		m[c.Name] = c.Value
	}
	return m
}

func TestFacts_SumNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := observing(t, Claims{Most: 20}, func() {}, []*corev1.Node{node("a", "4", "3500m", false), node("b", "2", "2", true)})
		o := f.Observe(quiet(t))
		capacity, allocatable := o.Capacity["cpu"], o.Allocatable["cpu"]
		if capacity.String() != "6" || allocatable.String() != "3500m" || o.Unhealthy != nil || o.Version == "" {
			t.Errorf("got %+v", o)
		}
		claims := asMap(o.Claims)
		if claims[claimID] != "uid-of-kube-system" || claims[claimPlatform] != "AWS" || claims[claimRegion] != "eu-1" ||
			claims[claimVersion] != o.Version || claims[claimProduct] == "" {
			t.Errorf("the claims are %v", claims)
		}
	})
}

func TestFacts_ClusterWithoutNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := observing(t, Claims{Most: 20}, func() {}, nil)
		if o := f.Observe(quiet(t)); o.Capacity == nil || len(o.Capacity) != 0 || o.Claims == nil {
			t.Errorf("got %+v", o)
		}
	})
}

func TestFacts_ForbiddenNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := observing(t, Claims{Most: 20}, func() {}, nil)
		refusing := kubefake.NewClientset()
		refusing.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no"))
		})
		f.spoke.Watching = refusing
		stop, err := f.Start(quiet(t), func() {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		synctest.Wait() // they have been requested
		if o := f.Observe(quiet(t)); o.Unhealthy != nil || o.Version == "" || o.Capacity != nil || o.Claims != nil {
			t.Errorf("got %+v", o)
		}
	})
}

func TestFacts_ClaimsAreSortedAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := observing(t, Claims{Most: 2}, func() {}, []*corev1.Node{node("a", "1", "1", false)}, claim("z", "3"), claim("y", "2"), claim("x", "1"),
			claim("long", strings.Repeat("x", maxClaim+1)), claim(claimRegion, "mine"), claim("empty", ""), claim(registration.ClaimAgentVersion, "v9"))
		o := f.Observe(quiet(t))
		var names []string
		for _, c := range o.Claims {
			names = append(names, c.Name)
		}
		want := fmt.Sprint([]string{claimID, claimVersion, claimPlatform, claimProduct, claimRegion, "x", "y"})
		if fmt.Sprint(names) != want {
			t.Errorf("got %v, want %v", names, want)
		}
		if asMap(o.Claims)[claimRegion] != "mine" {
			t.Error("the cluster's own claim does not count more")
		}
	})
}

func TestFacts_IgnoreReservedClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := []runtime.Object{claim("x", "1"), claim("y", "2"), claim("a.example.com", "3"), claim("example.com.z", "4")}
		f, _ := observing(t, Claims{Most: 1, Reserved: []string{".example.com", "none"}}, func() {}, []*corev1.Node{node("a", "1", "1", false)}, claims...)
		got := asMap(f.Observe(quiet(t)).Claims)
		for name, want := range map[string]bool{"a.example.com": true, "example.com.z": true, "x": false, "y": false, claimID: true} {
			if _, told := got[name]; told != want {
				t.Errorf("the hub is told of %s: %t", name, told)
			}
		}
	})
}

// Otherwise the hub would reject all of them, and the rest of the status with them.
func TestFacts_LimitClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var claims []runtime.Object
		for i := range cluster.MaxClusterClaims + 10 {
			claims = append(claims, claim(fmt.Sprintf("a%d.example.com", i), "1"))
		}
		f, _ := observing(t, Claims{Most: 20, Reserved: []string{".example.com"}}, func() {}, []*corev1.Node{node("a", "1", "1", false)}, claims...)
		got := asMap(f.Observe(quiet(t)).Claims)
		if _, told := got[claimRegion]; len(got) != cluster.MaxClusterClaims-registration.MaxAgentClaims || !told {
			t.Errorf("there are %d, and the agent's own is told: %t", len(got), told)
		}
	})
}

func TestFacts_ClaimsFollowTheirCRD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dynamic := observing(t, Claims{Most: 20}, func() {}, []*corev1.Node{node("a", "1", "1", false)}, claim("x", "1"))
		var refusal error = apierrors.NewNotFound(clusterClaims.GroupResource(), "")
		dynamic.PrependReactor("list", "clusterclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refusal != nil, nil, refusal
		})
		if claims := asMap(f.Observe(quiet(t)).Claims); claims[claimID] == "" || claims["x"] != "" {
			t.Errorf("without the CRD got %v", claims)
		}
		refusal = errors.New("away")
		if claims := f.Observe(quiet(t)).Claims; claims != nil {
			t.Errorf("when they cannot be read got %v: the hub would forget them", claims)
		}
		refusal = nil
		if claims := asMap(f.Observe(quiet(t)).Claims); claims["x"] != "1" {
			t.Errorf("with the CRD got %v", claims)
		}
	})
}

func TestFacts_IgnoreIrrelevantNodeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := 0
		f, _ := observing(t, Claims{Most: 20}, func() { changes++ }, []*corev1.Node{node("a", "1", "1", false)})
		changes = 0 // the events of its creation
		nodes := f.spoke.Client.CoreV1().Nodes()
		n, err := nodes.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.ResourceVersion = ""
		n, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if changes != 0 {
			t.Errorf("a heartbeat made %d changes", changes)
		}
		n.Spec.Unschedulable = true
		if _, err := nodes.Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if changes != 1 {
			t.Errorf("a cordon made %d changes", changes)
		}
		stored, err := f.nodes.Core().V1().Nodes().Lister().Get("a")
		if err != nil || len(stored.Status.Images) > 0 || stored.Labels["x"] != "" {
			t.Errorf("of the node too much is kept: %+v, %v", stored, err)
		}
	})
}

// quiet returns the test's context without a log.
func quiet(t *testing.T) context.Context { return klog.NewContext(t.Context(), klog.New(nil)) }

// Other tasks get the sums over the nodes. A missing architecture is counted as the empty one.
func TestFacts_NodeArchitectures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes []*corev1.Node
		for i := range 40 {
			n := node(fmt.Sprint("n", i), "2", "2", false)
			n.Status.Capacity["memory"] = resource.MustParse("1Gi")
			n.Status.NodeInfo.Architecture = "amd64"
			if i > 9 {
				n.Status.NodeInfo.Architecture = fmt.Sprint("arch", i)
			}
			nodes = append(nodes, n)
		}
		f, _ := observing(t, Claims{Most: 20}, func() {}, nodes)
		seen := f.Observe(quiet(t)).Nodes
		if seen == nil || seen.CPU != 80 || seen.Memory != 40<<30 || len(seen.Arches) != maxArches || seen.Arches["amd64"] > 10 {
			t.Errorf("they are %+v", seen)
		}
	})
}

// An agent of one namespace sends no requests that it has no rights for, so that no rejections are logged repeatedly.
func TestFacts_OfNamespaceSendNoOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, changed := kubefake.NewClientset(), false
		// It has no client for ClusterClaims.
		f := &spokeFacts{spoke: &spoke.Cluster{Client: client, Watching: client, NamespaceScoped: true}, claims: Claims{Most: 20}, probe: func(context.Context) error { return nil }}
		stop, err := f.Start(quiet(t), func() { changed = true })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		synctest.Wait()
		o := f.Observe(quiet(t))
		claims := asMap(o.Claims)
		if o.Unhealthy != nil || o.Version == "" || o.Nodes != nil || o.Capacity != nil || len(claims) != 2 || claims[claimVersion] != o.Version || claims[claimProduct] == "" || changed {
			t.Errorf("got %+v", o)
		}
		for _, request := range client.Actions() {
			if request.GetResource().Resource != "version" {
				t.Errorf("it asked: %s %s", request.GetVerb(), request.GetResource().Resource)
			}
		}
	})
}
