// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const workGroup = "work.open-cluster-management.io"

// ownable is one of our kinds in one version, with an object of it.
type ownable struct {
	resource     schema.GroupVersionResource
	kind         string
	subresources []string
	// keeps are finalizers of the hub, forged is an additional one that the hub would take for its own.
	keeps  []string
	forged string
	spec   map[string]any
	// byItsMaker reports whether the object may be created with an owner.
	byItsMaker, namespaced bool
}

// ownables returns the tested kinds. Clusters have this profile.
func ownables(profile string) []ownable {
	of := func(version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: version, Resource: resource}
	}
	access := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: harness.OpenMCPGroup, Version: "v1alpha1", Resource: resource}
	}
	works := func(version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: workGroup, Version: version, Resource: resource}
	}
	oneConfigMap := map[string]any{"workload": map[string]any{"manifests": []any{
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "default"}},
	}}}
	status := []string{"", "status"}
	return []ownable{
		{resource: of("v1", "managedclusters"), kind: "ManagedCluster", subresources: []string{"", "status", "label", "accept"},
			keeps: []string{registration.Finalizer}, forged: "cluster.open-cluster-management.io/x", spec: map[string]any{"hubAcceptsClient": false}},
		{resource: of("v1beta1", "managedclustersets"), kind: "ManagedClusterSet", subresources: status},
		{resource: of("v1beta2", "managedclustersets"), kind: "ManagedClusterSet", subresources: status},
		{resource: of("v1beta1", "managedclustersetbindings"), kind: "ManagedClusterSetBinding", subresources: status, byItsMaker: true, namespaced: true},
		{resource: of("v1beta2", "managedclustersetbindings"), kind: "ManagedClusterSetBinding", subresources: status, byItsMaker: true, namespaced: true},
		{resource: access("clusterprofiles"), kind: "ClusterProfile", subresources: []string{""}, spec: map[string]any{
			"providerRef": map[string]any{"name": "p"}, "providerConfigRef": map[string]any{"name": "p"}, "supportedVersions": []any{}}},
		{resource: access("clusters"), kind: "Cluster", subresources: status, namespaced: true,
			keeps:  []string{"request.clusters.openmcp.cloud/4711", "access.clusters.openmcp.cloud/requests"},
			forged: "request.clusters.openmcp.cloud/4712",
			spec:   map[string]any{"profile": profile, "kubernetes": map[string]any{}, "purposes": []any{"x"}, "tenancy": "Shared"}},
		{resource: access("clusterrequests"), kind: "ClusterRequest", subresources: status, namespaced: true, byItsMaker: true,
			keeps: []string{"clusters.openmcp.cloud/request"}, spec: map[string]any{"purpose": "x"}},
		{resource: access("accessrequests"), kind: "AccessRequest", subresources: status, namespaced: true, byItsMaker: true,
			spec: map[string]any{"requestRef": map[string]any{"name": "x", "namespace": "x"}, "token": map[string]any{}}},
		{resource: of("v1beta1", "placements"), kind: "Placement", subresources: status, byItsMaker: true, namespaced: true},
		{resource: of("v1beta1", "placementdecisions"), kind: "PlacementDecision", subresources: status, namespaced: true},
		{resource: of("v1alpha1", "addonplacementscores"), kind: "AddOnPlacementScore", subresources: status, namespaced: true},
		{resource: works("v1", "manifestworks"), kind: "ManifestWork", subresources: status, byItsMaker: true, namespaced: true, spec: oneConfigMap},
		{resource: works("v1", "appliedmanifestworks"), kind: "AppliedManifestWork", subresources: status,
			spec: map[string]any{"hubHash": "x", "manifestWorkName": "x"}},
		{resource: works("v1alpha1", "manifestworkreplicasets"), kind: "ManifestWorkReplicaSet", subresources: status, byItsMaker: true, namespaced: true,
			keeps: []string{work.ReplicaSetFinalizer}, spec: map[string]any{"manifestWorkTemplate": oneConfigMap, "placementRefs": []any{map[string]any{"name": "x"}}}},
		{resource: of("v1alpha1", "clusterclaims"), kind: "ClusterClaim", subresources: []string{""}, spec: map[string]any{"value": "x"}},
	}
}

