// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

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
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestAccessAPI_ProviderWrites runs the life of a cluster with the writes of providers.
func TestAccessAPI_ProviderWrites(t *testing.T) {
	namespace, ctx, c := harness.NewNamespace(t), t.Context(), provider(t)
	cluster := harness.OpenMCPCluster(namespace, newProfile(t))
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
		cluster.Finalizers = []string{harness.OpenMCPGroup + "/finalizer", v1alpha1.RequestFinalizerOnClusterPrefix + "u1"}
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
	namespace, ctx, c := harness.NewNamespace(t), t.Context(), provider(t)
	profile, other := newProfile(t), newProfile(t)
	mine := create(t, harness.OpenMCPCluster(namespace, profile))
	create(t, harness.OpenMCPCluster(namespace, other))
	var clusters v1alpha1.ClusterList
	if err := c.List(ctx, &clusters, client.MatchingFields{"spec.profile": profile}); err != nil || len(clusters.Items) != 1 || clusters.Items[0].Name != mine.Name {
		t.Errorf("of the profile: %v, %v", clusters.Items, err)
	}
	config := harness.Must(harness.Admin(t).OpenMCPV1alpha1().ClusterProfiles().Get(ctx, profile, metav1.GetOptions{}))(t).Spec.ProviderConfigRef.Name
	harness.Contains(t, harness.MustKubectl(t, "", "get", "cprof", "-o", "name", "--field-selector", "spec.providerRef.name=kind,spec.providerConfigRef.name="+config), profile)
	if out, err := harness.Kubectl(t, "", "get", "clusters", "-A", "--field-selector", "spec.tenancy=Shared"); err == nil || !strings.Contains(out, "use one of metadata.name") {
		t.Errorf("by what is no selector: %v, %s", err, out)
	}
	// A watch of the granted requests receives their creations and deletions.
	r := create(t, clusterRequest(namespace))
	w := harness.Must(harness.Admin(t).OpenMCPV1alpha1().ClusterRequests(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "status.phase=Granted,spec.purpose=mcp"}))(t)
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
	namespace := harness.NewNamespace(t)
	manifest := fmt.Sprintf("apiVersion: %s/v1alpha1\nkind: AccessRequest\nmetadata: {name: a, namespace: %s}\nspec: {ttl: 24h, token: {roleRefs: [{kind: ClusterRole, name: view}]}}",
		harness.OpenMCPGroup, namespace)
	version := func() string {
		return harness.MustKubectl(t, "", "get", "ar", "-n", namespace, "a", "-o", "jsonpath={.metadata.resourceVersion} {.metadata.generation} {.spec.ttl}")
	}
	args := []string{"apply", "--server-side", "-f", "-", "--field-manager"}
	harness.MustKubectl(t, manifest, append(args, "one")...)
	before := version()
	harness.MustKubectl(t, manifest, append(args, "one")...)
	if after := version(); after != before || !strings.HasSuffix(after, " 1 24h") {
		t.Errorf("applied again: %s, before %s", after, before)
	}
	if out, err := harness.Kubectl(t, strings.Replace(manifest, "view", "edit", 1), append(args, "two")...); err == nil || !strings.Contains(out, "conflict") {
		t.Errorf("what another manager has: %v, %s", err, out)
	}
	status := strings.Replace(manifest, "spec:", "status: {phase: Granted, observedGeneration: 1}\nspec:", 1)
	harness.MustKubectl(t, status, append(args, "three", "--subresource=status", "--force-conflicts")...)
	managers := harness.MustKubectl(t, "", "get", "ar", "-n", namespace, "a", "-o", "jsonpath={.metadata.managedFields}", "--show-managed-fields")
	harness.Contains(t, managers, `"f:status":{"f:observedGeneration":{},"f:phase":{}}`)
	if strings.Contains(managers, `"manager":"three","operation":"Apply","subresource":""`) {
		t.Errorf("a writer of the status owns more: %s", managers)
	}
	harness.Contains(t, harness.MustKubectl(t, "", "get", "ar", "-n", namespace, "a", "-o", "jsonpath={.status.phase} {.spec.token.roleRefs[0].name}"), "Granted view")
}

