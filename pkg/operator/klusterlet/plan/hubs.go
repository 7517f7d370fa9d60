// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// multipleHubs is the feature gate of agents with several hubs. It is off by default, as in Open Cluster Management.
const multipleHubs = "MultipleHubs"

// HubSecrets returns the names of the Secrets with the bootstrap kubeconfigs of several hubs, in the order of the spec, and no names for an agent
// with one hub. ignored lists which parts of the field have no effect, and why.
func (k AgentSpec) HubSecrets() (names, ignored []string) {
	const at = "spec.registrationConfiguration.bootstrapKubeConfigs"
	r := k.Spec.RegistrationConfiguration
	if r == nil {
		return nil, nil
	}
	given, gate := r.BootstrapKubeConfigs, gateEnabled(r.FeatureGates, multipleHubs)
	isLocal := given.Type == operatorv1.LocalSecrets
	say := func(format string, args ...any) {
		ignored = append(ignored, at+fmt.Sprintf(format, args...))
	}
	switch {
	case !isLocal && given.LocalSecrets == nil:
		if gate {
			ignored = append(ignored, "spec.registrationConfiguration.featureGates: "+multipleHubs+
				" has no effect without bootstrapKubeConfigs of the type LocalSecrets")
		}
		return nil, ignored
	case !isLocal:
		say(".localSecretsConfig is ignored: the type is not %s", operatorv1.LocalSecrets)
		return nil, ignored
	case !gate:
		say(" is ignored: the feature gate %s is off, so the secret is %s", multipleHubs, operatorv1.BootstrapHubKubeconfig)
		return nil, ignored
	case !k.byCertificate():
		say(" is ignored: the identity is not a certificate, and another one is for one hub")
		return nil, ignored
	case given.LocalSecrets == nil:
		say(" is ignored: localSecretsConfig is not there")
		return nil, ignored
	}
	for _, secret := range given.LocalSecrets.KubeConfigSecrets {
		if why := checkHubSecret(secret.Name, names); why != "" {
			say(".localSecretsConfig.kubeConfigSecrets: %q is ignored: %s", secret.Name, why)
			continue
		}
		names = append(names, secret.Name)
	}
	if len(names) < 2 {
		say(" is ignored: it needs 2 to %d Secrets that can be used, so the secret is %s", registration.MaxHubs, operatorv1.BootstrapHubKubeconfig)
		return nil, ignored
	}
	if seconds := given.LocalSecrets.HubConnectionTimeoutSeconds; seconds != 0 && seconds < registration.MinHubTimeoutSeconds {
		say(".localSecretsConfig.hubConnectionTimeoutSeconds is ignored: it must be at least %d, not %d", registration.MinHubTimeoutSeconds, seconds)
	}
	return names, ignored
}

// checkHubSecret returns why a Secret cannot be one of several with bootstrap kubeconfigs, or "". The names become names of folders. Those of the
// agent's other Secrets are rejected: a user who may write Klusterlets need not be allowed to have those Secrets mounted.
func checkHubSecret(name string, before []string) string {
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "it is not the name of a Secret"
	case name != operatorv1.BootstrapHubKubeconfig && slices.Contains(SecretNames, name):
		return "it is not a bootstrap kubeconfig, but one that the agent has for something else"
	case slices.Contains(before, name):
		return "it is there already"
	case len(before) == registration.MaxHubs:
		return fmt.Sprintf("it is more than the first %d", registration.MaxHubs)
	}
	return ""
}

// gateEnabled reports whether a feature gate is turned on.
func gateEnabled(gates []operatorv1.FeatureGate, name string) bool {
	return slices.ContainsFunc(gates, func(g operatorv1.FeatureGate) bool {
		return g.Feature == name && g.Mode == operatorv1.FeatureGateModeTypeEnable
	})
}

// hubNumbers returns the flags of an agent with several hubs that are numbers.
func (k AgentSpec) hubNumbers() []number {
	if names, _ := k.HubSecrets(); len(names) == 0 {
		return nil
	}
	local := k.Spec.RegistrationConfiguration.BootstrapKubeConfigs.LocalSecrets
	return []number{{"", "hub-connection-timeout-seconds", local.HubConnectionTimeoutSeconds, registration.MinHubTimeoutSeconds,
		registration.DefaultHubTimeoutSeconds}}
}
