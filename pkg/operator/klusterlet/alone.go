// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// alone refuses a Klusterlet in the namespace of an older one, or of an agent of kubectl hub: its secrets are those of one agent.
func (r *Reconciler) alone(ctx context.Context, k *operatorv1.Klusterlet) error {
	others, err := r.inNamespace(ctx, k.AgentNamespace())
	if err != nil {
		return err
	}
	for _, other := range others {
		older := other.CreationTimestamp.Before(&k.CreationTimestamp) || other.CreationTimestamp.Equal(&k.CreationTimestamp) && other.Name < k.Name
		if other.Name != k.Name && older {
			return &taken{fmt.Sprintf("namespace %s is that of the agent of Klusterlet %s: make this one anew with another spec.namespace",
				k.AgentNamespace(), other.Name)}
		}
	}
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: k.AgentNamespace()}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	labels := namespace.Labels
	if labels[deploy.LabelManagedBy] == deploy.ManagedBy && labels[deploy.AgentLabel] == deploy.AgentName && namespace.DeletionTimestamp == nil {
		return &taken{fmt.Sprintf("namespace %s is that of the agent that kubectl hub join has made: take that one out of its hub by kubectl hub unjoin, "+
			"or make this Klusterlet anew with another spec.namespace", namespace.Name)}
	}
	return nil
}

// taken is that a namespace has another agent, so that nothing in it is the Klusterlet's.
type taken struct{ why string }

func (t *taken) Error() string { return t.why }