// TestAccessAPI_GarbageCollection verifies that the garbage collector and the namespace controller treat our kinds as any other kinds.
func TestAccessAPI_GarbageCollection(t *testing.T) {
	namespace, ctx, core := harness.NewNamespace(t), t.Context(), harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1()
	a := create(t, accessRequest(namespace))
	create(t, accessRequest(namespace))
	create(t, harness.OpenMCPCluster(namespace, newProfile(t)))
	create(t, clusterRequest(namespace))
	harness.Must(core.Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: a.Name + ".kubeconfig", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: harness.OpenMCPGroup + "/v1alpha1", Kind: "AccessRequest", Name: a.Name, UID: a.UID, Controller: new(true),
		}},
	}}, metav1.CreateOptions{}))(t)
	if err := provider(t).Delete(ctx, a); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the secret of the request is gone", func(ctx context.Context) (bool, error) {
		_, err := core.Secrets(namespace).Get(ctx, a.Name+".kubeconfig", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	partial := harness.Must(metadata.NewForConfig(harness.Hub(t).AdminConfig()))(t).Resource(v1alpha1.SchemeGroupVersion.WithResource("accessrequests")).Namespace(namespace)
	list := harness.Must(partial.List(ctx, metav1.ListOptions{}))(t)
	if len(list.Items) != 1 || list.Items[0].UID == "" {
		t.Errorf("the metadata of %d requests", len(list.Items))
	}
	events := harness.Must(partial.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))(t)
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
	harness.Eventually(t, "the namespace has only what has a finalizer", func(ctx context.Context) (bool, error) {
		out, err := harness.Hub(t).Kubectl(ctx, "get", "clusters,cr,ar", "-n", namespace, "-o", "name").Output()
		return strings.TrimSpace(string(out)) == "accessrequest."+harness.OpenMCPGroup+"/"+held.Name, err
	})
	err := provider(t).Create(ctx, accessRequest(namespace))
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a request in a namespace that goes: %v", err)
	}
	harness.MustKubectl(t, "", "patch", "ar", "-n", namespace, held.Name, "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
	harness.Eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err := provider(t).Create(ctx, accessRequest(namespace)); !apierrors.IsNotFound(err) {
		t.Errorf("a request in no namespace: %v", err)
	}
}

