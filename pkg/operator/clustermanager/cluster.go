// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

// ownerOf is whose everything is that is made for a ClusterManager. One that was made anew under its name takes over: what a former
// one had to leave on a hub, such as the namespaces with the hub's records, is not lost then.
func ownerOf(cm *operatorv1.ClusterManager, management types.UID) remote.Owner {
	return remote.Owner{Labels: map[string]string{
		deploy.LabelManagedBy: deploy.ManagedByOperator, operatorv1.LabelClusterManager: cm.Name, labelManagement: string(management),
	}}
}

// kind is one of those that a hub is made of.
type kind struct {
	schema.GroupVersionKind
	resource string
	// onHub and onManagement say where there are objects of it if these are two clusters.
	onHub, onManagement bool
}

func (k kind) gvr() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.resource) }

func hubKind(group, version, name, resource string) kind {
	return kind{schema.GroupVersionKind{Group: group, Version: version, Kind: name}, resource, true, false}
}

func podKind(group, version, name, resource string) kind {
	return kind{schema.GroupVersionKind{Group: group, Version: version, Kind: name}, resource, false, true}
}

func (k kind) onBoth() kind {
	k.onHub, k.onManagement = true, true
	return k
}

// apiServices lead to hub-apiserver, and deployments have the pods.
var (
	apiServices = hubKind("apiregistration.k8s.io", "v1", "APIService", "apiservices")
	deployments = podKind("apps", "v1", "Deployment", "deployments")
	accounts    = hubKind("", "v1", "ServiceAccount", "serviceaccounts").onBoth()
	secrets     = podKind("", "v1", "Secret", "secrets")
	namespaces  = hubKind("", "v1", "Namespace", "namespaces").onBoth()
)

// kinds are all of which there can be objects, in the order in which they are taken away: what leads to servers before the servers,
// pods before what they need, and who has rights before the rights. A namespace goes last, and takes along what is in it. It does
// not go while there is an APIService that no server answers for.
var kinds = []kind{
	apiServices,
	deployments,
	podKind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
	hubKind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
	hubKind("", "v1", "Service", "services").onBoth(),
	secrets,
	accounts,
	hubKind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
	hubKind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
	hubKind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
	hubKind("rbac.authorization.k8s.io", "v1", "Role", "roles"),
	hubKind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
	hubKind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
	hubKind("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas"),
	hubKind("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations"),
	podKind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
	podKind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
	podKind("", "v1", "ResourceQuota", "resourcequotas"),
	namespaces,
}

// mintedSecrets are the names of the Secrets that are made: one for each Deployment that a hub can have.
var mintedSecrets = []string{
	deploy.KubeconfigSecret(deploy.APIServer), deploy.KubeconfigSecret(deploy.Manager), deploy.KubeconfigSecret(deploy.Approver),
	deploy.KubeconfigSecret(providerAccount),
}

// isKlusterlets is whether something is in use by Klusterlets. It is not a ClusterManager's to delete then.
func isKlusterlets(o client.Object) bool {
	_, shared := o.GetLabels()[klusterlet.LabelShared]
	return shared
}

// kindsWhere are some of them.
func kindsWhere(which func(kind) bool) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !which(k) })
}

func (k kind) of(o client.Object) bool {
	return o.GetObjectKind().GroupVersionKind() == k.GroupVersionKind
}

// side is one of the clusters of a hub, for one ClusterManager.
type side struct {
	name    string // for messages
	client  client.Client
	kinds   []kind
	applier remote.Applier
	// explain is an error for people: what a cluster says that is not trusted is bounded.
	explain func(error) string
	// minted is the namespace with the Secrets that were minted; empty if there are none.
	minted string
	// discovery is of what the cluster serves; nil where there are no APIServices.
	discovery discovery.ServerResourcesInterfaceWithContext
}

func newSide(name string, c client.Client, kinds []kind, owner remote.Owner, explain func(error) string) *side {
	return &side{name: name, client: c, kinds: kinds, explain: explain, applier: remote.Applier{
		Client: c, Owner: owner, Strategy: remote.Settled(annotationApplied, remote.ServerSideApply(deploy.ManagedByOperator)),
	}}
}

