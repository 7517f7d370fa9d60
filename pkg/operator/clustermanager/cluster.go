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
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// ownerOf returns the owner of all objects made for a ClusterManager. The UID of the ClusterManager is not part of it: a ClusterManager that is
// recreated with the same name takes over what the previous one left on a hub, such as the namespaces with the hub's records.
func ownerOf(cm *operatorv1.ClusterManager, management types.UID) apply.Owner {
	return apply.Owner{Labels: map[string]string{
		deploy.LabelManagedBy: deploy.ManagedByOperator, operatorv1.LabelClusterManager: cm.Name, klusterlet.LabelManagement: string(management),
	}}
}

// kind is a kind of object that a hub consists of.
type kind struct {
	apply.Mapping
	// onHub and onManagement report which of the two clusters has objects of this kind, if hub and management cluster differ.
	onHub, onManagement bool
}

func hubKind(m apply.Mapping) kind { return kind{m, true, false} }

func podKind(m apply.Mapping) kind { return kind{m, false, true} }

func (k kind) onBoth() kind {
	k.onHub, k.onManagement = true, true
	return k
}

// v1 returns version v1 of a group.
func v1(group string) schema.GroupVersion { return schema.GroupVersion{Group: group, Version: "v1"} }

// apiServices route requests to hub-apiserver, and deployments own the pods.
var (
	apiServices = hubKind(apply.Global(v1("apiregistration.k8s.io"), "APIService", "apiservices"))
	deployments = podKind(apply.Namespaced(v1("apps"), "Deployment", "deployments"))
	accounts    = hubKind(apply.Namespaced(v1(""), "ServiceAccount", "serviceaccounts")).onBoth()
	secrets     = podKind(apply.Namespaced(v1(""), "Secret", "secrets"))
	namespaces  = hubKind(apply.Global(v1(""), "Namespace", "namespaces")).onBoth()
)

// kinds lists all kinds of which objects can exist, in the order of deletion: what routes to servers before the servers, pods before what they need,
// and accounts before their rights. Namespaces are last, because deleting one deletes its contents. A namespace is not deleted while an APIService
// exists that no server answers.
var kinds = []kind{
	apiServices,
	deployments,
	podKind(apply.Namespaced(v1("policy"), "PodDisruptionBudget", "poddisruptionbudgets")),
	hubKind(apply.Namespaced(v1("discovery.k8s.io"), "EndpointSlice", "endpointslices")),
	hubKind(apply.Namespaced(v1(""), "Service", "services")).onBoth(),
	secrets,
	accounts,
	hubKind(apply.Global(v1("rbac.authorization.k8s.io"), "ClusterRoleBinding", "clusterrolebindings")),
	hubKind(apply.Namespaced(v1("rbac.authorization.k8s.io"), "RoleBinding", "rolebindings")),
	hubKind(apply.Global(v1("rbac.authorization.k8s.io"), "ClusterRole", "clusterroles")),
	hubKind(apply.Namespaced(v1("rbac.authorization.k8s.io"), "Role", "roles")),
	hubKind(apply.Global(v1("admissionregistration.k8s.io"), "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")),
	hubKind(apply.Global(v1("admissionregistration.k8s.io"), "ValidatingAdmissionPolicy", "validatingadmissionpolicies")),
	hubKind(apply.Global(v1("flowcontrol.apiserver.k8s.io"), "FlowSchema", "flowschemas")),
	hubKind(apply.Global(v1("flowcontrol.apiserver.k8s.io"), "PriorityLevelConfiguration", "prioritylevelconfigurations")),
	podKind(apply.Namespaced(v1("networking.k8s.io"), "NetworkPolicy", "networkpolicies")),
	podKind(apply.Namespaced(v1(""), "PersistentVolumeClaim", "persistentvolumeclaims")),
	podKind(apply.Namespaced(v1(""), "ResourceQuota", "resourcequotas")),
	namespaces,
}

// mintedSecrets lists the names of the Secrets with minted kubeconfigs: one for each Deployment that a hub can have.
var mintedSecrets = []string{
	deploy.KubeconfigSecret(deploy.APIServer), deploy.KubeconfigSecret(deploy.Manager), deploy.KubeconfigSecret(deploy.Approver),
	deploy.KubeconfigSecret(providerAccount),
}

// isKlusterlets reports whether an object is in use by Klusterlets. A ClusterManager must not delete it then.
func isKlusterlets(o client.Object) bool {
	_, shared := o.GetLabels()[klusterlet.LabelShared]
	return shared
}

