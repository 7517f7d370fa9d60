// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package withdraw

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
)

// Namespaced is a namespace that an agent leaves whose works were limited to it. It sends no requests outside of the namespace, except for the
// versions of an API group.
type Namespaced struct {
	cluster   *ClusterScoped
	namespace string
}

var _ Records = &Namespaced{}

// NewNamespaced returns a Namespaced that has sent no requests yet.
func NewNamespaced(config *rest.Config, namespace string) (*Namespaced, error) {
	cluster, err := New(config)
	if err != nil {
		return nil, err
	}
	return &Namespaced{cluster: cluster, namespace: namespace}, nil
}

// memory returns the memory of an agent.
func (n *Namespaced) memory(agentID string) *memory.Namespaced {
	return memory.NewNamespaced(n.cluster.client, n.namespace, "", agentID)
}

// Records returns the records of an agent. It does not count those of other agents.
func (n *Namespaced) Records(ctx context.Context, agentID string) (own []WorkRecord, others int, err error) {
	if agentID == "" {
		return nil, 0, nil
	}
	kept, err := n.memory(agentID).List(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range kept {
		own = append(own, WorkRecord{Work: r.Work, Objects: len(r.Resources), kept: r})
	}
	return own, 0, nil
}

// End deletes a record, as far as possible at present. It returns what it waits for; empty if the record is gone.
func (n *Namespaced) End(ctx context.Context, r WorkRecord, fate Fate) (waitsFor string, err error) {
	propagation := metav1.DeletePropagationBackground
	switch fate {
	case Delete:
		waitsFor, err = n.cluster.deleteObjects(ctx, r)
	case Keep:
		// As in a cluster: owner references are removed before the record is deleted, and the garbage collector orphans objects that the record does
		// not name.
		err = n.cluster.eachObject(ctx, r, n.cluster.release(ctx))
		propagation = metav1.DeletePropagationOrphan
	default:
		err = fmt.Errorf("the fate of objects must be %s or %s, not %q", Delete, Keep, fate)
	}
	if waitsFor != "" || err != nil {
		return waitsFor, err
	}
	now, err := n.read(ctx, r)
	if err != nil || now == nil {
		return "", err
	}
	if now.GetDeletionTimestamp() == nil {
		is, version := now.GetUID(), now.GetResourceVersion()
		err := n.resource().Delete(ctx, now.GetName(), metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &is, ResourceVersion: &version}, PropagationPolicy: &propagation})
		if apierrors.IsConflict(err) {
			return "another program that writes the record of work " + r.Work, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("deleting the record %s/%s: %w", n.namespace, now.GetName(), err)
		}
		now, err = n.read(ctx, r)
		if err != nil || now == nil {
			return "", err
		}
	}
	return fmt.Sprintf("the finalizers %s of the record of work %s", strings.Join(now.GetFinalizers(), ", "), r.Work), nil
}

// read returns the current record, or nil if it is gone.
func (n *Namespaced) read(ctx context.Context, r WorkRecord) (*unstructured.Unstructured, error) {
	owner := r.owner()
	object, err := n.resource().Get(ctx, owner.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record %s/%s: %w", n.namespace, owner.Name, err)
	}
	if object.GetUID() != owner.UID {
		return nil, nil
	}
	return object, nil
}

func (n *Namespaced) resource() dynamic.ResourceInterface {
	return n.cluster.client.Resource(apply.ConfigMaps).Namespace(n.namespace)
}
