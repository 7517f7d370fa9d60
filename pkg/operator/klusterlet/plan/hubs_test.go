// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func klusterletOf(mode operatorv1.InstallMode, names ...string) *operatorv1.Klusterlet {
	k := &operatorv1.Klusterlet{}
	k.Name, k.Spec.DeployOption.Mode = "k", mode
	operatortest.SeveralHubs(k, names...)
	return k
}

// TestHubs_SecretsAreMountedNotRead: in each mode, the part that registers has the kubeconfig of each Secret and nothing else of it, in the
// order of the spec, and may read no Secrets by the API except its own. The part that applies works has none of them.
func TestHubs_SecretsAreMountedNotRead(t *testing.T) {
	for _, mode := range operatortest.Modes {
		k := klusterletOf(mode, "hub-b", "hub-a")
		k.Spec.RegistrationConfiguration.BootstrapKubeConfigs.LocalSecrets.HubConnectionTimeoutSeconds = 300
		if ignored := (AgentSpec{k}).ignoredOfRegistration(); len(ignored) > 0 {
			t.Errorf("%s: it is said %q", mode, ignored)
		}
		o := started(t, k)
		if want := []string{"/spoke/bootstrap/hub-b/kubeconfig", "/spoke/bootstrap/hub-a/kubeconfig"}; !slices.Equal(o.Hubs.Files, want) || o.Hubs.Timeout() != 5*time.Minute {
			t.Errorf("%s: the agent understands %+v", mode, o.Hubs)
		}
		p, err := New(k, "")
		if err != nil {
			t.Fatal(err)
		}
		for i, pod := range p.Pods {
			volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "template", "spec", "volumes")
			mounted := ""
			for _, v := range volumes {
				if secret, _, _ := unstructured.NestedMap(v.(map[string]any), "secret"); strings.HasPrefix(fmt.Sprint(secret["secretName"]), "hub-") && secret["secretName"] != operatorv1.HubKubeconfigSecret {
					mounted += fmt.Sprint(secret["secretName"], secret["optional"], secret["items"])
				}
			}
			want := "hub-btrue [map[key:kubeconfig path:kubeconfig]]hub-atrue [map[key:kubeconfig path:kubeconfig]]"
			if i > 0 {
				want = ""
			}
			if mounted != want {
				t.Errorf("%s: %s has the Secrets %s", mode, pod.GetName(), mounted)
			}
		}
		for _, o := range p.Management {
			if rules := fmt.Sprint(o.Object["rules"]); o.GetKind() == "Role" && (strings.Contains(rules, operatorv1.BootstrapHubKubeconfig) || !strings.Contains(rules, operatorv1.HubKubeconfigSecret)) {
				t.Errorf("%s: the agent may %s", mode, rules)
			}
		}
	}
}

func TestHubs_ReportsIgnoredFields(t *testing.T) {
	gate := func(k *operatorv1.Klusterlet, mode operatorv1.FeatureGateModeType) {
		k.Spec.RegistrationConfiguration.FeatureGates[0].Mode = mode
	}
	config := func(k *operatorv1.Klusterlet) *operatorv1.BootstrapKubeConfigs {
		return &k.Spec.RegistrationConfiguration.BootstrapKubeConfigs
	}
	var many []string
	for i := range registration.MaxHubs + 1 {
		many = append(many, fmt.Sprintf("h%02d", i))
	}
	for name, test := range map[string]struct {
		names  []string
		change func(*operatorv1.Klusterlet)
		says   string
		hubs   int
	}{
		"the gate is off": {[]string{"a", "b"}, func(k *operatorv1.Klusterlet) { gate(k, operatorv1.FeatureGateModeTypeDisable) },
			"bootstrapKubeConfigs is ignored: the feature gate MultipleHubs is off, so the secret is bootstrap-hub-kubeconfig", 0},
		"there is no gate": {[]string{"a", "b"}, func(k *operatorv1.Klusterlet) { k.Spec.RegistrationConfiguration.FeatureGates = nil }, "the feature gate MultipleHubs is off", 0},
		"the type is None": {[]string{"a", "b"}, func(k *operatorv1.Klusterlet) { config(k).Type = operatorv1.None },
			"bootstrapKubeConfigs.localSecretsConfig is ignored: the type is not LocalSecrets", 0},
		"no field": {nil, func(k *operatorv1.Klusterlet) { *config(k) = operatorv1.BootstrapKubeConfigs{Type: operatorv1.None} },
			"featureGates: MultipleHubs has no effect without bootstrapKubeConfigs of the type LocalSecrets", 0},
		"no list":      {nil, func(k *operatorv1.Klusterlet) { config(k).LocalSecrets = nil }, "bootstrapKubeConfigs is ignored: localSecretsConfig is not there", 0},
		"one name":     {[]string{"a"}, nil, "bootstrapKubeConfigs is ignored: it needs 2 to 10 Secrets", 0},
		"twice a name": {[]string{"a", "a", "b"}, nil, `kubeConfigSecrets: "a" is ignored: it is there already`, 2},
		"many names":   {many, nil, `kubeConfigSecrets: "h10" is ignored: it is more than the first 10`, 10},
		"a short timeout": {[]string{"a", "b"}, func(k *operatorv1.Klusterlet) { config(k).LocalSecrets.HubConnectionTimeoutSeconds = 179 },
			"hubConnectionTimeoutSeconds is ignored: it must be at least 180, not 179", 2},
		"an identity of AWS": {[]string{"a", "b"}, func(k *operatorv1.Klusterlet) {
			k.Spec.RegistrationConfiguration.RegistrationDriver = operatorv1.RegistrationDriver{AuthType: operatorv1.AwsIrsaAuthType,
				AwsIrsa: &operatorv1.AwsIrsa{HubClusterArn: arn, ManagedClusterArn: otherARN}}
		}, "bootstrapKubeConfigs is ignored: the identity is not a certificate", 0},
		"a path":                {[]string{"a", "../../etc", "b"}, nil, `kubeConfigSecrets: "../../etc" is ignored: it is not the name of a Secret`, 2},
		"a list in a name":      {[]string{"a", "b,c", "d"}, nil, `kubeConfigSecrets: "b,c" is ignored: it is not the name of a Secret`, 2},
		"the admin's Secret":    {[]string{"a", "external-managed-kubeconfig", "b"}, nil, `"external-managed-kubeconfig" is ignored: it is not a bootstrap kubeconfig`, 2},
		"the agent's identity":  {[]string{"a", "hub-kubeconfig-secret", "b"}, nil, `"hub-kubeconfig-secret" is ignored: it is not a bootstrap kubeconfig`, 2},
		"the Secret of one hub": {[]string{"bootstrap-hub-kubeconfig", "b"}, nil, "", 2},
	} {
		for _, mode := range operatortest.Modes {
			k := klusterletOf(mode, test.names...)
			if test.change != nil {
				test.change(k)
			}
			if said := strings.Join(AgentSpec{k}.ignoredOfRegistration(), "; "); !strings.Contains(said, test.says) || (said == "") != (test.says == "") {
				t.Errorf("%s, %s: it is said %q, want %q", name, mode, said, test.says)
			}
			if without := (AgentSpec{k}).GatesWithoutEffect(); len(without) > 0 {
				t.Errorf("%s: gates without effect are %q", name, without)
			}
			if got := len(started(t, k).Hubs.Files); got != test.hubs {
				t.Errorf("%s, %s: the agent has %d hubs, want %d", name, mode, got, test.hubs)
			}
		}
	}
}
