// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// checks is the number of times that accept checks the conditions of the clusters: for up to two seconds.
const checks = int(2 * time.Second / kit.PollInterval)

// checkConditions warns about accepted clusters that the hub cannot register, such as those of a driver that is not enabled in hub-controller-manager. Only
// the controller knows, and it reports this as a condition of the cluster.
func (o *acceptOptions) checkConditions(ctx context.Context, h *kit.HubClient, accepted []acceptance) {
	failures := map[string]string{}
	pending := slices.DeleteFunc(slices.Clone(accepted), func(a acceptance) bool { return a.warned || !a.Changed && !a.Adopted })
	if len(pending) == 0 {
		return
	}
	for range checks {
		select {
		case <-ctx.Done():
			return
		case <-time.After(cmp.Or(o.PollInterval, kit.PollInterval)):
		}
		pending = slices.DeleteFunc(pending, func(a acceptance) bool {
			cluster, err := h.Clusters.ClusterV1().ManagedClusters().Get(ctx, a.Name, metav1.GetOptions{})
			if err != nil {
				return false
			}
			delete(failures, a.Name)
			c := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted)
			if c != nil && c.Status != metav1.ConditionTrue && c.Reason == registration.ReasonError {
				failures[a.Name] = c.Message
			}
			return c != nil && c.Status == metav1.ConditionTrue
		})
		if len(pending) == 0 {
			break
		}
	}
	for _, a := range pending {
		if message := failures[a.Name]; message != "" {
			o.Warn("managed cluster %s is accepted, but the hub cannot register it: %s", a.Name, command.Printable(message))
		}
	}
}
