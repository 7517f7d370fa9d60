// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// hubLabel is upstream's for the hub of the tests: the hash is of its address.
const hubLabel = "clusterset.open-cluster-management.io/9f63aa51ee73742847a1dd584c640c8b579dc14418ab416e3dd716fbe9362d3"

// ask has the hub, which accepts the cluster, ask it for namespaces, "set/namespace".
func (w *world) ask(entries ...string) {
	w.t.Helper()
	c := w.cluster()
	c.Spec.HubAcceptsClient = true
	before := c.Status.ManagedNamespaces
	c.Status.ManagedNamespaces = nil
	for _, entry := range entries {
		set, name, _ := strings.Cut(entry, "/")
		next := clusterv1.ClusterSetManagedNamespaceConfig{ClusterSet: set, Name: name}
		for _, b := range before {
			if b.ClusterSet == set && b.Name == name {
				next = b
			}
		}
		c.Status.ManagedNamespaces = append(c.Status.ManagedNamespaces, next)
	}
	w.store(c)
}

func (w *world) store(c *clusterv1.ManagedCluster) {
	w.t.Helper()
	if err := w.hubClusters.Tracker().Update(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), c, ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) addNamespace(name string, labels map[string]string) {
	w.t.Helper()
	if err := w.spoke.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
		w.t.Fatal(err)
	}
}

// labels are those of all namespaces of the cluster.
func (w *world) labels() map[string]map[string]string {
	w.t.Helper()
	list, err := w.spoke.CoreV1().Namespaces().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	labels := map[string]map[string]string{}
	for i := range list.Items {
		labels[list.Items[i].Name] = list.Items[i].Labels
	}
	return labels
}

func (w *world) expectLabel(name, want string) {
	w.t.Helper()
	if got := w.labels()[name][hubLabel]; got != want {
		w.t.Errorf("the label of namespace %s is %q, want %q", name, got, want)
	}
}

// reported is the condition of one entry.
func (w *world) reported(entry string) metav1.Condition {
	w.t.Helper()
	for _, n := range w.cluster().Status.ManagedNamespaces {
		if n.ClusterSet+"/"+n.Name == entry {
			if c := meta.FindStatusCondition(n.Conditions, "NamespaceAvailable"); c != nil {
				return *c
			}
		}
	}
	return metav1.Condition{}
}

func (w *world) expectReported(entry string, status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	got := w.reported(entry)
	if got.Status != status || got.Reason != reason || !strings.Contains(got.Message, message) || len(got.Message) > 1024 {
		w.t.Errorf("%.80s is reported as %+v, want %s, %s, %q", entry, got, status, reason, message)
	}
}

// namespaceWrites are what the agent has changed of namespaces.
func (w *world) namespaceWrites() (writes []string) {
	for _, action := range w.spoke.Actions() {
		if action.GetResource().Resource == "namespaces" && isWrite(action.GetVerb()) {
			writes = append(writes, fmt.Sprintf("%s %v", action.GetVerb(), action))
		}
	}
	return writes
}

func TestNamespaces_AreMadeLabelledAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		own := map[string]string{"team": "payments", "pod-security.kubernetes.io/enforce": "restricted"}
		w.addNamespace("theirs", own)
		w.ask("dev/new", "dev/theirs", "global/new")
		pass(time.Minute)
		w.expectLabel("new", "true")
		w.expectLabel("theirs", "true")
		if got := maps.Clone(w.labels()["theirs"]); got["team"] != own["team"] || len(got) != len(own)+1 {
			t.Errorf("a namespace that was there has the labels %v", got)
		}
		for _, entry := range []string{"dev/new", "dev/theirs", "global/new"} {
			w.expectReported(entry, metav1.ConditionTrue, "NamespaceApplied", "")
		}
		writes, written := len(w.namespaceWrites()), w.asked("patch managedclusters/status")
		pass(3 * time.Hour)
		if n := len(w.namespaceWrites()) - writes; n != 0 {
			t.Errorf("what is right was written %d times", n)
		}
		if n := w.asked("patch managedclusters/status") - written; n != 0 {
			t.Errorf("the status was written %d times", n)
		}
		// Somebody removes one, and takes the label from the other.
		if err := w.spoke.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("namespaces"), "", "new"); err != nil {
			t.Fatal(err)
		}
		theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
		if err := w.spoke.Tracker().Update(corev1.SchemeGroupVersion.WithResource("namespaces"), theirs, ""); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		w.expectLabel("new", "true")
		w.expectLabel("theirs", "true")
		stop()
	})
}

func TestNamespaces_StayWhenNobodyAsksForThemAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		const another = "clusterset.open-cluster-management.io/another"
		w.addNamespace("others", map[string]string{another: "true"})
		w.ask("dev/a", "dev/b", "prod/b")
		pass(time.Minute)
		w.ask("prod/b")
		pass(time.Minute)
		w.expectLabel("a", "false")
		w.expectLabel("b", "true")
		w.ask("dev/a")
		pass(time.Minute)
		w.expectLabel("a", "true")
		w.expectLabel("b", "false")
		w.ask()
		pass(time.Minute)
		w.expectLabel("a", "false")
		if got := w.labels()["others"]; got[another] != "true" || len(got) != 1 {
			t.Errorf("a namespace of another hub has the labels %v", got)
		}
		for _, write := range w.namespaceWrites() {
			if strings.HasPrefix(write, "delete") || strings.HasPrefix(write, "update") {
				t.Errorf("the agent did: %s", write)
			}
		}
		stop()
	})
}

