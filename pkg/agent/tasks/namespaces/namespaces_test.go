// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/namespaces"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// home is the namespace of the agent's secrets, which differs from its other one on the cluster.
const home = "home-of-agent"

// running runs the namespaces task, and the status task, which reports its results to the hub.
func running(w *agenttest.World) (*hub.View, *agenttest.Facts, func()) {
	view := hub.NewView(60)
	reports, facts := w.Status(view, &hub.ClusterConfig{})
	own := w.Own()
	own.Home = home
	stop := w.Run(w.Session(), reports, namespaces.New(own, view))
	agenttest.Pass(time.Minute)
	return view, facts, stop
}

func TestNamespaces_AreCreatedLabeledAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		_, _, stop := running(w)
		own := map[string]string{"team": "payments", "pod-security.kubernetes.io/enforce": "restricted"}
		w.AddNamespace("theirs", own)
		w.Ask("dev/new", "dev/theirs", "global/new")
		agenttest.Pass(time.Minute)
		w.ExpectLabel("new", "true")
		w.ExpectLabel("theirs", "true")
		if got := maps.Clone(w.Labels()["theirs"]); got["team"] != own["team"] || len(got) != len(own)+1 {
			t.Errorf("a namespace that was there has the labels %v", got)
		}
		for _, entry := range []string{"dev/new", "dev/theirs", "global/new"} {
			w.ExpectReported(entry, metav1.ConditionTrue, "NamespaceApplied", "")
		}
		writes, written := len(w.NamespaceWrites()), w.Asked("patch managedclusters/status")
		agenttest.Pass(3 * time.Hour)
		if n := len(w.NamespaceWrites()) - writes; n != 0 {
			t.Errorf("what is right was written %d times", n)
		}
		if n := w.Asked("patch managedclusters/status") - written; n != 0 {
			t.Errorf("the status was written %d times", n)
		}
		// One is deleted, and the other loses the label.
		if err := w.Spoke.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("namespaces"), "", "new"); err != nil {
			t.Fatal(err)
		}
		theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
		if err := w.Spoke.Tracker().Update(corev1.SchemeGroupVersion.WithResource("namespaces"), theirs, ""); err != nil {
			t.Fatal(err)
		}
		agenttest.Pass(time.Minute)
		w.ExpectLabel("new", "true")
		w.ExpectLabel("theirs", "true")
		stop()
	})
}

func TestNamespaces_RemainWhenNotRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		_, _, stop := running(w)
		const another = "clusterset.open-cluster-management.io/another"
		w.AddNamespace("others", map[string]string{another: "true"})
		w.Ask("dev/a", "dev/b", "prod/b")
		agenttest.Pass(time.Minute)
		w.Ask("prod/b")
		agenttest.Pass(time.Minute)
		w.ExpectLabel("a", "false")
		w.ExpectLabel("b", "true")
		w.Ask("dev/a")
		agenttest.Pass(time.Minute)
		w.ExpectLabel("a", "true")
		w.ExpectLabel("b", "false")
		w.Ask()
		agenttest.Pass(time.Minute)
		w.ExpectLabel("a", "false")
		if got := w.Labels()["others"]; got[another] != "true" || len(got) != 1 {
			t.Errorf("a namespace of another hub has the labels %v", got)
		}
		for _, write := range w.NamespaceWrites() {
			if strings.HasPrefix(write, "delete") || strings.HasPrefix(write, "update") {
				t.Errorf("the agent did: %s", write)
			}
		}
		stop()
	})
}

// An attacker who controls the hub, or one of its sets, may try this.
func TestNamespaces_OfClusterAreNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		_, _, stop := running(w)
		names := []string{"kube-system", "kube-public", "kube-flannel", "default", agenttest.Namespace, home, "", ".", "..", "../nodes", "a/finalize",
			"A", "a b", "a.b", "*", "x\n", strings.Repeat("x", 64), strings.Repeat("<x>", 10_000)}
		w.AddNamespace("default", nil)
		w.AddNamespace("kube-public", nil)
		w.AddNamespace(agenttest.Namespace, nil)
		w.AddNamespace(home, nil)
		before := w.Labels()
		var entries []string
		for _, name := range names {
			entries = append(entries, "evil/"+name)
		}
		w.Ask(append(entries, "dev/good")...)
		agenttest.Pass(time.Minute)
		for _, entry := range entries {
			w.ExpectReported(entry, metav1.ConditionFalse, "NamespaceApplyFailed", "name")
		}
		w.ExpectReported("dev/good", metav1.ConditionTrue, "NamespaceApplied", "")
		after := w.Labels()
		delete(after, "good")
		if fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the namespaces were %v and are %v", before, after)
		}
		if writes := w.NamespaceWrites(); len(writes) != 1 {
			t.Errorf("the agent did: %q", writes)
		}
		stop()
	})
}

func TestNamespaces_AreReleasedOnDenial(t *testing.T) {
	for name, deny := range map[string]func(*clusterv1.ManagedCluster){
		"denied":  func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false },
		"deleted": func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = new(metav1.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := agenttest.NewWorld(t)
				_, _, stop := running(w)
				w.Ask("dev/a")
				agenttest.Pass(time.Minute)
				w.ExpectLabel("a", "true")
				c := w.Cluster()
				deny(c)
				w.Update(c)
				agenttest.Pass(time.Minute)
				w.ExpectLabel("a", "false")
				stop()
			})
		})
	}
	// A hub that does not respond has not dropped its namespaces.
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		_, _, stop := running(w)
		w.Ask("dev/a")
		agenttest.Pass(time.Minute)
		w.Set(func() { w.Refuse = func(string, string, string) error { return errors.New("connection refused") } })
		agenttest.Pass(time.Hour)
		w.ExpectLabel("a", "true")
		stop()
	})
}