// kindsWhere returns the kinds for which the function returns true.
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
	applier apply.Applier
	// explain formats an error for users. The text of a cluster that is not trusted is truncated.
	explain func(error) string
	// minted is the namespace of the minted Secrets, or empty if the cluster has none.
	minted string
	// discovery discovers the APIs of the cluster. It is nil where no APIServices exist.
	discovery discovery.ServerResourcesInterfaceWithContext
}

func newSide(name string, c client.Client, kinds []kind, owner apply.Owner, explain func(error) string) *side {
	return &side{name: name, client: c, kinds: kinds, explain: explain, applier: apply.Applier{
		Client: c, Owner: owner, Strategy: apply.Settled(apply.ServerSideApply(deploy.ManagedByOperator)),
	}}
}

// failed returns an error about an object, or about a kind of objects.
func (s *side) failed(what, object string, err error) error {
	return kit.WithMessage(err, s.explain(fmt.Errorf("%s %s of the %s: %w", what, object, s.name, err)))
}

// serves returns an error if the cluster does not serve the API of an APIService. The condition Available is not enough: kube-apiserver writes it
// first, and rejects requests with 503 for a moment longer.
func (s *side) serves(ctx context.Context, service *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(service.Object, "spec", "group")
	version, _, _ := unstructured.NestedString(service.Object, "spec", "version")
	of := schema.GroupVersion{Group: group, Version: version}.String()
	if _, err := s.discovery.ServerResourcesForGroupVersionWithContext(ctx, of); err != nil && !apierrors.IsForbidden(err) {
		return s.failed("asking for the API", of, err)
	}
	return nil
}

// list returns the ClusterManager's objects of a kind.
func (s *side) list(ctx context.Context, k kind) (all []*unstructured.Unstructured, err error) {
	if k == secrets {
		return s.listMinted(ctx)
	}
	all, err = s.read(ctx, k)
	if err != nil {
		return nil, s.failed("listing the", k.Resource, err)
	}
	return all, nil
}

// read lists the objects of a kind that is not read by names. It returns the cluster's error unwrapped.
func (s *side) read(ctx context.Context, k kind) (all []*unstructured.Unstructured, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	if err := s.client.List(ctx, list, client.MatchingLabels(s.applier.Owner.Labels)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		o := &list.Items[i]
		// Set the requested kind: a server may return a different one, which is not ours.
		o.SetGroupVersionKind(k.GroupVersionKind)
		if s.applier.Owner.Owns(o) {
			all = append(all, o)
		}
	}
	return all, nil
}

// listMinted gets each Secret by its name: a permission to list Secrets by label would include all Secrets of the cluster.
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

// observed returns all objects of the ClusterManager on a cluster, in the order of kinds.
func (s *side) observed(ctx context.Context) (all []*unstructured.Unstructured, err error) {
	for _, k := range s.kinds {
		objects, err := s.list(ctx, k)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// apply applies the objects in order. have are the objects that observed returned.
func (s *side) apply(ctx context.Context, objects, have []*unstructured.Unstructured) error {
	known := map[apply.ID]client.Object{}
	for _, o := range have {
		known[apply.IDOf(o)] = o
	}
	for _, o := range objects {
		id := apply.IDOf(o)
		if err := s.applier.Apply(ctx, o, known[id]); err != nil {
			return s.failed("applying", id.String(), err)
		}
	}
	return nil
}

// prune deletes the objects that are no longer desired. Namespaces are not deleted: they may have objects of other owners.
func (s *side) prune(ctx context.Context, have []*unstructured.Unstructured, desired map[apply.ID]bool) error {
	return s.delete(ctx, slices.DeleteFunc(slices.Clone(have), func(o *unstructured.Unstructured) bool {
		return desired[apply.IDOf(o)] || namespaces.of(o)
	}))
}

// maxErrors is the maximum number of failed deletions in an error: a hub may report any number of objects.
const maxErrors = 8

// delete deletes objects. An error for one does not stop the deletion of the others.
func (s *side) delete(ctx context.Context, objects []*unstructured.Unstructured) error {
	var errs []error
	for _, o := range objects {
		if o.GetDeletionTimestamp() != nil || isKlusterlets(o) {
			continue
		}
		applier := s.applier
		if deployments.of(o) { // exists until its pods are gone
			applier.Propagation = metav1.DeletePropagationForeground
		}
		if _, err := applier.Delete(ctx, o); err != nil && len(errs) < maxErrors {
			errs = append(errs, s.failed("removing", apply.IDOf(o).String(), err))
		}
	}
	return errors.Join(errs...)
}
