// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestKill_MembersExistAfterRestart verifies that derived resources are computed again, and that resource versions continue.
func TestKill_MembersExistAfterRestart(t *testing.T) {
	h := harness.LendHub(t)
	client := harness.Ours(t, h.AdminConfig())
	set := "kept"
	harness.Must(client.ClusterV1beta2().ManagedClusterSets().Create(t.Context(), harness.LegacySet(set), metav1.CreateOptions{}))(t)
	for i := range 5 {
		harness.Must(client.ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster(fmt.Sprintf("c%d", i), map[string]string{harness.SetLabel: set}), metav1.CreateOptions{}))(t)
	}
	before := harness.Must(client.ViewV1alpha1().ClusterSetMembers().List(t.Context(), harness.InSet(set)))(t)
	h.StopHubAPIServer(0)
	if err := h.StartHubAPIServer(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := h.RouteFront(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	after := harness.Must(client.ViewV1alpha1().ClusterSetMembers().List(t.Context(), harness.InSet(set)))(t)
	if len(after.Items) != 5 || len(before.Items) != 5 {
		t.Fatalf("%d members before, %d after", len(before.Items), len(after.Items))
	}
	for i := range after.Items {
		if after.Items[i].UID != before.Items[i].UID || after.Items[i].Name != before.Items[i].Name {
			t.Errorf("%s has become %s", before.Items[i].Name, after.Items[i].Name)
		}
	}
	var was, is uint64
	if _, err := fmt.Sscan(before.ResourceVersion+" "+after.ResourceVersion, &was, &is); err != nil || is < was {
		t.Errorf("the version has gone from %d to %d, %v", was, is, err)
	}
	// A watch from before the restart is resumed, or must list again; it does not hang, and it loses no events.
	options := harness.InSet(set)
	options.ResourceVersion = before.ResourceVersion
	w, err := client.ViewV1alpha1().ClusterSetMembers().Watch(t.Context(), options)
	if apierrors.IsResourceExpired(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	harness.Must(client.ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster("late", map[string]string{harness.SetLabel: set}), metav1.CreateOptions{}))(t)
	select {
	case e := <-w.ResultChan():
		status := apierrors.FromObject(e.Object)
		if e.Type == "ERROR" && !apierrors.IsResourceExpired(status) || e.Type != "ERROR" && member(e).Spec.Cluster != "late" {
			t.Errorf("got %s %v", e.Type, errors.Unwrap(status))
		}
	case <-time.After(harness.Timeout):
		t.Error("the watch is silent")
	}
}