// newOwnables returns the tested kinds, and creates the profile of the Clusters among them.
func newOwnables(t *testing.T) []ownable {
	t.Helper()
	profile := harness.Unique("ownable")
	all := ownables(profile)
	i := slices.IndexFunc(all, func(o ownable) bool { return o.kind == "ClusterProfile" })
	client := all[i].client(t, harness.Hub(t).AdminConfig(), "")
	harness.Must(client.Create(t.Context(), all[i].object("", profile), metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = client.Delete(context.WithoutCancel(t.Context()), profile, metav1.DeleteOptions{}) })
	return all
}

// object returns the object with the metadata that only the format of a request affects.
func (o ownable) object(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(o.resource.GroupVersion().WithKind(o.kind))
	u.SetName(name)
	if o.spec != nil {
		u.Object["spec"] = o.spec
	}
	if o.namespaced {
		u.SetNamespace(namespace)
	}
	switch o.kind {
	case "PlacementDecision", "AddOnPlacementScore":
		delete(u.Object, "spec")
	case "ManagedClusterSetBinding":
		u.Object["spec"] = map[string]any{"clusterSet": name}
	}
	return u
}

func (o ownable) client(t *testing.T, config *rest.Config, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client := harness.Must(dynamic.NewForConfig(config))(t).Resource(o.resource)
	if o.namespaced {
		return client.Namespace(namespace)
	}
	return client
}

var absent = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "there-is-none", UID: "00000000-0000-4000-8000-000000000000"}}

// rewrites returns all ways to set other owners and finalizers on an existing object.
func rewrites(client dynamic.ResourceInterface, there *unstructured.Unstructured, owners []metav1.OwnerReference, finalizers []string, dryRun bool,
) map[string]func(ctx context.Context, subresource ...string) error {
	wanted := there.DeepCopy()
	wanted.SetOwnerReferences(owners)
	wanted.SetFinalizers(finalizers)
	metadata := map[string]any{"ownerReferences": owners, "finalizers": finalizers}
	if finalizers == nil {
		metadata["finalizers"] = []string{}
	}
	if owners == nil {
		metadata["ownerReferences"] = []metav1.OwnerReference{}
	}
	patch := func(kind types.PatchType, body any) func(context.Context, ...string) error {
		return func(ctx context.Context, subresource ...string) error {
			data, err := json.Marshal(body)
			if err != nil {
				return err
			}
			opts := metav1.PatchOptions{DryRun: harness.DryRun(dryRun)}
			if kind == types.ApplyYAMLPatchType {
				opts.Force, opts.FieldManager = new(true), harness.FieldManager
			}
			_, err = client.Patch(ctx, there.GetName(), kind, data, opts, subresource...)
			return err
		}
	}
	strategic := map[string]any{"finalizers": finalizers, "ownerReferences": slices.Concat([]any{map[string]any{"$patch": "replace"}}, anys(owners)),
		"$deleteFromPrimitiveList/finalizers": slices.DeleteFunc(slices.Clone(there.GetFinalizers()), func(f string) bool {
			return slices.Contains(finalizers, f)
		})}
	applied := map[string]any{"apiVersion": there.GetAPIVersion(), "kind": there.GetKind(),
		"metadata": map[string]any{"name": there.GetName(), "namespace": there.GetNamespace(), "ownerReferences": owners, "finalizers": finalizers}}
	if spec, ok := there.Object["spec"]; ok {
		applied["spec"] = spec
	}
	return map[string]func(context.Context, ...string) error{
		"update": func(ctx context.Context, subresource ...string) error {
			_, err := client.Update(ctx, wanted.DeepCopy(), metav1.UpdateOptions{DryRun: harness.DryRun(dryRun)}, subresource...)
			return err
		},
		"json patch": patch(types.JSONPatchType, []map[string]any{
			{"op": "add", "path": "/metadata/ownerReferences", "value": metadata["ownerReferences"]},
			{"op": "add", "path": "/metadata/finalizers", "value": metadata["finalizers"]},
		}),
		"merge patch":           patch(types.MergePatchType, map[string]any{"metadata": metadata}),
		"strategic merge patch": patch(types.StrategicMergePatchType, map[string]any{"metadata": strategic}),
		"apply":                 patch(types.ApplyYAMLPatchType, applied),
	}
}

func anys[T any](list []T) []any {
	result := make([]any, 0, len(list))
	for _, item := range list {
		result = append(result, item)
	}
	return result
}

