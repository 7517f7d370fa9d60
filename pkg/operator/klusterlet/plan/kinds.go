// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// Kinds of which objects are applied or read by their kind.
var (
	Definitions = apply.Global(schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}, "CustomResourceDefinition", "customresourcedefinitions")
	APIServices = apply.Global(schema.GroupVersion{Group: "apiregistration.k8s.io", Version: "v1"}, "APIService", "apiservices")
	Namespaces  = apply.Global(corev1.SchemeGroupVersion, "Namespace", "namespaces")
	Deployments = apply.Namespaced(appsv1.SchemeGroupVersion, "Deployment", "deployments")
	Secrets     = apply.Namespaced(corev1.SchemeGroupVersion, "Secret", "secrets")
	Records     = apply.Global(workv1.SchemeGroupVersion, "AppliedManifestWork", "appliedmanifestworks")
	claims      = apply.Global(clusterv1alpha1.SchemeGroupVersion, "ClusterClaim", "clusterclaims")
	Klusterlets = apply.Global(operatorv1.SchemeGroupVersion, "Klusterlet", "klusterlets")
)

// SecretNames lists the Secrets that are read: those of the user and of the registration agent, and the minted ones.
var SecretNames = []string{
	operatorv1.ExternalManagedKubeconfig, operatorv1.BootstrapHubKubeconfig, operatorv1.HubKubeconfigSecret,
	operatorv1.ExternalManagedKubeconfigRegistration, operatorv1.ExternalManagedKubeconfigWork, operatorv1.ExternalManagedKubeconfigAgent,
}

// Owned lists the kinds whose objects belong to one Klusterlet alone, in the order of deletion: pods before what they need, and accounts before their
// rights.
var Owned = []apply.Mapping{
	Deployments,
	apply.Namespaced(networkingv1.SchemeGroupVersion, "NetworkPolicy", "networkpolicies"),
	apply.Global(rbacv1.SchemeGroupVersion, "ClusterRoleBinding", "clusterrolebindings"),
	apply.Namespaced(rbacv1.SchemeGroupVersion, "RoleBinding", "rolebindings"),
	apply.Global(rbacv1.SchemeGroupVersion, "ClusterRole", "clusterroles"),
	apply.Namespaced(rbacv1.SchemeGroupVersion, "Role", "roles"),
	apply.Namespaced(corev1.SchemeGroupVersion, "ServiceAccount", "serviceaccounts"),
}

// Shared lists the kinds that several Klusterlets, and others, may use. They are deleted last.
var Shared = []apply.Mapping{Definitions, Namespaces}

// onManaged lists the kinds with objects on a managed cluster whose agent runs elsewhere.
var onManaged = []string{"ClusterRoleBinding", "RoleBinding", "ClusterRole", "ServiceAccount"}

// IsShared reports whether several Klusterlets, and others, may use an object.
func IsShared(o *unstructured.Unstructured) bool {
	return IsSharedKind(apply.Mapping{GroupVersionKind: o.GroupVersionKind()})
}

// IsSharedKind reports the same for objects of a kind.
func IsSharedKind(k apply.Mapping) bool {
	return k.Kind == Definitions.Kind || k.Kind == Namespaces.Kind
}

// IsSharedID reports the same for the object with an ID.
func IsSharedID(id apply.ID) bool {
	return IsSharedKind(apply.Mapping{GroupVersionKind: id.WithVersion("")})
}

// IsOnManaged reports whether a managed cluster whose agent runs elsewhere has objects of a kind.
func IsOnManaged(k apply.Mapping) bool { return IsSharedKind(k) || slices.Contains(onManaged, k.Kind) }

// Mapper returns the mapper of the kinds above.
func Mapper() meta.RESTMapper {
	return apply.Mapper(slices.Concat(Owned, Shared, []apply.Mapping{APIServices, Secrets, Klusterlets, Records, claims})...)
}

// resourceOf returns the entry of an object in a status.
func resourceOf(o *unstructured.Unstructured) operatorv1.RelatedResourceMeta {
	gvk := o.GroupVersionKind()
	related := operatorv1.RelatedResourceMeta{Group: gvk.Group, Version: gvk.Version, Namespace: o.GetNamespace(), Name: o.GetName()}
	for _, all := range [][]apply.Mapping{Owned, Shared} {
		for _, k := range all {
			if k.GroupVersionKind == gvk {
				related.Resource = k.Resource
			}
		}
	}
	return related
}

// objectOf returns an empty object for an entry, or nil if agents have no objects of its kind: others may write the status.
func objectOf(r operatorv1.RelatedResourceMeta) *unstructured.Unstructured {
	for _, all := range [][]apply.Mapping{Owned, Shared} {
		for _, k := range all {
			if k.Group == r.Group && k.Resource == r.Resource {
				o := &unstructured.Unstructured{}
				o.SetGroupVersionKind(k.GroupVersionKind)
				o.SetNamespace(r.Namespace)
				o.SetName(r.Name)
				return o
			}
		}
	}
	return nil
}

// ObjectsOf returns the objects that a status lists, in the order of deletion.
func ObjectsOf(resources []operatorv1.RelatedResourceMeta) (objects []*unstructured.Unstructured) {
	for _, all := range [][]apply.Mapping{Owned, Shared} {
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
