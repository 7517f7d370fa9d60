// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"fmt"
	"slices"
	"strings"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// ignoredFields say what has no effect, and why. What is not brought to the agent by the plan is named here: no field is without either,
// which a test tries for each of them.
func ignoredFields(k *operatorv1.Klusterlet) (ignored []string) {
	say := func(is bool, text string, args ...any) {
		if is {
			ignored = append(ignored, fmt.Sprintf(text, args...))
		}
	}
	spec := &k.Spec
	say(k.Mode() == operatorv1.InstallModeDetached && spec.Namespace != "",
		"spec.namespace is ignored in the mode Detached: the agent is in namespace %s", k.AgentNamespace())
	if k.IsSingleton() {
		say(spec.WorkImagePullSpec != "", "spec.workImagePullSpec is ignored: the one pod has spec.imagePullSpec")
		say(spec.RegistrationImagePullSpec != "" && spec.ImagePullSpec != "", "spec.registrationImagePullSpec is ignored: the one pod has spec.imagePullSpec")
	} else {
		say(spec.ImagePullSpec != "", "spec.imagePullSpec is ignored: the pods have spec.registrationImagePullSpec and spec.workImagePullSpec")
	}
	urls := spec.ExternalServerURLs
	say(len(urls) > 1 || len(urls) == 1 && len(urls[0].CABundle) > 0,
		"spec.externalServerURLs: only the first is told to the hub, and only if it has no caBundle")
	if r := spec.ResourceRequirement; r != nil {
		say(r.ResourceRequirements != nil && r.Type != operatorv1.ResourceQosClassResourceRequirement,
			"spec.resourceRequirement.resourceRequirements is ignored: the type is not %s", operatorv1.ResourceQosClassResourceRequirement)
	}
	return slices.Concat(ignored, ignoredOfRegistration(k), ignoredOfWorks(k))
}

func ignoredOfRegistration(k *operatorv1.Klusterlet) (ignored []string) {
	const at = "spec.registrationConfiguration."
	r := k.Spec.RegistrationConfiguration
	if r == nil {
		return nil
	}
	say := func(is bool, field, why string) {
		if is {
			ignored = append(ignored, at+field+" is ignored: "+why)
		}
	}
	for _, n := range registrationNumbers(k) {
		ignored = append(ignored, n.ignored()...)
	}
	say(r.ClientCertExpirationSeconds != 0 && !byCertificate(k), "clientCertExpirationSeconds", "the identity is not a certificate")
	say(r.ClusterClaimConfiguration != nil && r.ClusterClaimConfiguration.MaxCustomClusterClaims < 0,
		"clusterClaimConfiguration.maxCustomClusterClaims", "it must be at least 0")
	say(r.BootstrapKubeConfigs.Type == operatorv1.LocalSecrets || r.BootstrapKubeConfigs.LocalSecrets != nil,
		"bootstrapKubeConfigs", "the secret is "+operatorv1.BootstrapHubKubeconfig)
	say(len(r.FeatureGates) > 0, "featureGates", "the agent has none of "+strings.Join(unknownOf(r.FeatureGates), ", "))
	say(r.RegistrationDriver.AwsIrsa != nil && r.RegistrationDriver.AuthType != operatorv1.AwsIrsaAuthType,
		"registrationDriver.awsIrsa", "the authType is not "+operatorv1.AwsIrsaAuthType)
	say(r.AddOnKubeClientRegistrationDriver != nil, "addOnKubeClientRegistrationDriver", "the agent has no add-ons of Open Cluster Management")
	return ignored
}

func ignoredOfWorks(k *operatorv1.Klusterlet) (ignored []string) {
	const at = "spec.workConfiguration."
	w := k.Spec.WorkConfiguration
	if w == nil {
		return nil
	}
	for _, n := range workNumbers(k) {
		ignored = append(ignored, n.ignored()...)
	}
	if unknown := unknownOf(w.FeatureGates, rawFeedback); len(unknown) > 0 {
		ignored = append(ignored, fmt.Sprintf("%sfeatureGates: the agent has none of %s, only %s", at, strings.Join(unknown, ", "), rawFeedback))
	}
	if w.StatusSyncInterval != nil {
		ignored = append(ignored, at+"statusSyncInterval is ignored: the agent watches what works have made")
	}
	return ignored
}

// unknownGates are those that no part of the agent has.
func unknownGates(k *operatorv1.Klusterlet) (unknown []string) {
	if r := k.Spec.RegistrationConfiguration; r != nil {
		unknown = unknownOf(r.FeatureGates)
	}
	if w := k.Spec.WorkConfiguration; w != nil {
		unknown = append(unknown, unknownOf(w.FeatureGates, rawFeedback)...)
	}
	return unknown
}

func unknownOf(gates []operatorv1.FeatureGate, known ...string) (unknown []string) {
	for _, gate := range gates {
		if !slices.Contains(known, gate.Feature) {
			unknown = append(unknown, gate.Feature)
		}
	}
	return unknown
}