// nextToOwning returns all rights on our kinds except to delete, finalize and accept.
func nextToOwning() []rbacv1.PolicyRule {
	clusters := harness.Rule("get,list,watch,create,update,patch", "managedclusters")
	clusters.Resources = append(clusters.Resources, "managedclustersets", "managedclustersetbindings", "managedclusters/status",
		"managedclusters/label", "managedclustersets/status", "managedclustersetbindings/status", "managedclustersets/bind",
		"managedclustersets/join", "placements", "placements/status", "placementdecisions", "placementdecisions/status", "addonplacementscores",
		"addonplacementscores/status", "clusterclaims")
	access := harness.RuleIn(harness.OpenMCPGroup, "get,list,watch,create,update,patch", "*")
	access.Resources = []string{"clusterprofiles", "clusters", "clusters/status", "clusterrequests", "clusterrequests/status",
		"accessrequests", "accessrequests/status"}
	works := harness.RuleIn(workGroup, "get,list,watch,create,update,patch", "*")
	works.Resources = []string{"manifestworks", "manifestworks/status", "appliedmanifestworks", "appliedmanifestworks/status",
		"manifestworkreplicasets", "manifestworkreplicasets/status"}
	finalizers := harness.RuleIn(harness.OpenMCPGroup, "get,patch,delete", "clusters/finalizers")
	return []rbacv1.PolicyRule{clusters, access, works, finalizers, harness.Rule("get,patch,delete,deletecollection", "managedclusters/finalizers"),
		harness.Rule("get,patch,create", "managedclusters/accept"), harness.Rule("delete", "managedclusters", "another"),
		harness.RuleIn(harness.OpenMCPGroup, "delete", "clusters", "another"), harness.Rule("update", "managedclusters/finalizers", "another")}
}

// TestOwnership_RequiresDeletePermission tries to make the garbage collector delete an object, and to remove or forge the finalizers of the
// hub.
func TestOwnership_RequiresDeletePermission(t *testing.T) {
	attacker, namespace := harness.User(t, nextToOwning()...), harness.NewNamespace(t)
	for _, o := range newOwnables(t) {
		t.Run(o.resource.Version+" "+o.resource.Resource, func(t *testing.T) {
			for route, config := range map[string]*rest.Config{
				"through the front": harness.Hub(t).UserConfig(attacker),
				"direct":            harness.Hub(t).HubAPIServerUserConfig(1, attacker, "system:authenticated"),
			} {
				o.attack(t, route, config, namespace)
			}
		})
	}
}

func (o ownable) attack(t *testing.T, route string, config *rest.Config, namespace string) {
	t.Helper()
	admin, client, name := o.client(t, harness.Hub(t).AdminConfig(), namespace), o.client(t, config, namespace), harness.Unique("owned")
	held := o.object(namespace, name)
	held.SetFinalizers(append([]string{"example.com/a"}, o.keeps...))
	// The attacker's field manager applies it, so that fields that its next apply omits are removed.
	there := harness.Must(admin.Apply(t.Context(), name, held, metav1.ApplyOptions{FieldManager: harness.FieldManager}))(t)
	try := func(what string, owners []metav1.OwnerReference, finalizers []string) {
		for _, subresource := range o.subresources {
			for _, dryRun := range []bool{true, false} {
				for how := range rewrites(client, there, owners, finalizers, dryRun) {
					what := fmt.Sprintf("%s: %s, %s, /%s, dry run %t", what, route, how, subresource, dryRun)
					conflict := apierrors.NewConflict(schema.GroupResource{}, name, nil) // the hub's controllers write, too
					for status := error(conflict); apierrors.IsConflict(status); {
						there = harness.Must(admin.Get(t.Context(), name, metav1.GetOptions{}))(t)
						write := rewrites(client, there, owners, finalizers, dryRun)[how]
						if subresource == "" {
							status = write(t.Context())
							if !apierrors.IsForbidden(status) && !apierrors.IsConflict(status) {
								t.Errorf("%s: got %v", what, status)
							}
						} else {
							status = write(t.Context(), subresource)
						}
					}
					now, gone := admin.Get(t.Context(), name, metav1.GetOptions{})
					if gone != nil || now.GetDeletionTimestamp() != nil {
						t.Fatalf("%s: it is gone, or goes: %v", what, gone)
					}
					if len(now.GetOwnerReferences()) > 0 || !equality.Semantic.DeepEqual(now.GetFinalizers(), there.GetFinalizers()) {
						t.Fatalf("%s: it is %v", what, now.Object["metadata"])
					}
				}
			}
		}
	}
	try("an owner", absent, there.GetFinalizers())
	if len(o.keeps) > 0 {
		try("no finalizers", nil, nil)
		try("the finalizers of others alone", nil, []string{"example.com/a"})
	}
	if o.forged != "" {
		try("a forged finalizer", nil, append(slices.Clone(there.GetFinalizers()), o.forged))
	}
	o.born(t, route, client, namespace)
	harness.Must(admin.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))(t)
	if err := admin.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// born tries to create objects that have an owner, or a finalizer of the hub.
