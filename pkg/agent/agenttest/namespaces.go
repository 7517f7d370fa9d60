// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// HubLabel is upstream's label for the hub of the tests: the hash is of its address.
const HubLabel = "clusterset.open-cluster-management.io/9f63aa51ee73742847a1dd584c640c8b579dc14418ab416e3dd716fbe9362d3"

// Ask makes the hub, which accepts the cluster, ask it for namespaces, "set/namespace".
func (w *World) Ask(entries ...string) {
	w.T.Helper()
	c := w.Cluster()
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
	w.Update(c)
}

// AddNamespace creates a namespace on the managed cluster.
func (w *World) AddNamespace(name string, labels map[string]string) {
	w.T.Helper()
	if err := w.Spoke.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
		w.T.Fatal(err)
	}
}

// Labels returns the labels of all namespaces of the cluster.
func (w *World) Labels() map[string]map[string]string {
	w.T.Helper()
	list, err := w.Spoke.CoreV1().Namespaces().List(w.T.Context(), metav1.ListOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	labels := map[string]map[string]string{}
	for i := range list.Items {
		labels[list.Items[i].Name] = list.Items[i].Labels
	}
	return labels
}

// ExpectLabel reports an error unless a namespace has HubLabel with a value.
func (w *World) ExpectLabel(name, want string) {
	w.T.Helper()
	if got := w.Labels()[name][HubLabel]; got != want {
		w.T.Errorf("the label of namespace %s is %q, want %q", name, got, want)
	}
}

// Reported returns the condition of one entry.
func (w *World) Reported(entry string) metav1.Condition {
	w.T.Helper()
	for _, n := range w.Cluster().Status.ManagedNamespaces {
		if n.ClusterSet+"/"+n.Name == entry {
			if c := meta.FindStatusCondition(n.Conditions, "NamespaceAvailable"); c != nil {
				return *c
			}
		}
	}
	return metav1.Condition{}
}

// ExpectReported reports an error unless one entry has this condition.
func (w *World) ExpectReported(entry string, status metav1.ConditionStatus, reason, message string) {
	w.T.Helper()
	got := w.Reported(entry)
	if got.Status != status || got.Reason != reason || !strings.Contains(got.Message, message) || len(got.Message) > 1024 {
		w.T.Errorf("%.80s is reported as %+v, want %s, %s, %q", entry, got, status, reason, message)
	}
}

// NamespaceWrites returns the agent's writes to namespaces.
func (w *World) NamespaceWrites() (writes []string) {
	for _, action := range w.Spoke.Actions() {
		if action.GetResource().Resource == "namespaces" && IsWrite(action.GetVerb()) {
			writes = append(writes, fmt.Sprintf("%s %v", action.GetVerb(), action))
		}
	}
	return writes
}

// RefuseNamespaces makes the cluster respond to requests for namespaces with the error of a function, if it is not nil.
func (w *World) RefuseNamespaces(refuse func(verb, name string) error) {
	w.Spoke.PrependReactor("*", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
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