// failed is an error about an object, or about a kind of them.
func (s *side) failed(what, object string, err error) error {
	return kit.Retold(err, s.explain(fmt.Errorf("%s %s of the %s: %w", what, object, s.name, err)))
}

// serves is an error if the cluster does not answer for an APIService. That it calls it available is not enough: its kube-apiserver writes
// that first, and for a moment more it refuses requests with 503.
func (s *side) serves(ctx context.Context, service *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(service.Object, "spec", "group")
	version, _, _ := unstructured.NestedString(service.Object, "spec", "version")
	of := schema.GroupVersion{Group: group, Version: version}.String()
	if _, err := s.discovery.ServerResourcesForGroupVersionWithContext(ctx, of); err != nil && !apierrors.IsForbidden(err) {
		return s.failed("asking for the API", of, err)
	}
	return nil
}

// list are the ClusterManager's objects of a kind.
func (s *side) list(ctx context.Context, k kind) (all []*unstructured.Unstructured, err error) {
	if k == secrets {
		return s.listMinted(ctx)
	}
	if all, err = s.read(ctx, k); err != nil {
		return nil, s.failed("listing the", k.resource, err)
	}
	return all, nil
}

// read are those of a kind that is not kept by names. The error is the cluster's own.
func (s *side) read(ctx context.Context, k kind) (all []*unstructured.Unstructured, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	if err := s.client.List(ctx, list, client.MatchingLabels(s.applier.Owner.Labels)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		o := &list.Items[i]
		// What was asked for is known. A server may answer something else, which is not ours.
		o.SetGroupVersionKind(k.GroupVersionKind)
		if s.applier.Owner.Owns(o) {
			all = append(all, o)
		}
	}
	return all, nil
}

// listMinted asks for each Secret by its name: a right to list Secrets by label would be one to all that the cluster has.
func (s *side) listMinted(ctx context.Context) (all []*unstructured.Unstructured, err error) {
	if s.minted == "" {
		return nil, nil
	}
	for _, name := range mintedSecrets {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(secrets.GroupVersionKind)
		key := client.ObjectKey{Namespace: s.minted, Name: name}
		switch err := s.client.Get(ctx, key, o); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, s.failed("reading", "Secret "+key.String(), err)
		case s.applier.Owner.Owns(o):
			all = append(all, o)
		}
	}
	return all, nil
}

// there are all objects of the ClusterManager on a cluster, in the order of kinds.
func (s *side) there(ctx context.Context) (all []*unstructured.Unstructured, err error) {
	for _, k := range s.kinds {
		objects, err := s.list(ctx, k)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// apply brings the objects to what they should be, in their order. have are those that there has found.
func (s *side) apply(ctx context.Context, objects, have []*unstructured.Unstructured) error {
	known := map[remote.ID]client.Object{}
	for _, o := range have {
		known[remote.IDOf(o)] = o
	}
	for _, o := range objects {
		id := remote.IDOf(o)
		if err := s.applier.Apply(ctx, o, known[id]); err != nil {
			return s.failed("applying", id.String(), err)
		}
	}
	return nil
}

// prune takes away what is there and is not wanted. Namespaces stay: what is in them may be others'.
func (s *side) prune(ctx context.Context, have []*unstructured.Unstructured, keep map[remote.ID]bool) error {
	return s.remove(ctx, slices.DeleteFunc(slices.Clone(have), func(o *unstructured.Unstructured) bool {
		return keep[remote.IDOf(o)] || namespaces.of(o)
	}))
}

// mostErrors is how many of the objects are named that could not be taken away: a hub may say that it has any number of them.
const mostErrors = 8

// remove takes objects away, each of them whatever becomes of the others.
func (s *side) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	var errs []error
	for _, o := range objects {
		if o.GetDeletionTimestamp() != nil || isKlusterlets(o) {
			continue
		}
		applier := s.applier
		if deployments.of(o) { // it is there until its pods are gone
			applier.Propagation = metav1.DeletePropagationForeground
		}
		if _, err := applier.Delete(ctx, o); err != nil && len(errs) < mostErrors {
			errs = append(errs, s.failed("removing", remote.IDOf(o).String(), err))
		}
	}
	return errors.Join(errs...)
}
