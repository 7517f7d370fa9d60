// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/outer"
)

// prune deletes what was created and is no longer desired, on both clusters, since the status does not tell on which of them an object is. Objects
// with other owners are not deleted, whatever the status lists.
func (r *Reconciler) prune(ctx context.Context, k *operatorv1.Klusterlet, p *plan, via *outside, s *report) error {
	wanted := p.inventory()
	s.inventory = wanted
	var gone []operatorv1.RelatedResourceMeta
	for _, resource := range k.Status.RelatedResources {
		if !slices.Contains(wanted, resource) {
			gone = append(gone, resource)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	s.inventory = k.Status.RelatedResources // until they are gone
	if err := r.removeFrom(ctx, r.here(k), objectsOf(gone)); err != nil {
		return err
	}
	if via != nil {
		ctx, cancel := context.WithTimeout(ctx, outer.PassTimeout)
		defer cancel()
		if err := r.removeFrom(ctx, r.there(k, via), objectsOf(gone)); err != nil {
			return err
		}
	}
	s.inventory = wanted
	return nil
}

// removeFrom deletes objects from a cluster, in order.
func (r *Reconciler) removeFrom(ctx context.Context, from *cluster, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if isShared(o) {
			if err := from.unshare(ctx, o); err != nil {
				return failed(idOf(o), from.explained(err))
			}
			continue
		}
		if _, err := from.remove(ctx, []*unstructured.Unstructured{o}, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}

// objectsOf returns the objects that a status lists, in the order of deletion.
func objectsOf(resources []operatorv1.RelatedResourceMeta) (objects []*unstructured.Unstructured) {
	for _, all := range [][]kind{owned, shared} {
		for _, k := range all {
			for _, resource := range resources {
				if o := objectOf(resource); o != nil && o.GroupVersionKind() == k.GroupVersionKind {
					objects = append(objects, o)
				}
			}
		}
	}
	return objects
}

// hashOf returns a hash of objects.
func hashOf(objects []*unstructured.Unstructured) string {
	h := sha256.New()
	for _, o := range objects {
		_ = json.NewEncoder(h).Encode(o.Object) // objects decoded from JSON can be encoded, and writing to a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}
