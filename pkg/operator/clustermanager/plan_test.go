// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/artifacts"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/servingcert"
)

func mustPlan(t *testing.T, cm *operatorv1.ClusterManager) *plan {
	t.Helper()
	p, err := planOf(cm, map[string]string{imageProvider: "example.com/provider:v1"}, "way")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ofKind(objects []*unstructured.Unstructured, kind string) (names []string) {
	for _, o := range objects {
		if o.GetKind() == kind {
			names = append(names, o.GetName())
		}
	}
	return names
}

func argsIn(t *testing.T, objects []*unstructured.Unstructured, deployment string) string {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != kindDeployment || o.GetName() != deployment {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		return strings.Join(args, "\n") + "\n"
	}
	t.Fatalf("there is no Deployment %s", deployment)
	return ""
}

// TestPlan_SeveralHubsOnOneManagementCluster: two hubs on one management cluster share no object, and grant no rights there. No object of one
// refers to the other.
func TestPlan_SeveralHubsOnOneManagementCluster(t *testing.T) {
	all := map[apply.ID]string{}
	for name, mode := range map[string]operatorv1.InstallMode{
		"blue": operatorv1.InstallModeDetached, "green": operatorv1.InstallModeDetached, "red": operatorv1.InstallModeHosted,
	} {
		cm := detached(name)
		cm.Spec.DeployOption.Mode = mode
		cm.Spec.Clusterhub.Components = []string{"cluster-provider"}
		for _, o := range mustPlan(t, cm).management {
			id := apply.IDOf(o)
			if other, there := all[id]; there {
				t.Errorf("%s is of %s and of %s", id, other, name)
			}
			all[id] = name
			if o.GetNamespace() != cm.ServerNamespace() && (!namespaces.of(o) || o.GetName() != cm.ServerNamespace()) {
				t.Errorf("%s is not in the namespace of %s", id, name)
			}
			if strings.Contains(o.GetKind(), "Role") {
				t.Errorf("%s gives rights on the management cluster", id)
			}
			data, err := json.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range []string{"blue", "green", "red"} {
				if other != name && strings.Contains(string(data), other) {
					t.Errorf("%s names %s", id, other)
				}
			}
		}
	}
}

func TestPlan_Modes(t *testing.T) {
	manifest, err := artifacts.Deploy.ReadFile("deploy/base/apiservices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	served := bytes.Count(manifest, []byte("kind: APIService\n"))
	for mode, want := range map[operatorv1.InstallMode]string{
		operatorv1.InstallModeDefault: "clusterhub-system", operatorv1.InstallModeDetached: "blue-open-cluster-management-hub", operatorv1.InstallModeHosted: "blue",
	} {
		cm := detached("blue")
		cm.Spec.DeployOption.Mode = mode
		cm.Spec.Clusterhub.Components = []string{"cluster-provider", "manual-certificates"}
		p := mustPlan(t, cm)
		if got := len(p.services); got != served {
			t.Errorf("%s: %d APIServices, want %d", mode, got, served)
		}
		for _, o := range p.management {
			if o.GetKind() == kindDeployment && o.GetNamespace() != want && o.GetName() != "cluster-provider-kubeconfig" {
				t.Errorf("%s: %s is in %s", mode, o.GetName(), o.GetNamespace())
			}
		}
		if got := ofKind(p.management, kindDeployment); !slices.Equal(got, []string{"hub-apiserver", "hub-controller-manager", "cluster-provider-kubeconfig"}) {
			t.Errorf("%s: the Deployments are %q", mode, got)
		}
		accounts := []account{{"clusterhub-system", "hub-apiserver"}, {"clusterhub-system", "hub-controller-manager"}, {"openmcp-system", "cluster-provider-kubeconfig"}}
		if mode == operatorv1.InstallModeDefault {
			accounts = nil
			if len(p.hub) > 0 {
				t.Errorf("%s: there is another cluster that has something", mode)
			}
		} else if got, _, _ := unstructured.NestedString(find(t, p.hub, "Service").Object, "spec", "externalName"); got != "hub-apiserver."+want+".svc" {
			t.Errorf("%s: the hub asks %s", mode, got)
		}
		if !slices.Equal(p.accounts, accounts) {
			t.Errorf("%s: kubeconfigs for %v", mode, p.accounts)
		}
		// Clusters can join in all modes.
		if !slices.Contains(ofKind(slices.Concat(p.hub, p.management), "ServiceAccount"), "agent-registration-bootstrap") {
			t.Errorf("%s: there is no account that clusters join by", mode)
		}
	}
}

// TestPlan_HasAllObjects verifies that every object of the manifests is planned for one of the clusters.
func TestPlan_HasAllObjects(t *testing.T) {
	cm := detached("blue")
	cm.Spec.Clusterhub.Components = []string{componentProvider}
	p := mustPlan(t, cm)
	for what, split := range map[string]func(string) (hub, management []*unstructured.Unstructured, err error){
		"the hub": deploy.Hub{Address: deploy.ServiceAddress(cm.ServerNamespace())}.Split, "the provider": deploy.ClusterProvider{}.Split,
	} {
		hub, management, err := split(cm.ServerNamespace())
		if err != nil || len(hub) == 0 || len(management) == 0 {
			t.Fatalf("%s: %d and %d objects, %v", what, len(hub), len(management), err)
		}
		for where, objects := range map[string]struct{ planned, deployed []*unstructured.Unstructured }{
			"the hub": {slices.Concat(p.hub, p.services), hub}, "the management cluster": {p.management, management},
		} {
			for _, o := range objects.deployed {
				if id := apply.IDOf(o); !slices.ContainsFunc(objects.planned, func(planned *unstructured.Unstructured) bool { return apply.IDOf(planned) == id }) {
					t.Errorf("%s: the plan for %s has no %s", what, where, id)
				}
			}
		}
	}
}

func find(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return objects[i]
}

func TestPlan_FollowsSpec(t *testing.T) {
	cm := detached("blue")
	three := int32(3)
	size := resource.MustParse("20Gi")
	cm.Spec.Clusterhub.APIServer.Image, cm.Spec.Clusterhub.ControllerManager = "example.com/server:v2", operatorv1.HubControllerManager{Replicas: &three}
	cm.Spec.Clusterhub.Etcd.Embedded = &operatorv1.HubEtcdEmbeddedVolume{Size: &size}
	cm.Spec.Clusterhub.Components = []string{"aws-auth", "per-cluster-roles", "leftovers", "upstream-agents"}
	cm.Spec.NodePlacement = operatorv1.NodePlacement{
		NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
	}
	cm.Spec.ResourceRequirement = &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassBestEffort}
	cm.Spec.RegistrationConfiguration = &operatorv1.RegistrationHubConfiguration{
		AutoApproveUsers: []string{"user,with comma"},
		FeatureGates: []operatorv1.FeatureGate{
			{Feature: gateAutoApproval, Mode: operatorv1.FeatureGateModeTypeEnable}, {Feature: gateDefaultSet, Mode: operatorv1.FeatureGateModeTypeDisable},
			{Feature: "Other", Mode: operatorv1.FeatureGateModeTypeEnable},
		},
		RegistrationDrivers: []operatorv1.RegistrationDriverHub{
			{AuthType: operatorv1.CSRAuthType, CSR: &operatorv1.CSRConfig{AutoApprovedIdentities: []string{"robot"}}},
			{AuthType: operatorv1.AwsIrsaAuthType, AwsIrsa: &operatorv1.AwsIrsaConfig{HubClusterArn: "arn:aws:eks:us-west-2:123456789012:cluster/hub", Tags: []string{"a=b"}}},
			{AuthType: operatorv1.GRPCAuthType},
		},
	}
	cm.Spec.WorkConfiguration = &operatorv1.WorkConfiguration{FeatureGates: []operatorv1.FeatureGate{{Feature: "NilExecutorValidating", Mode: operatorv1.FeatureGateModeTypeEnable}}}
	p := mustPlan(t, cm)
	for deployment, flags := range map[string][]string{
		deploy.APIServer: {"--feature-gates=DefaultClusterSet=false", "--feature-gates=NilExecutorValidating=true", "--embedded-etcd-quota-backend-bytes=8589934592"},
		deploy.Manager: {
			"--registration-drivers=awsirsa,csr", `--auto-approved-csr-identities="user,with comma",robot`, "--hub-cluster-arn=arn:aws:eks:us-west-2:123456789012:cluster/hub",
			"--aws-resource-tags=a=b", "--eks-access=aws-auth", "--agent-roles=per-cluster", "--leftover-ttl=24h", "--agents-list-csrs",
			"--feature-gates=ManagedClusterAutoApproval=true", "--feature-gates=NilExecutorValidating=true",
		},
		deploy.Approver: {`--auto-approved-csr-identities="user,with comma",robot`, "--feature-gates=ManagedClusterAutoApproval=true", "--registration-drivers=awsirsa,csr"},
	} {
		got := argsIn(t, p.management, deployment)
		for _, flag := range flags {
			if !strings.Contains(got, flag+"\n") {
				t.Errorf("%s has no %s but\n%s", deployment, flag, got)
			}
		}
		if strings.Contains(got, "Other") {
			t.Errorf("%s has a feature gate that it does not know", deployment)
		}
	}
	for _, role := range []string{"clusterhub:hub-controller-manager:auto-approval", "clusterhub:hub-controller-manager:leftovers"} {
		if !slices.Contains(ofKind(p.hub, "ClusterRole"), role) {
			t.Errorf("the hub has no ClusterRole %s", role)
		}
	}
	for _, o := range p.management {
		if o.GetKind() != kindDeployment {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if resources := containers[0].(map[string]any)["resources"]; len(resources.(map[string]any)) > 0 {
			t.Errorf("%s asks for %v", o.GetName(), resources)
		}
		if selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "spec", "nodeSelector"); !maps.Equal(selector, cm.Spec.NodePlacement.NodeSelector) {
			t.Errorf("%s runs on the nodes %v", o.GetName(), selector)
		}
	}
	if got := unknownGates(cm); !slices.Equal(got, []string{"Other"}) {
		t.Errorf("unknown feature gates: %q", got)
	}
	if got := ignored(cm); !slices.Equal(got, []string{"registrationConfiguration.registrationDrivers of type grpc"}) {
		t.Errorf("ignored: %q", got)
	}
}

func TestPlan_RejectsInvalid(t *testing.T) {
	two := int32(2)
	for want, change := range map[string]func(*operatorv1.ClusterManager){
		"must be 1 with the embedded etcd, not 2": func(cm *operatorv1.ClusterManager) { cm.Spec.Clusterhub.APIServer.Replicas = &two },
		"etcd.external.servers must name":         func(cm *operatorv1.ClusterManager) { cm.Spec.Clusterhub.Etcd.Type = operatorv1.HubEtcdExternal },
		"a DNS name or an IP address": func(cm *operatorv1.ClusterManager) {
			cm.Spec.Clusterhub.APIServer.Address = &operatorv1.HubAPIServerAddress{Host: "a/b"}
		},
		"there is no component \"base\"": func(cm *operatorv1.ClusterManager) { cm.Spec.Clusterhub.Components = []string{"base"} },
		"Kubernetes' own": func(cm *operatorv1.ClusterManager) {
			cm.Name, cm.Spec.DeployOption.Mode = "kube-system", operatorv1.InstallModeHosted
		},
		"the namespace of its servers would be xx": func(cm *operatorv1.ClusterManager) { cm.Name = strings.Repeat("x", 40) },
	} {
		cm := detached("blue")
		change(cm)
		if _, err := planOf(cm, nil, "way"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestDeploy_SecretOfHubAPIServer(t *testing.T) {
	if deploy.ServingCASecret != servingcert.SecretName {
		t.Errorf("%s, and hub-apiserver makes %s", deploy.ServingCASecret, servingcert.SecretName)
	}
}

// TestMintedSecrets_MatchPlans: Secrets are read by name, and hub-operator has rights for those names. None is missing, and none is
// superfluous.
func TestMintedSecrets_MatchPlans(t *testing.T) {
	var made []string
	for _, components := range [][]string{nil, {componentProvider}} {
		cm := detached("blue")
		cm.Spec.Clusterhub.Components = components
		for _, a := range mustPlan(t, cm).accounts {
			if name := deploy.KubeconfigSecret(a.name); !slices.Contains(made, name) {
				made = append(made, name)
			}
		}
	}
	slices.Sort(made)
	if want := slices.Sorted(slices.Values(mintedSecrets)); !slices.Equal(made, want) {
		t.Errorf("%q are made, and %q are looked for", made, want)
	}
}

// TestKinds_MatchPlans: every planned object has a kind that is listed. Objects of other kinds would be left behind.
func TestKinds_MatchPlans(t *testing.T) {
	for _, mode := range []operatorv1.InstallMode{operatorv1.InstallModeDefault, operatorv1.InstallModeDetached} {
		for _, host := range []string{"a.example.com", "192.0.2.1"} {
			cm := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "blue"}}
			cm.Spec.DeployOption.Mode = mode
			cm.Spec.Clusterhub = &operatorv1.ClusterManagerClusterhub{
				Components: append(deploy.Components(), "cluster-provider"), APIServer: operatorv1.HubAPIServer{Address: &operatorv1.HubAPIServerAddress{Host: host}},
			}
			p := mustPlan(t, cm)
			for where, objects := range map[string][]*unstructured.Unstructured{"hub": append(p.hub, p.services...), "management": p.management} {
				for _, o := range objects {
					i := slices.IndexFunc(kinds, func(k kind) bool { return k.of(o) })
					if i < 0 || cm.IsDetached() && (where == "hub" && !kinds[i].onHub || where == "management" && !kinds[i].onManagement) {
						t.Errorf("%s: %s is not looked for on the %s cluster", mode, apply.IDOf(o), where)
					}
				}
			}
		}
	}
}
