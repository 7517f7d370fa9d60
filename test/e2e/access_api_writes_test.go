// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/localhub"
)

// TestAccessAPI_WritesAsProvidersDo goes through the life of a cluster.
func TestAccessAPI_WritesAsProvidersDo(t *testing.T) {
	namespace, ctx, c := newNamespace(t), t.Context(), provider(t)
	cluster := openmcpCluster(namespace, newProfile(t))
	cluster.Status.Phase, cluster.Generation = "Ready", 5
	create(t, cluster)
	if cluster.Generation != 1 || cluster.Status.Phase != "" {
		t.Errorf("created with generation %d, phase %q", cluster.Generation, cluster.Status.Phase)
	}
	step := func(what string, err error, generation int64) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if cluster.Generation != generation {
			t.Errorf("%s: generation %d, want %d", what, cluster.Generation, generation)
		}
	}
	stale := cluster.DeepCopy()
	merge := func(subresource bool, change func()) error {
		old := cluster.DeepCopy()
		change()
		if subresource {
			return c.Status().Patch(ctx, cluster, client.MergeFrom(old))
		}
		return c.Patch(ctx, cluster, client.MergeFrom(old))
	}
	step("a merge patch of labels and finalizers", merge(false, func() {
		cluster.Labels = map[string]string{v1alpha1.ProviderLabel: "kind"}
		cluster.Finalizers = []string{openmcpGroup + "/finalizer", v1alpha1.RequestFinalizerOnClusterPrefix + "u1"}
	}), 1)
	step("of the status, with the spec", merge(true, func() {
		cluster.Status.Phase, cluster.Status.ObservedGeneration = v1alpha1.StatusPhaseProgressing, 1
		cluster.Status.Endpoints.Set(v1alpha1.APISERVER_ENDPOINT_EXTERNAL, "https://a")
		cluster.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"kind":"x","nested":{"any":[1,{"b":false}]}}`)}
		cluster.Spec.Tenancy = v1alpha1.TENANCY_EXCLUSIVE
		cluster.Labels["x"] = "y"
	}), 1)
	if cluster.Spec.Tenancy != v1alpha1.TENANCY_SHARED || cluster.Labels["x"] != "" || cluster.Status.Phase != "Progressing" {
		t.Errorf("became %+v", cluster)
	}
	step("of one field of the status", merge(true, func() { cluster.Status.Phase = v1alpha1.StatusPhaseReady }), 1)
	if got := string(cluster.Status.ProviderStatus.Raw); got != `{"kind":"x","nested":{"any":[1,{"b":false}]}}` {
		t.Errorf("the provider's status is %s", got)
	}
	step("of the spec, with the status", merge(false, func() { cluster.Spec.Purposes = []string{"a"}; cluster.Status.Phase = "x" }), 2)
	if cluster.Status.Phase != "Ready" || cluster.GetTenancyCount() != 1 {
		t.Errorf("became %+v", cluster)
	}
	stale.Spec.Purposes = []string{"b"}
	if err := c.Update(ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("a PUT of what was before: %v, want a 409", err)
	}
	stale.ResourceVersion = ""
	if err := c.Update(ctx, stale); err == nil {
		t.Error("a PUT without a version is taken")
	}
	cluster.Status.Phase = "Progressing"
	step("a PUT of the status", c.Status().Update(ctx, cluster), 2)
	cluster.Spec.Tenancy = v1alpha1.TENANCY_EXCLUSIVE
	step("a PUT", c.Update(ctx, cluster), 3)

	if err := c.Delete(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	step("the deletion", c.Get(ctx, client.ObjectKeyFromObject(cluster), cluster), 4)
	err := c.Patch(ctx, cluster, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); !apierrors.IsNotFound(err) {
		t.Errorf("without finalizers: %v, want a 404", err)
	}
}

func TestAccessAPI_SelectsByFields(t *testing.T) {
	namespace, ctx, c := newNamespace(t), t.Context(), provider(t)
	profile, other := newProfile(t), newProfile(t)
	mine := create(t, openmcpCluster(namespace, profile))
	create(t, openmcpCluster(namespace, other))
	var clusters v1alpha1.ClusterList
	if err := c.List(ctx, &clusters, client.MatchingFields{"spec.profile": profile}); err != nil || len(clusters.Items) != 1 || clusters.Items[0].Name != mine.Name {
		t.Errorf("of the profile: %v, %v", clusters.Items, err)
	}
	config := must(admin(t).OpenMCPV1alpha1().ClusterProfiles().Get(ctx, profile, metav1.GetOptions{}))(t).Spec.ProviderConfigRef.Name
	contains(t, mustKubectl(t, "", "get", "cprof", "-o", "name", "--field-selector", "spec.providerRef.name=kind,spec.providerConfigRef.name="+config), profile)
	if out, err := kubectl(t, "", "get", "clusters", "-A", "--field-selector", "spec.tenancy=Shared"); err == nil || !strings.Contains(out, "use one of metadata.name") {
		t.Errorf("by what is no selector: %v, %s", err, out)
	}
	// A watch of the requests that are granted sees them come and go.
	r := create(t, clusterRequest(namespace))
	w := must(admin(t).OpenMCPV1alpha1().ClusterRequests(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "status.phase=Granted,spec.purpose=mcp"}))(t)
	defer w.Stop()
	for _, s := range []struct {
		phase string
		event watch.EventType
	}{{"Granted", watch.Added}, {"Denied", watch.Deleted}} {
		r.Status.Phase = s.phase
		if err := c.Status().Update(ctx, r); err != nil {
			t.Fatal(err)
		}
		if e := <-w.ResultChan(); e.Type != s.event || e.Object.(*v1alpha1.ClusterRequest).Name != r.Name {
			t.Errorf("%s: got %v", s.phase, e)
		}
	}
}

func TestAccessAPI_ServerSideApply(t *testing.T) {
	namespace := newNamespace(t)
	manifest := fmt.Sprintf("apiVersion: %s/v1alpha1\nkind: AccessRequest\nmetadata: {name: a, namespace: %s}\nspec: {ttl: 24h, token: {roleRefs: [{kind: ClusterRole, name: view}]}}",
		openmcpGroup, namespace)
	version := func() string {
		return mustKubectl(t, "", "get", "ar", "-n", namespace, "a", "-o", "jsonpath={.metadata.resourceVersion} {.metadata.generation} {.spec.ttl}")
	}
	args := []string{"apply", "--server-side", "-f", "-", "--field-manager"}
	mustKubectl(t, manifest, append(args, "one")...)
	before := version()
	mustKubectl(t, manifest, append(args, "one")...)
	if after := version(); after != before || !strings.HasSuffix(after, " 1 24h0m0s") {
		t.Errorf("applied again: %s, before %s", after, before)
	}
	if out, err := kubectl(t, strings.Replace(manifest, "view", "edit", 1), append(args, "two")...); err == nil || !strings.Contains(out, "conflict") {
		t.Errorf("what another manager has: %v, %s", err, out)
	}
	status := strings.Replace(manifest, "spec:", "status: {phase: Granted, observedGeneration: 1}\nspec:", 1)
	mustKubectl(t, status, append(args, "three", "--subresource=status", "--force-conflicts")...)
	managers := mustKubectl(t, "", "get", "ar", "-n", namespace, "a", "-o", "jsonpath={.metadata.managedFields}", "--show-managed-fields")
	contains(t, managers, `"f:status":{"f:observedGeneration":{},"f:phase":{}}`)
	if strings.Contains(managers, `"manager":"three","operation":"Apply","subresource":""`) {
		t.Errorf("a writer of the status owns more: %s", managers)
	}
	contains(t, mustKubectl(t, "", "get", "ar", "-n", namespace, "a", "-o", "jsonpath={.status.phase} {.spec.token.roleRefs[0].name}"), "Granted view")
}

// TestAccessAPI_KubernetesCollectsAndPurges: its own controllers treat our kinds as any others.
func TestAccessAPI_KubernetesCollectsAndPurges(t *testing.T) {
	namespace, ctx, core := newNamespace(t), t.Context(), kube(t, hub.AdminConfig()).CoreV1()
	a := create(t, accessRequest(namespace))
	create(t, accessRequest(namespace))
	create(t, openmcpCluster(namespace, newProfile(t)))
	create(t, clusterRequest(namespace))
	must(core.Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: a.Name + ".kubeconfig", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: openmcpGroup + "/v1alpha1", Kind: "AccessRequest", Name: a.Name, UID: a.UID, Controller: new(true),
		}},
	}}, metav1.CreateOptions{}))(t)
	if err := provider(t).Delete(ctx, a); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the secret of the request is gone", func(ctx context.Context) (bool, error) {
		_, err := core.Secrets(namespace).Get(ctx, a.Name+".kubeconfig", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	partial := must(metadata.NewForConfig(hub.AdminConfig()))(t).Resource(v1alpha1.SchemeGroupVersion.WithResource("accessrequests")).Namespace(namespace)
	list := must(partial.List(ctx, metav1.ListOptions{}))(t)
	if len(list.Items) != 1 || list.Items[0].UID == "" {
		t.Errorf("the metadata of %d requests", len(list.Items))
	}
	events := must(partial.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))(t)
	defer events.Stop()
	if err := partial.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := <-events.ResultChan(); e.Type != watch.Deleted {
		t.Errorf("the watch of metadata says %v", e)
	}
	held := create(t, accessRequest(namespace))
	held.Finalizers = []string{v1alpha1.ClusterAccessFinalizer}
	if err := provider(t).Update(ctx, held); err != nil {
		t.Fatal(err)
	}
	if err := core.Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has only what has a finalizer", func(ctx context.Context) (bool, error) {
		out, err := hub.Kubectl(ctx, "get", "clusters,cr,ar", "-n", namespace, "-o", "name").Output()
		return strings.TrimSpace(string(out)) == "accessrequest."+openmcpGroup+"/"+held.Name, err
	})
	err := provider(t).Create(ctx, accessRequest(namespace))
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a request in a namespace that goes: %v", err)
	}
	mustKubectl(t, "", "patch", "ar", "-n", namespace, held.Name, "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
	eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err := provider(t).Create(ctx, accessRequest(namespace)); !apierrors.IsNotFound(err) {
		t.Errorf("a request in no namespace: %v", err)
	}
}

func TestAccessAPI_AClusterIsHeldToItsProfile(t *testing.T) {
	namespace := newNamespace(t)
	profile := newProfile(t, v1alpha1.SupportedK8sVersion{Version: "1.33.3"}, v1alpha1.SupportedK8sVersion{Version: "1.32.8", Deprecated: true})
	c := create(t, openmcpCluster(namespace, profile))
	ask := func(version string) (string, error) {
		return kubectl(t, "", "patch", "cluster", "-n", namespace, c.Name, "--type=merge", "-p", `{"spec":{"kubernetes":{"version":"`+version+`"}}}`)
	}
	if out, err := ask("1.30.0"); err == nil || !strings.Contains(out, `spec.kubernetes.version: Unsupported value: "1.30.0": supported values: "1.32.8", "1.33.3"`) && !strings.Contains(out, `"1.33.3", "1.32.8"`) {
		t.Errorf("a version that is not offered: %v, %s", err, out)
	}
	out, err := ask("1.32.8")
	if err != nil {
		t.Error(out)
	}
	contains(t, out, "Warning: spec.kubernetes.version: 1.32.8 is deprecated")
	mustKubectl(t, "", "delete", "profile", profile)
	mustKubectl(t, "", "label", "cluster", "-n", namespace, c.Name, "touched=yes")
	// What one replica has made is there for the other at once.
	for range 20 {
		p := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: unique("profile")}, Spec: v1alpha1.ClusterProfileSpec{
			ProviderRef: v1alpha1.LocalObjectReference{Name: "a"}, ProviderConfigRef: v1alpha1.LocalObjectReference{Name: "b"},
			SupportedVersions: []v1alpha1.SupportedK8sVersion{},
		}}
		must(ours(t, hub.HubAPIServerConfig(0)).OpenMCPV1alpha1().ClusterProfiles().Create(t.Context(), p, metav1.CreateOptions{}))(t)
		must(ours(t, hub.HubAPIServerConfig(1)).OpenMCPV1alpha1().Clusters(namespace).Create(t.Context(), openmcpCluster(namespace, p.Name), metav1.CreateOptions{}))(t)
		if err := provider(t).Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAccessAPI_WhoDeletesAClusterIsToldWhoHasAccess(t *testing.T) {
	namespace, elsewhere := newNamespace(t), newNamespace(t)
	c := create(t, openmcpCluster(namespace, newProfile(t)))
	c.Finalizers = []string{v1alpha1.AccessFinalizer}
	if err := provider(t).Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{namespace, elsewhere} {
		a := accessRequest(in)
		a.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: namespace, Name: c.Name}
		create(t, a)
	}
	who := user(t, rbacv1.PolicyRule{Verbs: []string{"delete"}, APIGroups: []string{openmcpGroup}, Resources: []string{"clusters"}})
	eventually(t, "both requests are named to the admin", func(ctx context.Context) (bool, error) {
		out, err := hub.Kubectl(ctx, "delete", "cluster", "-n", namespace, c.Name, "--dry-run=server").CombinedOutput()
		return strings.Contains(string(out), "has 2 AccessRequest(s)") && strings.Contains(string(out), elsewhere+"/access"), err
	})
	contains(t, mustKubectl(t, "", "delete", "cluster", "-n", namespace, c.Name, "--wait=false", "--as", who),
		"has 2 AccessRequest(s), and stays until they are gone: 2 more")
	contains(t, mustKubectl(t, "", "get", "cluster", "-n", namespace, c.Name, "-o", "jsonpath={.metadata.deletionTimestamp}"), "T")
}

const theirCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: accessrequests.clusters.openmcp.cloud
spec:
  group: clusters.openmcp.cloud
  scope: Namespaced
  names: {kind: AccessRequest, listKind: AccessRequestList, plural: accessrequests, singular: accessrequest}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// TestAccessAPI_CRDsOfTheSameNameAreNotServed: openmcp-operator init installs them.
func TestAccessAPI_CRDsOfTheSameNameAreNotServed(t *testing.T) {
	h := ownHub(t, func(c *localhub.Config) { c.WithoutHubControllerManager, c.WithoutKubeControllerManager = true, true })
	run := func(stdin string, args ...string) (string, error) {
		cmd := h.Kubectl(t.Context(), args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(theirCRD, "apply", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	if out, err := run("", "wait", "--for=condition=Established", "crd/accessrequests.clusters.openmcp.cloud", "--timeout=30s"); err != nil {
		t.Fatal(out)
	}
	out, err := run("", "get", "apiservice", "v1alpha1.clusters.openmcp.cloud", "-o", "jsonpath={.spec.service.name}")
	if err != nil || out != "hub-apiserver" {
		t.Errorf("the group is served by %q, %v", out, err)
	}
	const neither = "apiVersion: clusters.openmcp.cloud/v1alpha1\nkind: AccessRequest\nmetadata: {name: a, namespace: default}\nspec: {}"
	if out, err := run(neither, "create", "-f", "-"); err == nil || !strings.Contains(out, "exactly one of spec.token or spec.oidc must be set") {
		t.Errorf("an invalid request: %v, %s", err, out)
	}
}
