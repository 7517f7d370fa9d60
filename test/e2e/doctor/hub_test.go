// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestDoctor_Hub breaks a hub in several ways. The printed commands fix each fault, and then doctor has no findings.
func TestDoctor_Hub(t *testing.T) {
	w := newWorld(t)
	w.healthy(t, onHub)
	if r := w.doctor(t, onHub); len(r.Unseen) > 0 {
		t.Errorf("an admin does not see %v", r.Unseen)
	}
	if r := w.doctor(t, onHub, "--as", "someone"); len(r.Findings) > 0 || len(r.Unseen) < 10 {
		t.Errorf("who may see nothing finds:\n%s", r)
	}
	harness.Contains(t, w.plugin.Must(t, "doctor", "--context", onHub), "No problems found.", "Checked: APIServices, ")

	for _, fault := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"a binding of a component is missing", bindingMissing},
		{"a role lacks a rule", ruleMissing},
		{"an admission policy does not bind", policyMissing},
		{"the CA of an APIService is another one", wrongCA},
		{"an APIService is missing", apiServiceMissing},
		{"a CustomResourceDefinition is hidden", hiddenCRD},
		{"a CustomResourceDefinition is served instead", servedCRD},
		{"a webhook leads nowhere", webhook},
		{"a binding names no set", bindingOfNoSet},
		{"a set names a label that no cluster has", setOfNoLabel},
		{"a cluster waits to be accepted", acceptancePending},
		{"the hub's etcd is full", storageFull},
		{"the clock of the hub is off", clockOff},
		{"no controllers run", noLeader},
		{"hub-apiserver does not run", unreachable},
	} {
		begun := time.Now()
		fault.test(t, w)
		w.healthy(t, onHub)
		t.Logf("%s: %s", fault.name, time.Since(begun).Round(time.Millisecond))
		if t.Failed() {
			t.Fatalf("%s: see above", fault.name)
		}
	}
	managed(t, w)
}

func bindingMissing(t *testing.T, w *world) {
	const binding = "clusterrolebinding/clusterhub:hub-controller-manager"
	w.kubectl(t, onHub, "", "delete", binding)
	w.paste(t, w.found(t, onHub, "PermissionsMissing", binding, []string{"serviceaccount hub-controller-manager"}))
}

func ruleMissing(t *testing.T, w *world) {
	w.kubectl(t, onHub, "", "patch", "clusterrole", "clusterhub:hub-apiserver", "--type=json", `-p=[{"op":"remove","path":"/rules/0"}]`)
	w.paste(t, w.found(t, onHub, "PermissionsMissing", "clusterrole/clusterhub:hub-apiserver", []string{"It lacks a rule: "}))
}

func policyMissing(t *testing.T, w *world) {
	const binding = "validatingadmissionpolicybinding/controllers-clusterroles.clusterhub.dev"
	w.kubectl(t, onHub, "", "patch", binding, "--type=merge", `-p={"spec":{"validationActions":["Audit"]}}`)
	w.paste(t, w.found(t, onHub, "PolicyMissing", binding, []string{"differs from the one in artifacts/deploy"}))
	w.kubectl(t, onHub, "", "delete", binding)
	w.paste(t, w.found(t, onHub, "PolicyMissing", binding, []string{"does not exist"}))
}

// wrongCA persists as long as hub-apiserver may not write APIServices.
func wrongCA(t *testing.T, w *world) {
	const service, binding = "v1alpha1.view.clusterhub.dev", "clusterrolebinding/clusterhub:hub-apiserver"
	w.kubectl(t, onHub, "", "delete", binding)
	other := base64.StdEncoding.EncodeToString(w.hub.AdminConfig().CAData)
	if other == "" {
		other = base64.StdEncoding.EncodeToString([]byte(harness.Must(readFile(w.hub.AdminConfig().CAFile))(t)))
	}
	w.kubectl(t, onHub, "", "patch", "apiservice", service, "--type=merge", fmt.Sprintf(`-p={"spec":{"caBundle":%q}}`, other))
	f := w.found(t, onHub, "APIServiceDistrusted", "apiservice/"+service, []string{"caBundle sha256:", "x509"})
	rights := w.found(t, onHub, "PermissionsMissing", binding, nil)
	w.paste(t, f)
	w.paste(t, rights)
}

func apiServiceMissing(t *testing.T, w *world) {
	const service = "v1alpha1.view.clusterhub.dev"
	port := w.kubectl(t, onHub, "", "get", "apiservice", service, "-o", "jsonpath={.spec.service.port}")
	w.kubectl(t, onHub, "", "delete", "apiservice", service)
	w.paste(t, w.found(t, onHub, "APIServiceMissing", "apiservice/"+service, nil))
	w.routed(t, service, port)
}

// routed sets the port of this hub in an APIService: the manifests have the port of a Service.
func (w *world) routed(t *testing.T, service, port string) {
	t.Helper()
	w.kubectl(t, onHub, "", "patch", "apiservice", service, "--type=merge", fmt.Sprintf(`-p={"spec":{"service":{"port":%s}}}`, port))
}