func TestNamespaces_ReportsAndRetriesFailures(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("namespaces"), "", errors.New("no such right"))
	for name, failing := range map[string]struct {
		refuse func(verb, name string) error
		failed []string
	}{
		"making":    {func(verb, name string) error { return when(verb == "create" && name == "a", forbidden) }, []string{"dev/a"}},
		"labelling": {func(verb, name string) error { return when(verb == "patch" && name == "there", forbidden) }, []string{"dev/there"}},
		"listing":   {func(verb, _ string) error { return when(verb == "list", forbidden) }, []string{"dev/a", "dev/b", "dev/there"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := agenttest.NewWorld(t)
				_, facts, stop := running(w)
				w.AddNamespace("there", nil)
				var mended atomic.Bool
				w.RefuseNamespaces(func(verb, name string) error {
					if mended.Load() {
						return nil
					}
					return failing.refuse(verb, name)
				})
				w.Ask("dev/a", "dev/b", "dev/there")
				facts.Set(status.Observation{Version: "v9"})
				agenttest.Pass(time.Minute)
				for _, entry := range []string{"dev/a", "dev/b", "dev/there"} {
					if slices.Contains(failing.failed, entry) {
						w.ExpectReported(entry, metav1.ConditionFalse, "NamespaceApplyFailed", "no such right")
					} else {
						w.ExpectReported(entry, metav1.ConditionTrue, "NamespaceApplied", "")
					}
				}
				if got := w.Cluster().Status.Version.Kubernetes; got != "v9" {
					t.Errorf("the rest of the status was not written: %s", got)
				}
				mended.Store(true)
				agenttest.Pass(time.Minute)
				for _, entry := range failing.failed {
					w.ExpectReported(entry, metav1.ConditionTrue, "NamespaceApplied", "")
				}
				stop()
			})
		})
	}
}

func when(condition bool, err error) error {
	if condition {
		return err
	}
	return nil
}

func TestNamespaces_TerminatingAreNotAvailable(t *testing.T) {
	for name, labels := range map[string]map[string]string{"made before": {agenttest.HubLabel: "true"}, "another's": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := agenttest.NewWorld(t)
				view, _, stop := running(w)
				going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels, DeletionTimestamp: new(metav1.Now())}}
				if err := w.Spoke.Tracker().Add(going); err != nil {
					t.Fatal(err)
				}
				w.Ask("dev/a")
				view.Changed()
				agenttest.Pass(10 * time.Second) // one check
				w.ExpectReported("dev/a", metav1.ConditionFalse, "NamespaceApplyFailed", "being deleted")
				if err := w.Spoke.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("namespaces"), "", "a"); err != nil {
					t.Fatal(err)
				}
				agenttest.Pass(time.Minute)
				w.ExpectReported("dev/a", metav1.ConditionTrue, "NamespaceApplied", "")
				w.ExpectLabel("a", "true")
				stop()
			})
		})
	}
}

// However many namespaces there are, and however slow the cluster is, the hub continues to get reports of the cluster.
func TestNamespaces_DoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		view, facts, stop := running(w)
		w.RefuseNamespaces(func(verb, _ string) error {
			if verb == "create" {
				time.Sleep(2 * time.Second)
			}
			return nil
		})
		const many = 100
		var entries []string
		for i := range many {
			entries = append(entries, fmt.Sprintf("dev/n%d", i))
		}
		w.Ask(entries...)
		facts.Set(status.Observation{Version: "v9"})
		view.Changed()
		agenttest.Pass(20 * time.Second)
		if got := w.Cluster().Status.Version.Kubernetes; got != "v9" {
			t.Error("the status waits for all of the namespaces")
		}
		agenttest.Pass(10 * time.Minute)
		for _, entry := range entries {
			w.ExpectReported(entry, metav1.ConditionTrue, "NamespaceApplied", "")
		}
		stop()
	})
}

func TestNamespaces_AreNotReportedWhileClusterIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		_, facts, stop := running(w)
		w.Ask("dev/a")
		agenttest.Pass(time.Minute)
		before := w.Reported("dev/a")
		w.RefuseNamespaces(func(string, string) error { return errors.New("connection refused") })
		facts.Set(status.Observation{Unhealthy: errors.New("etcd failed")})
		agenttest.Pass(time.Minute)
		if after := w.Reported("dev/a"); after != before {
			t.Errorf("it was %+v and is %+v", before, after)
		}
		stop()
	})
}

// Without the status task it has no right on the hub, and needs none.
func TestNamespaces_WithoutStatusTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		view := hub.NewView(60)
		stop := w.Run(w.Session(), namespaces.New(w.Own(), view))
		view.RequestNamespaces([]string{"a", "kube-system"})
		agenttest.Pass(time.Second)
		w.ExpectLabel("a", "true")
		if got := view.Namespaces(); len(got) != 2 || got["a"] != nil || got["kube-system"] == nil {
			t.Errorf("reported is %v", got)
		}
		if n := w.Asked(""); n > 0 {
			t.Errorf("the hub was asked %d times", n)
		}
		stop()
	})
}
