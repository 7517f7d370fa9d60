// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operatortest

import operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"

// Modes lists all modes of a Klusterlet.
var Modes = []operatorv1.InstallMode{operatorv1.InstallModeDefault, operatorv1.InstallModeDetached, operatorv1.InstallModeHosted,
	operatorv1.InstallModeSingleton, operatorv1.InstallModeSingletonHosted}

// SeveralHubs sets the Secrets of several hubs in a Klusterlet.
func SeveralHubs(k *operatorv1.Klusterlet, names ...string) {
	r := &operatorv1.RegistrationConfiguration{FeatureGates: []operatorv1.FeatureGate{{Feature: "MultipleHubs", Mode: operatorv1.FeatureGateModeTypeEnable}}}
	r.BootstrapKubeConfigs = operatorv1.BootstrapKubeConfigs{Type: operatorv1.LocalSecrets, LocalSecrets: &operatorv1.LocalSecretsConfig{HubConnectionTimeoutSeconds: 600}}
	for _, name := range names {
		r.BootstrapKubeConfigs.LocalSecrets.KubeConfigSecrets = append(r.BootstrapKubeConfigs.LocalSecrets.KubeConfigSecrets, operatorv1.KubeConfigSecret{Name: name})
	}
	k.Spec.RegistrationConfiguration = r
}
