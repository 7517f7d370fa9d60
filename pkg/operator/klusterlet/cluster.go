// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const (
	// Manager is the field manager of the created objects, and the value of their label.
	Manager = "hub-operator"
	// LabelManagement has the UID of the management cluster's namespace kube-system: two management clusters may have Klusterlets with the same name
	// for one managed cluster.
	LabelManagement = "operator.clusterhub.dev/management-cluster"
	// annotationUID distinguishes Klusterlets that had the same name at different times.
	annotationUID = "operator.clusterhub.dev/klusterlet-uid"
)

// ownerOf returns the owner of all objects made for a Klusterlet.
func ownerOf(k *operatorv1.Klusterlet, management string) apply.Owner {
	return apply.Owner{
		Labels: map[string]string{deploy.LabelManagedBy: Manager, operatorv1.LabelKlusterlet: k.Name, LabelManagement: management},
		Origin: map[string]string{annotationUID: string(k.UID)},
	}
}

// cluster is a cluster with objects of a Klusterlet.
type cluster struct {
	client client.Client
	owner  apply.Owner
	mark   mark
	// pods is the namespace of the pods, which must belong to one agent alone. It is empty if the pods are on another cluster.
	pods string
	// explain formats an error of the cluster for users. The text of a cluster that is not trusted is not shown as is.
	explain func(error) error
	// hidden reports that a definition was not applied, since the cluster has a kind of its own with that name. No watch reports when that ends.
	hidden bool
}

func (c *cluster) applier() *apply.Applier {
	return &apply.Applier{Client: c.client, Owner: c.owner, Strategy: apply.Settled(apply.ServerSideApply(Manager))}
}

// apply applies objects in order, and stops at the first that fails, since rights come after what they are for. It writes nothing if the object is as
// desired.
func (c *cluster) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	applier := c.applier()
	for _, want := range objects {
		var err error
		if plan.IsShared(want) {
			err = c.share(ctx, want)
		} else {
			err = c.applyOwned(ctx, applier, want)
		}
		if err != nil {
			return failed(apply.IDOf(want), c.explained(err))
		}
	}
	return nil
}

func (c *cluster) applyOwned(ctx context.Context, applier *apply.Applier, want *unstructured.Unstructured) error {
	have, err := applier.Get(ctx, want)
	if err != nil {
		return err
	}
	if have != nil && have.GetDeletionTimestamp() != nil && applier.Owner.Owns(have) {
		return errDeleting
	}
	if want.GroupVersionKind() == plan.Deployments.GroupVersionKind {
		there, _ := have.(*unstructured.Unstructured)
		want, err = plan.WithRollout(want, there)
		if err != nil {
			return err
		}
	}
	return applier.Apply(ctx, want, have)
}

// errDeleting reports that a desired object is still being deleted.
var errDeleting = errors.New("it is being deleted, and is created again after the deletion")

func (c *cluster) explained(err error) error {
	var notOurs *apply.NotOurs
	var recreating *apply.Recreating
	if c.explain == nil || errors.As(err, &notOurs) || errors.As(err, &recreating) || errors.Is(err, errDeleting) || errors.Is(err, errHubs) {
		return err
	}
	return c.explain(err)
}

// failed returns the error of an object that could not be applied or deleted.
func failed(object apply.ID, err error) error { return fmt.Errorf("%s: %w", object, err) }

// remove deletes those of the objects that are owned by the Klusterlet, and returns those that still exist because of finalizers.
func (c *cluster) remove(ctx context.Context, objects []*unstructured.Unstructured, policy metav1.DeletionPropagation) (left []apply.ID, err error) {
	applier := c.applier()
	applier.Propagation = policy
	for _, o := range objects {
		have, err := applier.Get(ctx, o)
		if err == nil && have != nil && c.owner.Owns(have) {
			if have.GetDeletionTimestamp() == nil {
				_, err = applier.Delete(ctx, have)
			}
			if err == nil {
				have, err = applier.Get(ctx, o)
			}
			if err == nil && have != nil && c.owner.Owns(have) {
				left = append(left, apply.IDOf(o))
			}
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return left, failed(apply.IDOf(o), c.explained(err))
		}
	}
	return left, nil
}

// prune deletes objects that are no longer desired, in order. It does not wait for their finalizers.
func (c *cluster) prune(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if plan.IsShared(o) {
			if err := c.unshare(ctx, o); err != nil {
				return failed(apply.IDOf(o), c.explained(err))
			}
			continue
		}
		if _, err := c.remove(ctx, []*unstructured.Unstructured{o}, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}

// finalize deletes objects, first those that belong to the Klusterlet alone. It returns an error while one of these exists.
func (c *cluster) finalize(ctx context.Context, objects []*unstructured.Unstructured) error {
	owned, shared := splitShared(objects)
	left, err := c.remove(ctx, owned, metav1.DeletePropagationBackground)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return waitsFor("the deletion of %s, which has finalizers", joined(left))
	}
	return c.prune(ctx, shared)
}

func joined(ids []apply.ID) string {
	var texts []string
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	return strings.Join(texts, ", ")
}

func idsOf(objects []*unstructured.Unstructured) (ids []apply.ID) {
	for _, o := range objects {
		ids = append(ids, apply.IDOf(o))
	}
	return ids
}