func (o ownable) born(t *testing.T, route string, client dynamic.ResourceInterface, namespace string) {
	t.Helper()
	owned := o.object(namespace, harness.Unique("born"))
	owned.SetOwnerReferences(absent)
	tries := map[string]*unstructured.Unstructured{}
	if !o.byItsMaker {
		tries["an owner"] = owned
	}
	for _, f := range o.keeps {
		held := o.object(namespace, harness.Unique("born"))
		held.SetFinalizers([]string{f})
		tries[f] = held
	}
	for what, object := range tries {
		generated := object.DeepCopy()
		generated.SetName("")
		generated.SetGenerateName("born-")
		_, create := client.Create(t.Context(), object, metav1.CreateOptions{})
		_, dryRun := client.Create(t.Context(), object, metav1.CreateOptions{DryRun: harness.DryRun(true)})
		_, generate := client.Create(t.Context(), generated, metav1.CreateOptions{})
		_, apply := client.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: harness.FieldManager})
		for how, err := range map[string]error{"create": create, "create, dry run": dryRun, "create, generated": generate, "apply": apply} {
			if how == "create, generated" && o.kind == "ManagedClusterSetBinding" {
				continue
			}
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s, born with %s, %s: got %v", route, what, how, err)
			}
		}
	}
}

// TestOwnership_PermissionAllows verifies that the right allows these writes: otherwise, the attacks could fail for any reason.
func TestOwnership_PermissionAllows(t *testing.T) {
	namespace := harness.NewNamespace(t)
	end := func(group, resource string) rbacv1.PolicyRule {
		return harness.RuleIn(group, "update", resource+"/finalizers")
	}
	allowed := harness.User(t, append(nextToOwning(), harness.RuleIn("cluster.open-cluster-management.io", "delete", "*"), harness.RuleIn("work.open-cluster-management.io", "delete", "*"),
		harness.RuleIn(harness.OpenMCPGroup, "delete", "*"),
		end("cluster.open-cluster-management.io", "managedclusters"), end(harness.OpenMCPGroup, "clusters"), end(harness.OpenMCPGroup, "clusterrequests"),
		end(workGroup, "manifestworkreplicasets"))...)
	for _, o := range newOwnables(t) {
		admin, client, name := o.client(t, harness.Hub(t).AdminConfig(), namespace), o.client(t, harness.Hub(t).UserConfig(allowed), namespace), harness.Unique("owned")
		there := harness.Must(admin.Create(t.Context(), o.object(namespace, name), metav1.CreateOptions{}))(t)
		for how := range rewrites(client, there, absent, nil, true) {
			harness.Eventually(t, how+" of "+o.resource.String(), func(ctx context.Context) (bool, error) {
				there = harness.Must(admin.Get(ctx, name, metav1.GetOptions{}))(t)
				err := rewrites(client, there, absent, append([]string{"example.com/a"}, o.keeps...), true)[how](ctx)
				if err != nil && !apierrors.IsConflict(err) { // the hub's controllers write, too
					t.Errorf("%s, %s: %v", o.resource, how, err)
				}
				return !apierrors.IsConflict(err), err
			})
		}
		// The garbage collector deletes the object.
		if err := rewrites(client, there, absent, nil, false)["merge patch"](t.Context()); err != nil {
			t.Errorf("%s: %v", o.resource, err)
		}
		harness.Eventually(t, "it is gone: "+o.resource.String(), func(ctx context.Context) (bool, error) {
			_, err := admin.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	}
}
