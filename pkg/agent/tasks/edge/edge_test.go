// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/validation"
)

// world has one task, on a cluster that has no nodes yet.
type world struct {
	*agenttest.World
	view    *hub.View
	task    *teller
	session task.Session

	// mu protects what the cluster returns.
	mu    sync.Mutex
	id    string
	idErr error
}

// set changes what the cluster returns.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// cluster returns what was set.
type cluster struct {
	discovery.DiscoveryInterfaces
	*world
}

func (c cluster) ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.DiscoveryInterfaces.ServerGroupsAndResourcesWithContext(ctx)
}

func (w *world) idNow(context.Context) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.id, w.idErr
}

// run runs the task for a minute.
func run(t *testing.T, set func(*world)) (w *world, stop func()) {
	t.Helper()
	w = &world{World: agenttest.NewWorld(t), view: hub.NewView(60), id: "id-of-cluster"}
	w.task = &teller{Node: Node{Own: w.Own(), View: w.view, Namespace: "openhorizon-agent"}, discovery: cluster{w.Spoke.Discovery(), w}, id: w.idNow}
	set(w)
	w.session = w.Session()
	stop = w.Run(w.session, newTask(w.task))
	agenttest.Pass(time.Minute)
	return w, stop
}

func (w *world) node() *edgev1alpha1.EdgeNode {
	w.T.Helper()
	node, err := w.HubClusters.EdgeV1alpha1().EdgeNodes().Get(w.T.Context(), agenttest.ClusterName, metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return node
}

func (w *world) put(node *edgev1alpha1.EdgeNode) {
	w.T.Helper()
	if err := w.HubClusters.Tracker().Update(edgev1alpha1.SchemeGroupVersion.WithResource("edgenodes"), node, ""); err != nil {
		w.T.Fatal(err)
	}
}

// says formats the status as one line.
func says(s edgev1alpha1.EdgeNodeStatus) string {
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	scoped := "unknown"
	if s.NamespaceScoped != nil {
		scoped = fmt.Sprint(*s.NamespaceScoped)
	}
	return fmt.Sprintf("%s/%s/%s %s %s %s %d", s.Arch, number(s.CPU), number(s.Memory), s.Namespace, scoped, s.ClusterID, len(s.ClusterObjects))
}

func two() *hub.Nodes {
	return &hub.Nodes{Arches: map[string]int{"amd64": 2}, CPU: 8, Memory: 16<<30 + 1}
}

const told = "amd64/8/16384 openhorizon-agent false id-of-cluster 0"

func TestEdge_CreatesNodeAndUpdatesFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := run(t, func(w *world) { w.view.SetNodes(two()) })
		node := w.node()
		if got := says(node.Status); got != told || node.Status.KubernetesVersion == "" || node.Status.ReportTime.IsZero() {
			t.Errorf("it says %s: %+v", got, node.Status)
		}
		if spec := node.Spec; spec.Label != "" || spec.Properties != nil || spec.Deployment != nil {
			t.Errorf("its spec is %+v", spec)
		}
		t.Log("Nothing is written while nothing changes, nor what was written before by another process")
		agenttest.Pass(3 * time.Hour)
		if n := w.Asked("update edgenodes/status"); n != 1 || w.Asked("create edgenodes") != 1 || w.Asked("get edgenodes") > 30 {
			t.Errorf("it was written %d times, and read %d times", n, w.Asked("get edgenodes"))
		}

		t.Log("Nodes that change are told soon, and not each time")
		before := w.Asked("edgenodes")
		for i := range 3600 {
			seen := two()
			seen.CPU = int64(i + 1)
			w.view.SetNodes(seen)
			agenttest.Pass(time.Second)
		}
		agenttest.Pass(2 * time.Minute)
		if got, asked := says(w.node().Status), w.Asked("edgenodes")-before; got != strings.Replace(told, "/8/", "/3600/", 1) || asked > 130 {
			t.Errorf("it says %s after %d requests", got, asked)
		}

		t.Log("A spec that users write is theirs, and a node that they delete is made anew")
		node = w.node()
		node.Spec.Label = "theirs"
		w.put(node)
		w.view.SetNodes(two())
		agenttest.Pass(2 * time.Minute)
		if node := w.node(); says(node.Status) != told || node.Spec.Label != "theirs" {
			t.Errorf("it is %+v", node)
		}
		if err := w.HubClusters.Tracker().Delete(edgev1alpha1.SchemeGroupVersion.WithResource("edgenodes"), "", agenttest.ClusterName); err != nil {
			t.Fatal(err)
		}
		agenttest.Pass(2 * interval)
		if got := says(w.node().Status); got != told {
			t.Errorf("it says %s", got)
		}
	})
}

func TestEdge_OmitsUnknownFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := run(t, func(w *world) { w.id = "" })
		if got := says(w.node().Status); got != "/-/- openhorizon-agent false  0" {
			t.Errorf("of a cluster of which nothing may be read it says %s", got)
		}
		w.set(func() { w.id = "id-of-cluster" })
		w.view.SetNodes(two())
		agenttest.Pass(2 * time.Minute)
		for what, change := range map[string]func(){
			"no nodes are there":       func() { w.view.SetNodes(&hub.Nodes{Arches: map[string]int{}}) },
			"nodes are not known":      func() { w.view.SetNodes(nil) },
			"the id could not be read": func() { w.set(func() { w.idErr = errors.New("timeout") }) },
		} {
			change()
			agenttest.Pass(2 * interval)
			if got := says(w.node().Status); got != told {
				t.Errorf("%s: it says %s", what, got)
			}
		}
		stop()

		t.Log("It is another cluster now")
		w.id, w.idErr = "another", nil
		w.Run(w.session, newTask(w.task))
		agenttest.Pass(interval)
		if got := says(w.node().Status); got != "/-/- openhorizon-agent false another 0" {
			t.Errorf("it says %s", got)
		}
	})
}

