// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

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

// kind is a kind of object that an agent consists of, with the name of its resource.
type kind struct {
	schema.GroupVersionKind
	resource string
	global   bool
}

func (k kind) gvr() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.resource) }

var (
	definitions = kind{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions", true}
	apiServices = kind{schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "apiservices", true}
	namespaces  = kind{corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", true}
	deployments = kind{appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", false}
	secrets     = kind{corev1.SchemeGroupVersion.WithKind("Secret"), "secrets", false}
	records     = kind{workv1.SchemeGroupVersion.WithKind("AppliedManifestWork"), "appliedmanifestworks", true}
	claims      = kind{clusterv1alpha1.SchemeGroupVersion.WithKind("ClusterClaim"), "clusterclaims", true}
	klusterlets = kind{operatorv1.SchemeGroupVersion.WithKind("Klusterlet"), "klusterlets", true}
)

// owned lists the kinds whose objects belong to one Klusterlet alone, in the order of deletion: pods before what they need, and accounts before their
// rights.
var owned = []kind{
	deployments,
	{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), "networkpolicies", false},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), "clusterrolebindings", true},
	{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "rolebindings", false},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), "clusterroles", true},
	{rbacv1.SchemeGroupVersion.WithKind("Role"), "roles", false},
	{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "serviceaccounts", false},
}

// shared lists the kinds that several Klusterlets, and others, may use. They are deleted last.
var shared = []kind{definitions, namespaces}

// onManaged lists the kinds with objects on a managed cluster whose agent runs elsewhere.
var onManaged = []string{"ClusterRoleBinding", "RoleBinding", "ClusterRole", "ServiceAccount"}

func isShared(o *unstructured.Unstructured) bool {
	return isSharedKind(kind{GroupVersionKind: o.GroupVersionKind()})
}

func isSharedKind(k kind) bool { return k.Kind == definitions.Kind || k.Kind == namespaces.Kind }

func isSharedID(id apply.ID) bool {
	return isSharedKind(kind{GroupVersionKind: id.WithVersion("")})
}

func isOnManaged(k kind) bool { return isSharedKind(k) || slices.Contains(onManaged, k.Kind) }

// mapper maps the kinds above. So no discovery request is sent to a cluster, and no cluster can claim another mapping.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, all := range [][]kind{owned, shared, {apiServices, secrets, klusterlets, records, claims}} {
		for _, k := range all {
			scope := meta.RESTScopeNamespace
			if k.global {
				scope = meta.RESTScopeRoot
			}
			m.AddSpecific(k.GroupVersionKind, k.gvr(), k.gvr(), scope)
		}
	}
	return m
}

// resourceOf returns the entry of an object in a status.
func resourceOf(o *unstructured.Unstructured) operatorv1.RelatedResourceMeta {
	gvk := o.GroupVersionKind()
	related := operatorv1.RelatedResourceMeta{Group: gvk.Group, Version: gvk.Version, Namespace: o.GetNamespace(), Name: o.GetName()}
	for _, all := range [][]kind{owned, shared} {
		for _, k := range all {
			if k.GroupVersionKind == gvk {
				related.Resource = k.resource
			}
		}
	}
	return related
}

// objectOf returns an empty object for an entry, or nil if agents have no objects of its kind: others may write the status.
func objectOf(r operatorv1.RelatedResourceMeta) *unstructured.Unstructured {
	for _, all := range [][]kind{owned, shared} {
		for _, k := range all {
			if k.Group == r.Group && k.resource == r.Resource {
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
