// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// register creates the ManagedCluster on the hub, with the rights of the bootstrap kubeconfig. It does not change an existing one: it may be this
// cluster's, created by an earlier process, or by an admin.
func (j *Joiner) register(ctx context.Context, h *hub.Hub) error {
	s := j.Store.Get()
	cluster, err := j.desired(s)
	if err != nil {
		return err
	}
	hash := cluster.Annotations[registration.AnnotationAgentKey]
	clusters := h.Clusters.ClusterV1().ManagedClusters()
	_, err = clusters.Create(ctx, cluster, metav1.CreateOptions{})
	switch {
	case err == nil:
		klog.FromContext(ctx).Info("Registered the cluster with the hub")
		j.newKey = false
	case apierrors.IsAlreadyExists(err):
		// Most bootstrap kubeconfigs have no right to read clusters. Then the agent uses the hash in its state.
		if found, err := clusters.Get(ctx, cluster.Name, metav1.GetOptions{}); err == nil {
			j.newKey = hash != "" && agentcsr.PlannedKey(found.Annotations) != hash
		} else {
			j.newKey = hash != "" && s.RegisteredKey != hash
		}
	default:
		return fmt.Errorf("creating ManagedCluster %s on the hub: %w", cluster.Name, err)
	}
	if j.newKey || hash == s.RegisteredKey {
		return nil
	}
	_, err = j.Store.Update(ctx, func(s *state.State) { s.RegisteredKey = hash })
	return err
}

// Recreate creates the ManagedCluster again if it no longer exists on the hub, or its agent may not read it. A process does so once, at its first read:
// like a Node, a cluster that an admin has deleted comes back when its agent is restarted, and not by itself. The hub must accept it again; then the
// agent's current identity is valid.
func (j *Joiner) Recreate(ctx context.Context) error {
	cluster, err := j.desired(j.Store.Get())
	if err != nil {
		return err
	}
	_, h, err := j.hub(ctx)
	if err == nil {
		_, err = h.Clusters.ClusterV1().ManagedClusters().Create(ctx, cluster, metav1.CreateOptions{})
	}
	switch {
	case err == nil:
		j.Home.Report(ctx, corev1.EventTypeNormal, "RegisteredAnew", "ManagedCluster "+cluster.Name+
			" no longer existed on the hub: the agent created it again, and an admin of the hub must accept it")
	case !apierrors.IsAlreadyExists(err): // if it exists, it is denied, or still being accepted
		return fmt.Errorf("the hub denies access to this cluster, and it cannot be registered again: %w", err)
	}
	return nil
}

func (j *Joiner) desired(s state.State) (*clusterv1.ManagedCluster, error) {
	annotations, err := j.Identity.Annotations(s)
	if err != nil {
		return nil, err
	}
	return j.Cluster.New(s.ClusterName, annotations), nil
}
