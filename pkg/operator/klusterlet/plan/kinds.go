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

// Kind is a kind of object that an agent consists of, with the name of its resource.
type Kind struct {
	schema.GroupVersionKind
	Resource string
	global   bool
}

// GVR returns the resource.
func (k Kind) GVR() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.Resource) }

// Kinds of which objects are applied or read by their kind.
var (
	Definitions = Kind{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions", true}
	APIServices = Kind{schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "apiservices", true}
	Namespaces  = Kind{corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", true}
	Deployments = Kind{appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", false}
	Secrets     = Kind{corev1.SchemeGroupVersion.WithKind("Secret"), "secrets", false}
	Records     = Kind{workv1.SchemeGroupVersion.WithKind("AppliedManifestWork"), "appliedmanifestworks", true}
	claims      = Kind{clusterv1alpha1.SchemeGroupVersion.WithKind("ClusterClaim"), "clusterclaims", true}
	Klusterlets = Kind{operatorv1.SchemeGroupVersion.WithKind("Klusterlet"), "klusterlets", true}
)

// SecretNames lists the Secrets that are read: those of the user and of the registration agent, and the minted ones.
var SecretNames = []string{
	operatorv1.ExternalManagedKubeconfig, operatorv1.BootstrapHubKubeconfig, operatorv1.HubKubeconfigSecret,
	operatorv1.ExternalManagedKubeconfigRegistration, operatorv1.ExternalManagedKubeconfigWork, operatorv1.ExternalManagedKubeconfigAgent,
}

// Owned lists the kinds whose objects belong to one Klusterlet alone, in the order of deletion: pods before what they need, and accounts before their
// rights.
var Owned = []Kind{
	Deployments,
	{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), "networkpolicies", false},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), "clusterrolebindings", true},
	{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "rolebindings", false},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), "clusterroles", true},
	{rbacv1.SchemeGroupVersion.WithKind("Role"), "roles", false},
	{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "serviceaccounts", false},
}

// Shared lists the kinds that several Klusterlets, and others, may use. They are deleted last.
var Shared = []Kind{Definitions, Namespaces}

// onManaged lists the kinds with objects on a managed cluster whose agent runs elsewhere.
var onManaged = []string{"ClusterRoleBinding", "RoleBinding", "ClusterRole", "ServiceAccount"}

// IsShared reports whether several Klusterlets, and others, may use an object.
func IsShared(o *unstructured.Unstructured) bool {
	return IsSharedKind(Kind{GroupVersionKind: o.GroupVersionKind()})
}

// IsSharedKind reports the same for objects of a kind.
func IsSharedKind(k Kind) bool { return k.Kind == Definitions.Kind || k.Kind == Namespaces.Kind }

// IsSharedID reports the same for the object with an ID.
func IsSharedID(id apply.ID) bool {
	return IsSharedKind(Kind{GroupVersionKind: id.WithVersion("")})
}

// IsOnManaged reports whether a managed cluster whose agent runs elsewhere has objects of a kind.
func IsOnManaged(k Kind) bool { return IsSharedKind(k) || slices.Contains(onManaged, k.Kind) }

// Mapper maps the kinds above. So no discovery request is sent to a cluster, and no cluster can claim another mapping.
func Mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, all := range [][]Kind{Owned, Shared, {APIServices, Secrets, Klusterlets, Records, claims}} {
		for _, k := range all {
			scope := meta.RESTScopeNamespace
			if k.global {
				scope = meta.RESTScopeRoot
			}
			m.AddSpecific(k.GroupVersionKind, k.GVR(), k.GVR(), scope)
		}
	}
	return m
}

// resourceOf returns the entry of an object in a status.
func resourceOf(o *unstructured.Unstructured) operatorv1.RelatedResourceMeta {
	gvk := o.GroupVersionKind()
	related := operatorv1.RelatedResourceMeta{Group: gvk.Group, Version: gvk.Version, Namespace: o.GetNamespace(), Name: o.GetName()}
	for _, all := range [][]Kind{Owned, Shared} {
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
	for _, all := range [][]Kind{Owned, Shared} {
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
	for _, all := range [][]Kind{Owned, Shared} {
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
