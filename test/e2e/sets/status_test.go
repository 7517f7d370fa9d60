// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/controllers/sets/clustersetstatus"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestStatus_SetsCountTheirMembers(t *testing.T) {
	set, n := harness.Unique("set"), 5
	harness.NewSet(t, set)
	condition := func(ctx context.Context) (string, error) {
		s, err := harness.Admin(t).ClusterV1beta2().ManagedClusterSets().Get(ctx, set, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		for _, c := range s.Status.Conditions {
			if c.Type == "ClusterSetEmpty" {
				return fmt.Sprintf("%s %s %s %d", c.Status, c.Reason, c.Message, s.Generation-c.ObservedGeneration), nil
			}
		}
		return "", nil
	}
	wait := func(want string) {
		t.Helper()
		harness.Eventually(t, want, func(ctx context.Context) (bool, error) {
			got, err := condition(ctx)
			if err == nil && got != want {
				err = fmt.Errorf("it is %q", got)
			}
			return err == nil, err
		})
	}
	wait("True NoClusterMatched No ManagedCluster selected 0")
	for range n {
		harness.NewManagedCluster(t, harness.Unique("cluster"), map[string]string{harness.SetLabel: set})
	}
	wait("False ClustersSelected 5 ManagedClusters selected 0")
}

func TestStatus_ManyJoinsAreFewWrites(t *testing.T) {
	set, started := harness.Unique("set"), time.Now()
	harness.NewSet(t, set)
	sets := harness.Admin(t).ClusterV1beta2().ManagedClusterSets()
	start := harness.Must(sets.List(t.Context(), metav1.ListOptions{}))(t).ResourceVersion
	w := harness.Must(sets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: start, FieldSelector: "metadata.name=" + set}))(t)
	defer w.Stop()
	const n = 500
	for range n {
		harness.NewManagedCluster(t, harness.Unique("cluster"), map[string]string{harness.SetLabel: set})
	}
	writes := 0
	harness.Eventually(t, "all are counted", func(ctx context.Context) (bool, error) {
		s, err := sets.Get(ctx, set, metav1.GetOptions{})
		for {
			select {
			case e, open := <-w.ResultChan():
				if !open || e.Type != watch.Modified {
					t.Fatalf("the watch says %s, open %t", e.Type, open)
				}
				writes++
				continue
			default:
			}
			break
		}
		return err == nil && len(s.Status.Conditions) > 0 && s.Status.Conditions[0].Message == fmt.Sprintf("%d ManagedClusters selected", n), err
	})
	if took := time.Since(started); writes > int(took/clustersetstatus.Spacing)+2 {
		t.Errorf("%d joins have caused %d writes in %s, want one per %s", n, writes, took, clustersetstatus.Spacing)
	}
}

func TestDefaultSets_ExistAndAreRecreated(t *testing.T) {
	sets := harness.Admin(t).ClusterV1beta2().ManagedClusterSets()
	for _, name := range []string{"default", "global"} {
		var before *v1beta2.ManagedClusterSet
		harness.Eventually(t, name+" is there", func(ctx context.Context) (found bool, err error) { // the hub may have just started
			before, err = sets.Get(ctx, name, metav1.GetOptions{})
			return err == nil, err
		})
		if err := sets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, name+" is back", func(ctx context.Context) (bool, error) {
			s, err := sets.Get(ctx, name, metav1.GetOptions{})
			return err == nil && s.UID != before.UID && s.Spec.ClusterSelector.SelectorType == before.Spec.ClusterSelector.SelectorType, err
		})
	}
}

func TestDeletion_SetInUseWarns(t *testing.T) {
	set, namespace := harness.Unique("set"), harness.NewNamespace(t)
	harness.NewSet(t, set)
	for range 3 {
		harness.NewManagedCluster(t, harness.Unique("cluster"), map[string]string{harness.SetLabel: set})
	}
	harness.Must(harness.Admin(t).ClusterV1beta2().ManagedClusterSetBindings(namespace).Create(t.Context(), harness.Binding(namespace, set, set), metav1.CreateOptions{}))(t)
	config, w := harness.Warned(harness.Hub(t).AdminConfig())
	if err := harness.Ours(t, config).ClusterV1beta2().ManagedClusterSets().Delete(t.Context(), set, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !w.Has(set, "3 member", "1 binding") {
		t.Errorf("the warnings are %q", w.All)
	}
}
