// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// register makes the cluster on the hub, with the rights of the bootstrap kubeconfig. A cluster that is there already is
// left as it is: it may be this one, made by an earlier process, or by an admin.
func (a *agent) register(ctx context.Context, h *hub) error {
	s := a.store.get()
	cluster, err := a.desired(s)
	if err != nil {
		return err
	}
	hash := cluster.Annotations[registration.AnnotationAgentKey]
	clusters := h.clusters.ClusterV1().ManagedClusters()
	_, err = clusters.Create(ctx, cluster, metav1.CreateOptions{})
	switch {
	case err == nil:
		klog.FromContext(ctx).Info("Registered the cluster with the hub")
		a.newKey = false
	case apierrors.IsAlreadyExists(err):
		// Most bootstrap kubeconfigs may not read clusters. Then the agent has to go by what it remembers.
		if found, err := clusters.Get(ctx, cluster.Name, metav1.GetOptions{}); err == nil {
			a.newKey = hash != "" && agentcsr.PlannedKey(found.Annotations) != hash
		} else {
			a.newKey = hash != "" && s.registeredKey != hash
		}
	default:
		return fmt.Errorf("making ManagedCluster %s on the hub: %w", cluster.Name, err)
	}
	if a.newKey || hash == s.registeredKey {
		return nil
	}
	_, err = a.store.update(ctx, func(s *state) { s.registeredKey = hash })
	return err
}

// registerAnew makes the cluster again that the hub does not have any more, or does not let its agent see. A process does
// so once, if its first look at the hub says that: like a Node, a cluster that an admin has deleted comes back when its
// agent is restarted, and not by itself. It has to be accepted again; the identity that the agent has is then good.
func (a *agent) registerAnew(ctx context.Context) error {
	cluster, err := a.desired(a.store.get())
	if err != nil {
		return err
	}
	_, h, err := a.bootstrapHub(ctx)
	if err == nil {
		_, err = h.clusters.ClusterV1().ManagedClusters().Create(ctx, cluster, metav1.CreateOptions{})
	}
	switch {
	case err == nil:
		a.tell(ctx, corev1.EventTypeNormal, "RegisteredAnew", "The hub had no cluster "+cluster.Name+
			" any more: it is registered anew, and an admin of the hub has to accept it")
	case !apierrors.IsAlreadyExists(err): // if it does, it is denied, or still being accepted
		return fmt.Errorf("the hub does not let this cluster in, and it cannot be registered anew: %w", err)
	}
	a.seen = true
	return nil
}

func (a *agent) desired(s state) (*clusterv1.ManagedCluster, error) {
	annotations, err := a.annotations(s)
	if err != nil {
		return nil, err
	}
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: s.clusterName, Annotations: annotations},
		Spec: clusterv1.ManagedClusterSpec{
			ManagedClusterClientConfigs: a.clientConfigs(nil),
			LeaseDurationSeconds:        a.settings.leaseSeconds,
		},
	}, nil
}

func (a *agent) annotations(s state) (map[string]string, error) {
	own, err := a.identity.annotations(s)
	if err != nil {
		return nil, err
	}
	annotations := maps.Clone(own)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, a.settings.annotations)
	return annotations, nil
}

// clientConfigs puts the address of the cluster's API server among those that the hub has, which others may have added.
func (a *agent) clientConfigs(have []clusterv1.ClientConfig) []clusterv1.ClientConfig {
	if a.settings.serverURL == "" {
		return have
	}
	own := clusterv1.ClientConfig{URL: a.settings.serverURL, CABundle: a.settings.serverCA}
	configs := make([]clusterv1.ClientConfig, 0, len(have)+1)
	found := false
	for _, config := range have {
		if config.URL == own.URL {
			config, found = own, true
		}
		configs = append(configs, config)
	}
	if !found {
		configs = append(configs, own)
	}
	return configs
}

// syncMain brings the cluster itself up to date with the agent's own rights: the flags may have changed. What the cluster says
// of the agent's identity is not the agent's to change any more: the hub keeps that as it was made.
func (a *agent) syncMain(ctx context.Context, h *hub, cluster *clusterv1.ManagedCluster) (*clusterv1.ManagedCluster, error) {
	next := cluster.DeepCopy()
	for key, value := range a.settings.annotations {
		if !registration.IsHubAnnotation(key) {
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, key, value)
		}
	}
	next.Spec.ManagedClusterClientConfigs = a.clientConfigs(next.Spec.ManagedClusterClientConfigs)
	if !maps.Equal(next.Annotations, cluster.Annotations) ||
		!sameConfigs(next.Spec.ManagedClusterClientConfigs, cluster.Spec.ManagedClusterClientConfigs) {
		updated, err := h.clusters.ClusterV1().ManagedClusters().Update(ctx, next, metav1.UpdateOptions{})
		if err != nil {
			return nil, fmt.Errorf("updating ManagedCluster %s: %w", cluster.Name, err)
		}
		next = updated
	}
	return next, nil
}

func sameConfigs(a, b []clusterv1.ClientConfig) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].URL != b[i].URL || !bytes.Equal(a[i].CABundle, b[i].CABundle) {
			return false
		}
	}
	return true
}
