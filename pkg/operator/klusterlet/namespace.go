// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
)

// checkNamespace rejects a Klusterlet in the namespace of an older one, or of an agent of kubectl hub: its Secrets belong to one agent. It enqueues
// younger Klusterlets: they may not have observed this one.
func (p *pass) checkNamespace(ctx context.Context) error {
	name := p.klusterlet.AgentNamespace()
	others, err := p.inNamespace(ctx, name)
	if err != nil {
		return err
	}
	var younger []string
	for _, other := range others {
		if other.Name == p.klusterlet.Name {
			continue
		}
		if !p.isOlder(&other) {
			younger = append(younger, other.Name)
			continue
		}
		if exists, err := p.exists(ctx, &other); err != nil {
			return err
		} else if exists {
			return &rejection{isTaken: true, why: fmt.Sprintf(
				"namespace %s belongs to the agent of Klusterlet %s: delete this Klusterlet and create it with another spec.namespace", name, other.Name)}
		}
	}
	namespace := &corev1.Namespace{}
	err = p.client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if err == nil && namespace.DeletionTimestamp == nil && isCommandLines(namespace) {
		return managedByCommandLine(namespace.Name)
	}
	for _, name := range younger {
		p.observations.enqueue(name)
	}
	return client.IgnoreNotFound(err)
}

// isOlder reports whether another Klusterlet has precedence: it was created before, or in the same second and is the first by name.
func (p *pass) isOlder(other *operatorv1.Klusterlet) bool {
	created, otherCreated := &p.klusterlet.CreationTimestamp, &other.CreationTimestamp
	return otherCreated.Before(created) || otherCreated.Equal(created) && other.Name < p.klusterlet.Name
}

// exists reports whether a cached Klusterlet still exists: no agent is stopped because of one that does not.
func (r *Reconciler) exists(ctx context.Context, other *operatorv1.Klusterlet) (bool, error) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(plan.Klusterlets.GroupVersionKind)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(other), now)
	return err == nil && now.UID == other.UID, client.IgnoreNotFound(err)
}

// isCommandLines reports whether kubectl hub join created a namespace for its agent.
func isCommandLines(namespace client.Object) bool {
	labels := namespace.GetLabels()
	return labels[deploy.LabelManagedBy] == deploy.ManagedBy && labels[deploy.AgentLabel] == deploy.AgentName
}

// rejection is an error that reports why there can be no agent of a Klusterlet until a user changes something.
type rejection struct {
	why string
	// isTaken means that the namespace of the pods belongs to another agent, so that nothing in it is the Klusterlet's.
	isTaken bool
}

func (r *rejection) Error() string { return r.why }

func managedByCommandLine(namespace string) error {
	return &rejection{isTaken: true, why: fmt.Sprintf("namespace %s belongs to the agent that kubectl hub join has installed: unregister that agent by "+
		"kubectl hub unjoin, or delete this Klusterlet and create it with another spec.namespace", namespace)}
}