// What whoever rules the hub, or one of its sets, may try.
func TestNamespaces_OfTheClusterItselfAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		names := []string{"kube-system", "kube-public", "kube-flannel", "default", namespace, "", ".", "..", "../nodes", "a/finalize",
			"A", "a b", "a.b", "*", "x\n", strings.Repeat("x", 64), strings.Repeat("<x>", 10_000)}
		w.addNamespace("default", nil)
		w.addNamespace("kube-public", nil)
		w.addNamespace(namespace, nil)
		before := w.labels()
		var entries []string
		for _, name := range names {
			entries = append(entries, "evil/"+name)
		}
		w.ask(append(entries, "dev/good")...)
		pass(time.Minute)
		for _, entry := range entries {
			w.expectReported(entry, metav1.ConditionFalse, "NamespaceApplyFailed", "name")
		}
		w.expectReported("dev/good", metav1.ConditionTrue, "NamespaceApplied", "")
		after := w.labels()
		delete(after, "good")
		if fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the namespaces were %v and are %v", before, after)
		}
		if writes := w.namespaceWrites(); len(writes) != 1 {
			t.Errorf("the agent did: %q", writes)
		}
		stop()
	})
}

func TestNamespaces_AreReleasedWhenTheHubDeniesTheCluster(t *testing.T) {
	for name, deny := range map[string]func(*clusterv1.ManagedCluster){
		"denied":  func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false },
		"deleted": func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = new(metav1.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				_, stop := w.joined()
				w.ask("dev/a")
				pass(time.Minute)
				w.expectLabel("a", "true")
				c := w.cluster()
				deny(c)
				w.store(c)
				pass(time.Minute)
				w.expectLabel("a", "false")
				stop()
			})
		})
	}
	// A hub that does not answer has not said that it asks for nothing.
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		w.ask("dev/a")
		pass(time.Minute)
		w.set(func() { w.refuse = func(string, string, string) error { return errors.New("connection refused") } })
		pass(time.Hour)
		w.expectLabel("a", "true")
		stop()
	})
}

// refuseSpoke has the cluster answer requests about namespaces with an error, while there is one.
func (w *world) refuseSpoke(refuse func(verb, name string) error) {
	w.spoke.PrependReactor("*", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := ""
		switch a := action.(type) {
		case clienttesting.CreateAction:
			name = a.GetObject().(*corev1.Namespace).Name
		case clienttesting.PatchAction:
			name = a.GetName()
		}
		err := refuse(action.GetVerb(), name)
		return err != nil, nil, err
	})
}

func TestNamespaces_WhatFailsIsReportedAndTriedAgain(t *testing.T) {
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
				w := newWorld(t)
				a, stop := w.joined()
				w.addNamespace("there", nil)
				var mended atomic.Bool
				w.refuseSpoke(func(verb, name string) error {
					if mended.Load() {
						return nil
					}
					return failing.refuse(verb, name)
				})
				w.ask("dev/a", "dev/b", "dev/there")
				a.facts.(*fakeFacts).set(observation{version: "v9"})
				pass(time.Minute)
				for _, entry := range []string{"dev/a", "dev/b", "dev/there"} {
					if slices.Contains(failing.failed, entry) {
						w.expectReported(entry, metav1.ConditionFalse, "NamespaceApplyFailed", "no such right")
					} else {
						w.expectReported(entry, metav1.ConditionTrue, "NamespaceApplied", "")
					}
				}
				if got := w.cluster().Status.Version.Kubernetes; got != "v9" {
					t.Errorf("the rest of the status was not written: %s", got)
				}
				mended.Store(true)
				pass(time.Minute)
				for _, entry := range failing.failed {
					w.expectReported(entry, metav1.ConditionTrue, "NamespaceApplied", "")
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

func TestNamespaces_ThatAreBeingDeletedAreNotAvailable(t *testing.T) {
	for name, labels := range map[string]map[string]string{"made before": {hubLabel: "true"}, "another's": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, stop := w.joined()
				going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels, DeletionTimestamp: new(metav1.Now())}}
				if err := w.spoke.Tracker().Add(going); err != nil {
					t.Fatal(err)
				}
				w.ask("dev/a")
				a.kick()
				pass(10 * time.Second) // one look
				w.expectReported("dev/a", metav1.ConditionFalse, "NamespaceApplyFailed", "being deleted")
				if err := w.spoke.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("namespaces"), "", "a"); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				w.expectReported("dev/a", metav1.ConditionTrue, "NamespaceApplied", "")
				w.expectLabel("a", "true")
				stop()
			})
		})
	}
}

// However many there are, and however slow the cluster is, the hub goes on hearing of the cluster.
func TestNamespaces_KeepNothingElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, stop := w.joined()
		w.refuseSpoke(func(verb, _ string) error {
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
		w.ask(entries...)
		a.facts.(*fakeFacts).set(observation{version: "v9"})
		a.kick()
		pass(20 * time.Second)
		if got := w.cluster().Status.Version.Kubernetes; got != "v9" {
			t.Error("the status waits for all of the namespaces")
		}
		pass(10 * time.Minute)
		for _, entry := range entries {
			w.expectReported(entry, metav1.ConditionTrue, "NamespaceApplied", "")
		}
		stop()
	})
}

func TestNamespaces_NothingIsSaidOfThemWhileTheClusterIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, stop := w.joined()
		w.ask("dev/a")
		pass(time.Minute)
		before := w.reported("dev/a")
		w.refuseSpoke(func(string, string) error { return errors.New("connection refused") })
		a.facts.(*fakeFacts).set(observation{unhealthy: errors.New("etcd failed")})
		pass(time.Minute)
		if after := w.reported("dev/a"); after != before {
			t.Errorf("it was %+v and is %+v", before, after)
		}
		stop()
	})
}
