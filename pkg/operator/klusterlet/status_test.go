// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// TestFields_IgnoredFeatureGates: a feature gate of Open Cluster Management that asks for what the agent does anyway is not reported. One
// that asks for the opposite has no effect, like unknown ones.
func TestFields_IgnoredFeatureGates(t *testing.T) {
	gate := func(name string, mode operatorv1.FeatureGateModeType) []operatorv1.FeatureGate {
		return []operatorv1.FeatureGate{{Feature: name, Mode: mode}}
	}
	on, off := operatorv1.FeatureGateModeTypeEnable, operatorv1.FeatureGateModeTypeDisable
	for _, test := range []struct {
		name                string
		mode                operatorv1.FeatureGateModeType
		registration, works string
	}{
		{"ClusterClaim", on, "", "ClusterClaim"},
		{"ClusterClaim", off, "ClusterClaim (which cannot be turned off)", "ClusterClaim"},
		{"AddonManagement", off, "", "AddonManagement"},
		{"AddonManagement", "", "", "AddonManagement"},
		{"AddonManagement", on, "AddonManagement (which cannot be turned on)", "AddonManagement"},
		{"MultipleHubs", off, "", "MultipleHubs"},
		{"ExecutorValidatingCaches", off, "ExecutorValidatingCaches", ""},
		{"ExecutorValidatingCaches", on, "ExecutorValidatingCaches", "ExecutorValidatingCaches (which cannot be turned on)"},
		{"RawFeedbackJsonString", on, "RawFeedbackJsonString", ""},
		{"RawFeedbackJsonString", off, "RawFeedbackJsonString", ""},
		{"Other", off, "Other", "Other"},
	} {
		k := &operatorv1.Klusterlet{}
		for i, want := range []string{test.registration, test.works} {
			k.Spec = (operatorv1.KlusterletSpec{RegistrationConfiguration: &operatorv1.RegistrationConfiguration{FeatureGates: gate(test.name, test.mode)}})
			if i == 1 {
				k.Spec = operatorv1.KlusterletSpec{WorkConfiguration: &operatorv1.WorkAgentConfiguration{FeatureGates: gate(test.name, test.mode)}}
			}
			valid := condition(withConditions(k), operatorv1.ConditionValidFeatureGates)
			said := strings.Join(plan.AgentSpec{Klusterlet: k}.Ignored(), "; ")
			if want == "" && (said != "" || valid.Status != "True") || want != "" && (!strings.HasSuffix(said, "these have no effect: "+want) || valid.Status != "False" || !strings.HasSuffix(valid.Message, want)) {
				t.Errorf("%s is %q, of works: %t: it is said %q, and %+v", test.name, test.mode, i == 1, said, valid)
			}
		}
	}
}

// withConditions returns a Klusterlet with the conditions that depend on its spec alone.
func withConditions(k *operatorv1.Klusterlet) *operatorv1.Klusterlet {
	k = k.DeepCopy()
	newReport(k).into(k)
	return k
}

// TestHubs_StatusReportsHubAndReason: what the agent writes selects texts and names, and is never quoted: every user who may write the
// Secret could have written it.
func TestHubs_StatusReportsHubAndReason(t *testing.T) {
	k := &operatorv1.Klusterlet{}
	k.Name, k.Spec.DeployOption.Mode = "k", operatorv1.InstallModeDetached
	operatortest.SeveralHubs(k, "hub-a", "hub-b")
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
			k := w.klusterlet(mode, func(k *operatorv1.Klusterlet) { operatortest.SeveralHubs(k, "hub-a", "hub-b") })
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
