// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestKill_NoAcknowledgedWriteIsLost kills hub-apiserver, and its etcd with it, during writes.
func TestKill_NoAcknowledgedWriteIsLost(t *testing.T) {
	h := harness.Relaunch(t, harness.LendHub(t), func(c *localhub.Options) { c.UnsafeNoFsync = false })
	client := harness.Ours(t, h.HubAPIServerConfig(0))
	var mu sync.Mutex
	acknowledged := map[string]string{} // cluster to its set
	claimed := map[string]string{}      // label value to the set that claimed it
	const rounds = 4
	for round := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					name, set := fmt.Sprintf("r%d-w%d-%d", round, w, i), fmt.Sprintf("set-%d", i%5)
					_, err := client.ClusterV1().ManagedClusters().Create(ctx, harness.ManagedCluster(name, map[string]string{harness.SetLabel: set}), metav1.CreateOptions{})
					if err == nil {
						mu.Lock()
						acknowledged[name] = set
						mu.Unlock()
					}
					// Two writers race for each pair.
					value, holder := fmt.Sprintf("r%d-w%d-%d", round, w/2, i/4), fmt.Sprintf("s-r%d-w%d-%d", round, w, i)
					_, err = client.ClusterV1beta1().ManagedClusterSets().Create(ctx, harness.ExclusiveSet(holder, harness.InfoPrefix+"kill", value), metav1.CreateOptions{})
					if err == nil {
						mu.Lock()
						if other, taken := claimed[value]; taken {
							t.Errorf("%s and %s both have %s", other, holder, value)
						}
						claimed[value] = holder
						mu.Unlock()
					}
				}
			})
		}
		harness.Eventually(t, "enough is written", func(context.Context) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			clusters, claims := len(acknowledged), len(claimed)
			return harness.Holds(clusters >= 20*(round+1) && claims > round, fmt.Sprintf("%d clusters, %d claims", clusters, claims))
		})
		time.Sleep(rand.N(time.Second)) // a random moment
		h.KillHubAPIServer(0)
		cancel()
		writers.Wait()
		if err := h.StartHubAPIServer(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	list := harness.Must(client.ClusterV1().ManagedClusters().List(t.Context(), metav1.ListOptions{}))(t)
	found := map[string]string{}
	for _, c := range list.Items {
		found[c.Name] = c.Labels[harness.SetLabel]
	}
	for name, set := range acknowledged {
		if found[name] != set {
			t.Errorf("%s was acknowledged in %s and is in %q", name, set, found[name])
		}
	}
	// Every existing set holds its pair, and every held pair has an existing set: a new set is accepted exactly where no set exists.
	sets := harness.Must(client.ClusterV1beta1().ManagedClusterSets().List(t.Context(), metav1.ListOptions{}))(t)
	holders := map[string]string{}
	for _, s := range sets.Items {
		if label := s.Spec.ClusterSelector.ExclusiveLabel; label != nil {
			if other := holders[label.Value]; other != "" {
				t.Errorf("%s and %s both claim %s", other, s.Name, label.Value)
			}
			holders[label.Value] = s.Name
		}
	}
	for value, holder := range claimed {
		if holders[value] != holder {
			t.Errorf("%s was acknowledged to %s and is of %q", value, holder, holders[value])
		}
	}
	for round := range rounds {
		for w := range 4 {
			for i := range 3 {
				value := fmt.Sprintf("r%d-w%d-%d", round, w, i)
				_, err := client.ClusterV1beta1().ManagedClusterSets().Create(t.Context(), harness.ExclusiveSet("new-"+value, harness.InfoPrefix+"kill", value), metav1.CreateOptions{})
				if want := holders[value] != ""; apierrors.IsConflict(err) != want || !want && err != nil {
					t.Errorf("%s, of %q: a new set gets %v", value, holders[value], err)
				}
			}
		}
	}
}