func TestAccessAPI_ClusterMustMatchProfile(t *testing.T) {
	namespace := harness.NewNamespace(t)
	profile := newProfile(t, v1alpha1.SupportedK8sVersion{Version: "1.33.3"}, v1alpha1.SupportedK8sVersion{Version: "1.32.8", Deprecated: true})
	c := create(t, harness.OpenMCPCluster(namespace, profile))
	ask := func(version string) (string, error) {
		return harness.Kubectl(t, "", "patch", "cluster", "-n", namespace, c.Name, "--type=merge", "-p", `{"spec":{"kubernetes":{"version":"`+version+`"}}}`)
	}
	if out, err := ask("1.30.0"); err == nil || !strings.Contains(out, `spec.kubernetes.version: Unsupported value: "1.30.0": supported values: "1.32.8", "1.33.3"`) && !strings.Contains(out, `"1.33.3", "1.32.8"`) {
		t.Errorf("a version that is not offered: %v, %s", err, out)
	}
	out, err := ask("1.32.8")
	if err != nil {
		t.Error(out)
	}
	harness.Contains(t, out, "Warning: spec.kubernetes.version: 1.32.8 is deprecated")
	harness.MustKubectl(t, "", "delete", "profile", profile)
	harness.MustKubectl(t, "", "label", "cluster", "-n", namespace, c.Name, "touched=yes")
	// A write to one replica is immediately visible on the other.
	for range 20 {
		p := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: harness.Unique("profile")}, Spec: v1alpha1.ClusterProfileSpec{
			ProviderRef: v1alpha1.LocalObjectReference{Name: "a"}, ProviderConfigRef: v1alpha1.LocalObjectReference{Name: "b"},
			SupportedVersions: []v1alpha1.SupportedK8sVersion{},
		}}
		harness.Must(harness.Ours(t, harness.Hub(t).HubAPIServerConfig(0)).OpenMCPV1alpha1().ClusterProfiles().Create(t.Context(), p, metav1.CreateOptions{}))(t)
		harness.Must(harness.Ours(t, harness.Hub(t).HubAPIServerConfig(1)).OpenMCPV1alpha1().Clusters(namespace).Create(t.Context(), harness.OpenMCPCluster(namespace, p.Name), metav1.CreateOptions{}))(t)
		if err := provider(t).Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAccessAPI_DeletionWarnsOfAccess(t *testing.T) {
	namespace, elsewhere := harness.NewNamespace(t), harness.NewNamespace(t)
	c := create(t, harness.OpenMCPCluster(namespace, newProfile(t)))
	c.Finalizers = []string{v1alpha1.AccessFinalizer}
	if err := provider(t).Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{namespace, elsewhere} {
		a := accessRequest(in)
		a.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: namespace, Name: c.Name}
		create(t, a)
	}
	who := harness.User(t, rbacv1.PolicyRule{Verbs: []string{"delete"}, APIGroups: []string{harness.OpenMCPGroup}, Resources: []string{"clusters"}})
	harness.Eventually(t, "both requests are named to the admin", func(ctx context.Context) (bool, error) {
		out, err := harness.Hub(t).Kubectl(ctx, "delete", "cluster", "-n", namespace, c.Name, "--dry-run=server").CombinedOutput()
		return strings.Contains(string(out), "has 2 AccessRequest(s)") && strings.Contains(string(out), elsewhere+"/access"), err
	})
	harness.Contains(t, harness.MustKubectl(t, "", "delete", "cluster", "-n", namespace, c.Name, "--wait=false", "--as", who),
		"has 2 AccessRequest(s), and remains until they are gone: 2 more")
	harness.Contains(t, harness.MustKubectl(t, "", "get", "cluster", "-n", namespace, c.Name, "-o", "jsonpath={.metadata.deletionTimestamp}"), "T")
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

// TestAccessAPI_CRDsOfSameNameAreNotServed verifies this as openmcp-operator init installs such CRDs.
func TestAccessAPI_CRDsOfSameNameAreNotServed(t *testing.T) {
	h := harness.LendHub(t)
	run := func(stdin string, args ...string) (string, error) {
		cmd := h.Kubectl(t.Context(), args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(theirCRD, "apply", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	if out, err := run("", "wait", "--for=condition=Established", "crd/accessrequests.clusters.openmcp.cloud", "--timeout="+harness.Timeout.String()); err != nil {
		t.Fatal(out)
	}
	out, err := run("", "get", "apiservice", "v1alpha1.clusters.openmcp.cloud", "-o", "jsonpath={.spec.service.name}")
	if err != nil || out != "hub-apiserver" {
		t.Errorf("the group is served by %q, %v", out, err)
	}
	const neither = "apiVersion: clusters.openmcp.cloud/v1alpha1\nkind: AccessRequest\nmetadata: {name: a, namespace: default}\nspec: {}"
	// The server must reject it. kubectl's own validation needs a schema, and while kube-apiserver loads the schema of the CRD, it may respond that
	// it has none.
	if out, err := run(neither, "create", "--validate=false", "-f", "-"); err == nil || !strings.Contains(out, "exactly one of spec.token or spec.oidc must be set") {
		t.Errorf("an invalid request: %v, %s", err, out)
	}
}