func crd(plural, kind, group, version string) string {
	return fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.%[3]s}, spec: {group: %[3]s, scope: Cluster,
names: {plural: %[1]s, kind: %[2]s}, versions: [{name: %[4]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`, plural, kind, group, version)
}

func hiddenCRD(t *testing.T, w *world) {
	w.kubectl(t, onHub, crd("managedclusters", "ManagedCluster", "cluster.open-cluster-management.io", "v1"), "apply", "-f", "-")
	w.paste(t, w.found(t, onHub, "CustomResourcesInTheWay", "customresourcedefinition/managedclusters.cluster.open-cluster-management.io", []string{"hidden"}))
}

func servedCRD(t *testing.T, w *world) {
	const service = "v1alpha1.view.clusterhub.dev"
	port := w.kubectl(t, onHub, "", "get", "apiservice", service, "-o", "jsonpath={.spec.service.port}")
	w.kubectl(t, onHub, crd("clustersetmembers", "ClusterSetMember", "view.clusterhub.dev", "v1alpha1"), "apply", "-f", "-")
	w.kubectl(t, onHub, "", "delete", "apiservice", service)
	f := w.found(t, onHub, "CustomResourcesInTheWay", "apiservice/"+service, []string{"not from hub-apiserver"})
	w.paste(t, f)
	w.routed(t, service, port)
}

func webhook(t *testing.T, w *world) {
	w.kubectl(t, onHub, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: nowhere},
webhooks: [{name: other.example.com, rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: [pods]}], sideEffects: None, admissionReviewVersions: [v1],
clientConfig: {service: {namespace: default, name: nothing}}},
{name: nowhere.example.com, rules: [{apiGroups: [cluster.open-cluster-management.io], apiVersions: ["*"], operations: ["CREATE"], resources: [managedclusters]}], sideEffects: None,
admissionReviewVersions: [v1], clientConfig: {service: {namespace: default, name: nothing}}}]}`, "apply", "-f", "-")
	f := w.found(t, onHub, "WebhookUnreachable", "validatingwebhookconfiguration/nowhere", []string{"nowhere.example.com", "default/nothing does not exist", "managedclusters"})
	w.paste(t, f)
	w.healthy(t, onHub) // it is no longer relevant
	w.kubectl(t, onHub, "", "delete", "validatingwebhookconfiguration", "nowhere")
}

func bindingOfNoSet(t *testing.T, w *world) {
	w.kubectl(t, onHub, `{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding, metadata: {name: blue, namespace: default}, spec: {clusterSet: blue}}`,
		"apply", "-f", "-")
	w.paste(t, w.found(t, onHub, "BoundSetMissing", "managedclustersetbinding/blue in default", []string{"the set blue, which does not exist"}))
}

func setOfNoLabel(t *testing.T, w *world) {
	w.kubectl(t, onHub, `{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: rome, labels: {tier: gold}}, spec: {hubAcceptsClient: true}}`, "apply", "-f", "-")
	w.kubectl(t, onHub, `{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet, metadata: {name: gold},
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {teir: gold}}}}}`, "apply", "-f", "-")
	if r := w.doctor(t, onHub); len(r.Findings) > 0 {
		t.Errorf("a set that is new may wait for its clusters:\n%s", r)
	}
	f := w.found(t, onHub, "SetLabelUnknown", "managedclusterset/gold", []string{"the label teir", "none of the 1 clusters"}, "--patience", "0s")
	w.paste(t, f, "<CLUSTER>", "rome")
	w.healthy(t, onHub, "--patience", "0s")
	w.kubectl(t, onHub, "", "delete", "managedclusterset/gold", "managedcluster/rome")
}

func acceptancePending(t *testing.T, w *world) {
	w.kubectl(t, onHub, `{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: oslo}}`, "apply", "-f", "-")
	f := w.found(t, onHub, "AcceptancePending", "managedcluster/oslo", []string{"to be accepted"}, "--patience", "0s")
	w.paste(t, f)
	w.healthy(t, onHub, "--patience", "0s")
	w.kubectl(t, onHub, "", "delete", "managedcluster/oslo")
}

func noLeader(t *testing.T, w *world) {
	w.hub.StopHubControllerManager()
	f := w.found(t, onHub, "LeaderMissing", "lease/hub-controller-manager", []string{"No hub-controller-manager is active", "runs elsewhere, or not at all"})
	if !strings.HasPrefix(f.Fix[0], "# start hub-controller-manager") {
		t.Errorf("the fix is %v", f.Fix)
	}
	// This is as in a hub of pods that was scaled to 0.
	w.kubectl(t, onHub, "", "-n", "clusterhub-system", "create", "deployment", "hub-controller-manager", "--image=example.com/hub-controller-manager:v1", "--replicas=0")
	w.paste(t, w.found(t, onHub, "LeaderMissing", "lease/hub-controller-manager", []string{"0 available replicas of 0"}))
	if scaled := w.kubectl(t, onHub, "", "-n", "clusterhub-system", "get", "deployment", "hub-controller-manager", "-o", "jsonpath={.spec.replicas}"); scaled != "1" {
		t.Errorf("it was scaled to %s", scaled)
	}
	w.kubectl(t, onHub, "", "-n", "clusterhub-system", "delete", "deployment", "hub-controller-manager")
	if err := w.hub.StartHubControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func unreachable(t *testing.T, w *world) {
	w.hub.KillHubAPIServer(0)
	f := w.found(t, onHub, "APIServiceUnavailable", "apiservice/v1.cluster.open-cluster-management.io", []string{"does not reach hub-apiserver", "clusterhub-system/hub-apiserver"})
	if !strings.HasPrefix(f.Fix[0], "# start hub-apiserver") {
		t.Errorf("the fix is %v", f.Fix)
	}
	if err := w.hub.StartHubAPIServer(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := w.hub.RouteFront(context.WithoutCancel(t.Context()), 0); err != nil {
		t.Fatal(err)
	}
}
