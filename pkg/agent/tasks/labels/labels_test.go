// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package labels_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/labels"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const remembered = "agent.open-cluster-management.io/cluster-labels"

// labelled returns a session whose ManagedCluster on the hub has labels of another client.
func labelled(w *agenttest.World, set map[string]string) task.Session {
	s := w.Session()
	c := w.Cluster()
	c.Labels, c.Annotations = map[string]string{"theirs": "x"}, map[string]string{"example.com/a": "b"}
	maps.Copy(c.Labels, set)
	w.Update(c)
	return s
}

func expect(t *testing.T, w *agenttest.World, want map[string]string, keys string) {
	t.Helper()
	want = maps.Clone(want)
	want["theirs"] = "x"
	if got := w.Cluster(); !maps.Equal(got.Labels, want) || got.Annotations[remembered] != keys || got.Annotations["example.com/a"] != "b" {
		t.Errorf("the cluster has %v, %v, want %v", got.Labels, got.Annotations, want)
	}
}

func change(w *agenttest.World, what func(*clusterv1.ManagedCluster)) {
	c := w.Cluster()
	what(c)
	w.Update(c)
}

// world returns a World whose cluster has a version.
func world(t *testing.T, gitVersion string) *agenttest.World {
	t.Helper()
	w := agenttest.NewWorld(t)
	w.Spoke.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: gitVersion}
	return w
}

// node sets the location of the cluster, by its first node.
func node(t *testing.T, w *agenttest.World, region, providerID string) {
	t.Helper()
	_ = w.Spoke.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "a")
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	if region != "" {
		n.Labels = map[string]string{corev1.LabelTopologyRegion: region}
	}
	if err := w.Spoke.Tracker().Add(n); err != nil {
		t.Fatal(err)
	}
}

func TestLabels_FromFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		s := labelled(w, map[string]string{"a": "of an admin"})
		stop := w.Run(s, labels.New(labels.Options{Labels: map[string]string{"a": "1", "b": "2"}, Own: w.Own(), Tell: w.Home().Report}))
		agenttest.Pass(time.Second)
		expect(t, w, map[string]string{"a": "1", "b": "2"}, "a,b")
		writes := w.Asked("update managedclusters")
		agenttest.Pass(3 * time.Hour)
		if n := w.Asked("update managedclusters") - writes; n != 0 {
			t.Errorf("what is right was written %d times", n)
		}
		change(w, func(c *clusterv1.ManagedCluster) { delete(c.Labels, "a"); c.Labels["theirs2"] = "y" })
		agenttest.Pass(6 * time.Minute)
		expect(t, w, map[string]string{"a": "1", "b": "2", "theirs2": "y"}, "a,b")
		stop()

		// With different flags, in another process: its state is on the hub.
		stop = w.Run(s, labels.New(labels.Options{Labels: map[string]string{"b": "3"}, Own: w.Own(), Tell: w.Home().Report}))
		agenttest.Pass(time.Second)
		expect(t, w, map[string]string{"b": "3", "theirs2": "y"}, "b")
		stop()
		stop = w.Run(s, labels.New(labels.Options{Own: w.Own(), Tell: w.Home().Report}))
		agenttest.Pass(time.Second)
		expect(t, w, map[string]string{"theirs2": "y"}, "")
		asked := w.Asked("managedclusters")
		agenttest.Pass(3 * time.Hour)
		if n := w.Asked("managedclusters") - asked; n != 0 {
			t.Errorf("without flags it asked %d times more", n)
		}
		stop()
	})
}

func TestLabels_AreDetected(t *testing.T) {
	region, cloud, vendor := registration.LabelRegion, registration.LabelCloud, registration.LabelVendor
	synctest.Test(t, func(t *testing.T) {
		w := world(t, "v1.35.0-eks-abc")
		node(t, w, "eu-west-1", "aws:///eu-west-1a/i-1")
		s := labelled(w, nil)
		stop := w.Run(s, labels.New(labels.Options{Detect: true, Labels: map[string]string{vendor: "own"}, Own: w.Own(), Tell: w.Home().Report}))
		agenttest.Pass(time.Second)
		all := strings.Join([]string{cloud, region, vendor}, ",")
		expect(t, w, map[string]string{region: "eu-west-1", cloud: "Amazon", vendor: "own"}, all)
		// Labels that cannot be detected any more stay, and detected ones are updated.
		node(t, w, "", "gce://p/z/n")
		agenttest.Pass(6 * time.Minute)
		expect(t, w, map[string]string{region: "eu-west-1", cloud: "Google", vendor: "own"}, all)
		stop()
		stop = w.Run(s, labels.New(labels.Options{Own: w.Own(), Tell: w.Home().Report}))
		agenttest.Pass(time.Second)
		expect(t, w, map[string]string{}, "")
		stop()
	})
}