func TestEdge_OfOneNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := run(t, func(w *world) {
			w.task.Namespace, w.task.Scoped, w.task.Own.NamespaceScoped = "team", true, true
			served(w, map[string][]string{"apps/v1": {"deployments"}, "example.com/v1": {"widgets", "widgets/status"}, "example.com/v2": {"widgets"}})
		})
		if got := says(w.node().Status); got != runtime.GOARCH+"/-/- team true id-of-cluster 1" {
			t.Errorf("it says %s", got)
		}
		want := edgev1alpha1.ClusterScopedObject{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}
		if got := w.node().Status.ClusterObjects; !slices.Equal(got, []edgev1alpha1.ClusterScopedObject{want}) {
			t.Errorf("there are %v", got)
		}
		served(w, map[string][]string{"apps/v1": {"deployments"}})
		agenttest.Pass(2 * interval)
		if got := w.node().Status.ClusterObjects; len(got) > 0 {
			t.Errorf("there are %v", got)
		}
		for _, request := range w.Spoke.Actions() {
			if resource := request.GetResource().Resource; resource != "version" && resource != "group" && resource != "resource" {
				t.Errorf("the cluster was asked: %s %s", request.GetVerb(), resource)
			}
		}
	})
}

func served(w *world, lists map[string][]string) {
	var all []*metav1.APIResourceList
	for version, names := range lists {
		list := &metav1.APIResourceList{GroupVersion: version}
		for _, name := range names {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		all = append(all, list)
	}
	w.set(func() { w.Spoke.Discovery().(*fakediscovery.FakeDiscovery).Resources = all })
}

// A hub that has denied the cluster, and a hub without edge nodes, get no more than a request from time to time.
func TestEdge_BacksOffFromRefusingHub(t *testing.T) {
	for name, answer := range map[string]error{
		"denied":        apierrors.NewForbidden(corev1.Resource("edgenodes"), agenttest.ClusterName, errors.New("not accepted")),
		"not there":     apierrors.NewNotFound(corev1.Resource("edgenodes"), agenttest.ClusterName),
		"out of memory": apierrors.NewInternalError(errors.New("oh")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := run(t, func(w *world) {
					w.Refuse = func(_, _, resource string) error {
						if strings.HasPrefix(resource, "edgenodes") {
							return answer
						}
						return nil
					}
				})
				agenttest.Pass(10 * time.Hour)
				if n := w.Asked("get edgenodes"); n > 100 || n < 10 {
					t.Errorf("it was asked %d times in ten hours", n)
				}
				w.Set(func() { w.Refuse = nil })
				agenttest.Pass(2 * interval)
				if w.node().Status.ReportTime.IsZero() {
					t.Error("nothing was written")
				}
			})
		})
	}
}

// Users change the spec concurrently.
func TestEdge_RetriesConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conflicts := 2
		w, _ := run(t, func(w *world) {
			w.Refuse = func(_, verb, resource string) error {
				if verb != "update" || resource != "edgenodes/status" || conflicts == 0 {
					return nil
				}
				conflicts--
				return apierrors.NewConflict(corev1.Resource("edgenodes"), agenttest.ClusterName, errors.New("newer"))
			}
		})
		if w.node().Status.ReportTime.IsZero() || conflicts > 0 {
			t.Errorf("%d conflicts are left", conflicts)
		}
	})
}

// The facts of a cluster are not trusted: the hub accepts the report, whatever they are.
func TestEdge_FactsOfHostileClusterAreAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		many := map[string][]string{"a..b/v1": {"x"}, "Upper.Case/v1": {"X"}, "plain/v1": {"z"}}
		for i := range 600 {
			many[fmt.Sprintf("g%d.example.com/v1", i)] = []string{"widgets", strings.Repeat("x", 300), "a b"}
		}
		w, _ := run(t, func(w *world) {
			w.task.Scoped = true
			served(w, many)
			w.view.SetNodes(&hub.Nodes{Arches: map[string]int{"a b": 9, strings.Repeat("x", 100): 8, "": 7, "arm64": 1, "amd64": 1}, CPU: 1 << 62, Memory: -1})
		})
		status := w.node().Status
		if got := says(status); got != "amd64/-/- openhorizon-agent true id-of-cluster 256" {
			t.Errorf("it says %s", got)
		}
		internal := &edge.EdgeNode{}
		if err := edgev1alpha1.Convert_v1alpha1_EdgeNode_To_edge_EdgeNode(w.node(), internal, nil); err != nil {
			t.Fatal(err)
		}
		internal.ResourceVersion = "1"
		if errs := validation.ValidateEdgeNodeStatusUpdate(internal, internal); len(errs) > 0 {
			t.Errorf("the hub refuses it: %v", errs.ToAggregate())
		}
	})
}

func TestArch_IsStable(t *testing.T) {
	for _, c := range []struct {
		arches       map[string]int
		before, want string
	}{
		{map[string]int{"amd64": 2, "arm64": 3}, "", "arm64"},
		{map[string]int{"amd64": 2, "arm64": 2}, "", "amd64"},
		{map[string]int{"amd64": 1, "arm64": 9}, "amd64", "amd64"},
		{map[string]int{"arm64": 9}, "amd64", "arm64"},
		{map[string]int{"": 9, "a b": 8}, "", ""},
		{map[string]int{"": 9, "amd64": 1}, "", "amd64"},
	} {
		if got := archOf(c.arches, c.before); got != c.want {
			t.Errorf("%v after %q: got %q, want %q", c.arches, c.before, got, c.want)
		}
	}
}
