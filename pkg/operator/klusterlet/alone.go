// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// alone rejects a Klusterlet in the namespace of an older one, or of an agent of kubectl hub: its secrets belong to one agent. It enqueues younger
// Klusterlets: they may not have observed this one.
func (r *Reconciler) alone(ctx context.Context, k *operatorv1.Klusterlet) error {
	others, err := r.inNamespace(ctx, k.AgentNamespace())
	if err != nil {
		return err
	}
	var younger []string
	for _, other := range others {
		if other.Name == k.Name {
			continue
		}
		older := other.CreationTimestamp.Before(&k.CreationTimestamp) || other.CreationTimestamp.Equal(&k.CreationTimestamp) && other.Name < k.Name
		if !older {
			younger = append(younger, other.Name)
			continue
		}
		if is, err := r.isThere(ctx, &other); err != nil {
			return err
		} else if is {
			return &taken{fmt.Sprintf("namespace %s belongs to the agent of Klusterlet %s: delete this Klusterlet and create it with another spec.namespace",
				k.AgentNamespace(), other.Name)}
		}
	}
	namespace := &corev1.Namespace{}
	err = r.client.Get(ctx, client.ObjectKey{Name: k.AgentNamespace()}, namespace)
	if err == nil && namespace.DeletionTimestamp == nil && isCommandLines(namespace) {
		return takenByCommandLine(namespace.Name)
	}
	for _, name := range younger {
		r.observations.wake(name)
	}
	return client.IgnoreNotFound(err)
}

// isThere reports whether a cached Klusterlet still exists: no agent is stopped because of one that does not.
func (r *Reconciler) isThere(ctx context.Context, k *operatorv1.Klusterlet) (bool, error) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(klusterlets.GroupVersionKind)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(k), now)
	return err == nil && now.UID == k.UID, client.IgnoreNotFound(err)
}

// isCommandLines reports whether kubectl hub join created a namespace for its agent.
func isCommandLines(namespace client.Object) bool {
	labels := namespace.GetLabels()
	return labels[deploy.LabelManagedBy] == deploy.ManagedBy && labels[deploy.AgentLabel] == deploy.AgentName
}

// taken reports that a namespace belongs to another agent, so that nothing in it is the Klusterlet's.
type taken struct{ why string }

func (t *taken) Error() string { return t.why }

func takenByCommandLine(namespace string) error {
	return &taken{fmt.Sprintf("namespace %s belongs to the agent that kubectl hub join has installed: unregister that agent by kubectl hub unjoin, "+
		"or delete this Klusterlet and create it with another spec.namespace", namespace)}
}

// refuse reports why there can be no agent of a Klusterlet. If the namespace has another agent, both may have run for a while because they were
// created at the same time: the pods of this one are deleted, because they would have the secrets of the other one.
func (r *Reconciler) refuse(ctx context.Context, k *operatorv1.Klusterlet, s *report, why error) (reconcile.Result, error) {
	r.want(k, nil)
	r.outsides.drop(k.Name)
	var others *taken
	if errors.As(why, &others) {
		if _, err := r.here(k).remove(ctx, podsOf(r.all(k)), metav1.DeletePropagationForeground); err != nil {
			return reconcile.Result{}, err
		}
	}
	s.applied(operatorv1.ReasonKlusterletApplyFailed, why)
	s.unavailable(operatorv1.ReasonKlusterletNoAvailablePods, "the Klusterlet has to be changed: "+why.Error())
	// No watch reports when another agent is gone.
	return reconcile.Result{RequeueAfter: time.Minute}, r.write(ctx, k, s)
}