func TestLabels_OmitsUnknown(t *testing.T) {
	region, cloud, vendor := registration.LabelRegion, registration.LabelCloud, registration.LabelVendor
	for _, c := range []struct {
		region, providerID, version string
		want                        map[string]string
	}{
		{"", "", "v1.35.0", map[string]string{}},
		{"no label: value", "kind://docker/a/b", "v1.35.0", map[string]string{}},
		{"r", "azure:///x", "v1.35.0", map[string]string{region: "r", cloud: "Azure"}},
		{"", "", "v1.35.0-gke.100", map[string]string{vendor: "GKE"}},
		{"", "gce", "v1.35.0+k3s1", map[string]string{cloud: "Google", vendor: "K3S"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := world(t, c.version)
			node(t, w, c.region, c.providerID)
			stop := w.Run(labelled(w, nil), labels.New(labels.Options{Detect: true, Own: w.Own(), Tell: w.Home().Report}))
			agenttest.Pass(time.Second)
			got := maps.Clone(w.Cluster().Labels)
			delete(got, "theirs")
			if !maps.Equal(got, c.want) {
				t.Errorf("%+v: got %v", c, got)
			}
			stop()
		})
	}
}

// TestLabels_FlappingLabelIsWrittenRarely: the label is written rarely, however often the cluster changes it.
func TestLabels_FlappingLabelIsWrittenRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, "v1.35.0")
		node(t, w, "a", "")
		stop := w.Run(labelled(w, nil), labels.New(labels.Options{Detect: true, Own: w.Own(), Tell: w.Home().Report}))
		for i := range 3600 {
			node(t, w, fmt.Sprint("r", i), "")
			agenttest.Pass(time.Second)
		}
		if n := w.Asked("update managedclusters"); n < 2 || n > 1+3600/30 {
			t.Errorf("%d writes in an hour, want some, and no two in 30 s", n)
		}
		stop()
	})
}

// TestLabels_RefusalIsReportedAndBacksOff: the admin learns which right is missing.
func TestLabels_RefusalIsReportedAndBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		const says = `user "x" cannot add the label k=v: this needs the RBAC rule {…}`
		w.Refuse = func(_, verb, resource string) error {
			if verb == "update" && resource == "managedclusters" {
				return apierrors.NewForbidden(clusterv1.SchemeGroupVersion.WithResource("managedclusters").GroupResource(), agenttest.ClusterName, errors.New(says))
			}
			return nil
		}
		stop := w.Run(labelled(w, nil), labels.New(labels.Options{Labels: map[string]string{"k": "v"}, Own: w.Own(), Tell: w.Home().Report}))
		agenttest.Pass(time.Hour)
		told := 0
		for _, message := range w.Events() {
			if strings.Contains(message, says) && strings.Contains(message, "--agent-labels") {
				told++
			}
		}
		if told < 1 || told > 7 {
			t.Errorf("it was told %d times in an hour: %q", told, w.Events())
		}
		if n := w.Asked("update managedclusters"); n < 5 || n > 30 {
			t.Errorf("%d tries in an hour", n)
		}
		expect(t, w, map[string]string{}, "")
		// Once an admin has granted the right, the label is set.
		w.Set(func() { w.Refuse = nil })
		agenttest.Pass(6 * time.Minute)
		expect(t, w, map[string]string{"k": "v"}, "k")
		stop()
	})
}

// TestLabels_HonorsRetryAfter: the hub limits how often agents may change labels. That is not a refusal.
func TestLabels_HonorsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		s := labelled(w, nil)
		w.Refuse = func(_, verb, resource string) error {
			if verb == "update" && resource == "managedclusters" {
				return apierrors.NewTooManyRequests("the labels change too often", 60)
			}
			return nil
		}
		stop := w.Run(s, labels.New(labels.Options{Labels: map[string]string{"k": "v"}, Own: w.Own(), Tell: w.Home().Report}))
		agenttest.Pass(5*time.Minute + time.Second)
		if n := w.Asked("update managedclusters"); n < 4 || n > 6 {
			t.Errorf("%d tries in five minutes, want one in each", n)
		}
		if told := w.Events(); len(told) > 0 {
			t.Errorf("it was told that %q", told)
		}
		w.Set(func() { w.Refuse = nil })
		agenttest.Pass(2 * time.Minute)
		expect(t, w, map[string]string{"k": "v"}, "k")
		stop()
	})
}

func TestOptions_Validate(t *testing.T) {
	many := map[string]string{}
	for i := range registration.MaxClusterLabels + 1 {
		many[fmt.Sprint("k", i)] = ""
	}
	for wrong, set := range map[string]map[string]string{
		"":                   {"a": "", registration.LabelRegion: "apac"},
		"is not a label key": {"a b": "x"},
		"the value of a":     {"a": strings.Repeat("x", 64)},
		"the limit is 16":    many,
	} {
		err := errors.Join((&labels.Options{Labels: set}).Validate()...)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%v: %v, want %q", set, err, wrong)
		}
	}
}
