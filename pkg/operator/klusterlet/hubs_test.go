// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// severalHubs sets the Secrets of several hubs in a Klusterlet.
func severalHubs(k *operatorv1.Klusterlet, names ...string) {
	r := &operatorv1.RegistrationConfiguration{FeatureGates: []operatorv1.FeatureGate{{Feature: multipleHubs, Mode: operatorv1.FeatureGateModeTypeEnable}}}
	r.BootstrapKubeConfigs = operatorv1.BootstrapKubeConfigs{Type: operatorv1.LocalSecrets, LocalSecrets: &operatorv1.LocalSecretsConfig{HubConnectionTimeoutSeconds: 600}}
	for _, name := range names {
		r.BootstrapKubeConfigs.LocalSecrets.KubeConfigSecrets = append(r.BootstrapKubeConfigs.LocalSecrets.KubeConfigSecrets, operatorv1.KubeConfigSecret{Name: name})
	}
	k.Spec.RegistrationConfiguration = r
}

func klusterletOf(mode operatorv1.InstallMode, names ...string) *operatorv1.Klusterlet {
	k := &operatorv1.Klusterlet{}
	k.Name, k.Spec.DeployOption.Mode = "k", mode
	severalHubs(k, names...)
	return k
}

// TestHubs_SecretsAreMountedNotRead: in each mode, the part that registers has the kubeconfig of each Secret and nothing else of it, in the
// order of the spec, and may read no Secrets by the API except its own. The part that applies works has none of them.
func TestHubs_SecretsAreMountedNotRead(t *testing.T) {
	for _, mode := range allModes {
		k := klusterletOf(mode, "hub-b", "hub-a")
		k.Spec.RegistrationConfiguration.BootstrapKubeConfigs.LocalSecrets.HubConnectionTimeoutSeconds = 300
		if ignored := (agentSpec{k}).ignoredOfRegistration(); len(ignored) > 0 {
			t.Errorf("%s: it is said %q", mode, ignored)
		}
		o := started(t, k)
		if want := []string{"/spoke/bootstrap/hub-b/kubeconfig", "/spoke/bootstrap/hub-a/kubeconfig"}; !slices.Equal(o.Hubs.Files, want) || o.Hubs.Timeout() != 5*time.Minute {
			t.Errorf("%s: the agent understands %+v", mode, o.Hubs)
		}
		p, err := planOf(k, "")
		if err != nil {
			t.Fatal(err)
		}
		for i, pod := range p.pods {
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
		for _, o := range p.management {
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
		for _, mode := range allModes {
			k := klusterletOf(mode, test.names...)
			if test.change != nil {
				test.change(k)
			}
			if said := strings.Join(agentSpec{k}.ignoredOfRegistration(), "; "); !strings.Contains(said, test.says) || (said == "") != (test.says == "") {
				t.Errorf("%s, %s: it is said %q, want %q", name, mode, said, test.says)
			}
			if without := (agentSpec{k}).gatesWithoutEffect(); len(without) > 0 {
				t.Errorf("%s: gates without effect are %q", name, without)
			}
			if got := len(started(t, k).Hubs.Files); got != test.hubs {
				t.Errorf("%s, %s: the agent has %d hubs, want %d", name, mode, got, test.hubs)
			}
		}
	}
}

// TestHubs_StatusReportsHubAndReason: what the agent writes selects texts and names, and is never quoted: every user who may write the
// Secret could have written it.
func TestHubs_StatusReportsHubAndReason(t *testing.T) {
	k := klusterletOf(operatorv1.InstallModeDetached, "hub-a", "hub-b")
	identity := func(hub string, givenUp []registration.GivenUpHub, joined bool) agentSecrets {
		data := map[string][]byte{registration.KeyHub: []byte(hub), registration.KeyGivenUpHubs: registration.FormatGivenUp(givenUp)}
		if joined {
			data[registration.KeyKubeconfig], data[registration.KeyClusterName] = []byte("x"), []byte("c1")
		}
		return agentSecrets{namespace: "k", hubs: []string{"hub-a", "hub-b"}, identity: &corev1.Secret{Data: data}}
	}
	gaveUp := []registration.GivenUpHub{{Name: "hub-a", Reason: registration.GivenUpNoAnswer, Time: metav1.Now(), Times: 1}}
	evil := []registration.GivenUpHub{{Name: "evil", Reason: registration.GivenUpNoAnswer}, {Name: "hub-a", Reason: "evil"}}
	for name, test := range map[string]struct {
		given                         agentSecrets
		status                        metav1.ConditionStatus
		reason, message, andConnected string
	}{
		"nothing yet":    {agentSecrets{namespace: "k", hubs: []string{"hub-a", "hub-b"}}, "False", operatorv1.ReasonRebootstrapCompleted, "the agent has not begun to choose a hub", "has not started"},
		"the first":      {identity("hub-a", nil, false), "True", operatorv1.ReasonRebootstrapStarted, "the agent tries the hub of the Secret hub-a", "hub of the Secret hub-a has to answer"},
		"the next":       {identity("hub-b", gaveUp, false), "True", operatorv1.ReasonRebootstrapStarted, "the hub of the Secret hub-a was given up: it does not respond; the agent tries the hub of the Secret hub-b", "hub-a was given up"},
		"it has joined":  {identity("hub-b", nil, true), "False", operatorv1.ReasonRebootstrapCompleted, "the agent uses the hub of the Secret hub-b", "has an identity"},
		"others' words":  {identity("hub-b", evil, false), "True", operatorv1.ReasonRebootstrapStarted, "the agent tries the hub of the Secret hub-b", "hub-b"},
		"another's name": {identity("evil", nil, true), "False", operatorv1.ReasonRebootstrapCompleted, "the agent has not begun to choose a hub", "has an identity"},
	} {
		s := newReport(k)
		s.hub(test.given)
		s.into(k)
		got, connected := condition(k, operatorv1.ConditionRebootstrapProgressing), condition(k, operatorv1.ConditionHubConnectionDegraded)
		if got.Status != test.status || got.Reason != test.reason || got.Message != test.message || !strings.Contains(connected.Message, test.andConnected) {
			t.Errorf("%s: it is said %+v, and %+v", name, got, connected)
		}
		if strings.Contains(got.Message+connected.Message, "evil") {
			t.Errorf("%s: what is said has a text of the Secret: %s; %s", name, got.Message, connected.Message)
		}
	}
	for reason := range givenUpTexts {
		if len(reason) == 0 {
			t.Error("there is an empty reason")
		}
	}
	// A Klusterlet that has one hub again reports nothing about several hubs.
	s := newReport(k)
	s.hub(agentSecrets{namespace: "k"})
	s.into(k)
	if got := condition(k, operatorv1.ConditionRebootstrapProgressing); got.Type != "" {
		t.Errorf("with one hub it is said %+v", got)
	}
}

// TestHubs_Lifecycle runs on real servers: pods wait neither for bootstrap-hub-kubeconfig nor for the Secrets, and everything is
// deleted at the end.
func TestHubs_Lifecycle(t *testing.T) {
	for _, mode := range []operatorv1.InstallMode{operatorv1.InstallModeDefault, operatorv1.InstallModeDetached} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			r := w.reconciler()
			k := w.klusterlet(mode, func(k *operatorv1.Klusterlet) { severalHubs(k, "hub-a", "hub-b") })
			w.given(r, k)
			w.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.AgentNamespace(), Name: operatorv1.BootstrapHubKubeconfig}})
			w.until(r, k, "it is applied", isApplied)
			if got := condition(w.now(k), operatorv1.ConditionRebootstrapProgressing); got.Reason != operatorv1.ReasonRebootstrapCompleted {
				t.Errorf("it is said %+v", got)
			}
			w.secret(k, operatorv1.HubKubeconfigSecret, map[string][]byte{registration.KeyHub: []byte("hub-b"),
				registration.KeyGivenUpHubs: registration.FormatGivenUp([]registration.GivenUpHub{{Name: "hub-a", Reason: registration.RefusalNotAccepted, Times: 1}})})
			w.until(r, k, "it says what the agent says", func(k *operatorv1.Klusterlet) bool {
				return strings.Contains(condition(k, operatorv1.ConditionRebootstrapProgressing).Message, "hub-a was given up: it no longer accepts")
			})
			w.delete(k)
			w.until(r, k, "it is gone", isGone)
		})
	}
}
