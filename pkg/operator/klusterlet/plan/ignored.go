// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// Ignored returns texts about the fields that have no effect, and why. A field that the plan does not pass to the agent is listed here. A test
// verifies for each field that it is in the plan or here.
func (k AgentSpec) Ignored() (ignored []string) {
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
	_, refused := k.addresses()
	say(len(refused) > 0, "spec.externalServerURLs: these are not reported to the hub: %s", strings.Join(refused, ", "))
	if r := spec.ResourceRequirement; r != nil {
		say(r.ResourceRequirements != nil && r.Type != operatorv1.ResourceQosClassResourceRequirement,
			"spec.resourceRequirement.resourceRequirements is ignored: the type is not %s", operatorv1.ResourceQosClassResourceRequirement)
	}
	return slices.Concat(ignored, k.ignoredOfRegistration(), k.ignoredOfWorks())
}

func (k AgentSpec) ignoredOfRegistration() (ignored []string) {
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
	for _, n := range k.registrationNumbers() {
		ignored = append(ignored, n.ignored()...)
	}
	if _, refused := clusterAnnotations(r); len(refused) > 0 {
		ignored = append(ignored, at+"clusterAnnotations: these have no effect: "+strings.Join(refused, ", "))
	}
	if _, refused := clusterLabels(r); len(refused) > 0 {
		ignored = append(ignored, at+"clusterLabels: these have no effect: "+strings.Join(refused, ", "))
	}
	say(r.ClientCertExpirationSeconds != 0 && !k.byCertificate(), "clientCertExpirationSeconds", "the identity is not a certificate")
	say(r.ClusterClaimConfiguration != nil && r.ClusterClaimConfiguration.MaxCustomClusterClaims < 0,
		"clusterClaimConfiguration.maxCustomClusterClaims", "it must be at least 0")
	_, ofHubs := k.HubSecrets()
	ignored = append(ignored, ofHubs...)
	if without := withoutEffect(r.FeatureGates, registrationAlways, multipleHubs); len(without) > 0 {
		ignored = append(ignored, at+"featureGates: these have no effect: "+strings.Join(without, ", "))
	}
	say(r.RegistrationDriver.AwsIrsa != nil && r.RegistrationDriver.AuthType != operatorv1.AwsIrsaAuthType,
		"registrationDriver.awsIrsa", "the authType is not "+operatorv1.AwsIrsaAuthType)
	say(r.AddOnKubeClientRegistrationDriver != nil, "addOnKubeClientRegistrationDriver", "the agent has no add-ons of Open Cluster Management")
	return ignored
}

func (k AgentSpec) ignoredOfWorks() (ignored []string) {
	const at = "spec.workConfiguration."
	w := k.Spec.WorkConfiguration
	if w == nil {
		return nil
	}
	for _, n := range k.workNumbers() {
		ignored = append(ignored, n.ignored()...)
	}
	if without := withoutEffect(w.FeatureGates, worksAlways, rawFeedback); len(without) > 0 {
		ignored = append(ignored, at+"featureGates: these have no effect: "+strings.Join(without, ", "))
	}
	if w.StatusSyncInterval != nil {
		ignored = append(ignored, at+"statusSyncInterval is ignored: the agent watches what works have made")
	}
	return ignored
}

// Feature gates of Open Cluster Management's agents for what a part of this agent does always (true), or never (false). Setting a gate to the same
// value has no effect, and is not reported; setting it to the opposite is.
var (
	registrationAlways = map[string]bool{"ClusterClaim": true, "AddonManagement": false, "ClusterProperty": false, "V1beta1CSRAPICompatibility": false}
	worksAlways        = map[string]bool{"ExecutorValidatingCaches": false}
)

// GatesWithoutEffect returns the gates of all parts that do not have the effect that their setting asks for.
func (k AgentSpec) GatesWithoutEffect() (without []string) {
	if r := k.Spec.RegistrationConfiguration; r != nil {
		without = withoutEffect(r.FeatureGates, registrationAlways, multipleHubs)
	}
	if w := k.Spec.WorkConfiguration; w != nil {
		without = append(without, withoutEffect(w.FeatureGates, worksAlways, rawFeedback)...)
	}
	return without
}

func withoutEffect(gates []operatorv1.FeatureGate, always map[string]bool, known ...string) (without []string) {
	for _, gate := range gates {
		does, named := always[gate.Feature]
		enabled := gate.Mode == operatorv1.FeatureGateModeTypeEnable
		switch {
		case slices.Contains(known, gate.Feature), named && enabled == does:
		case named && enabled:
			without = append(without, gate.Feature+" (which cannot be turned on)")
		case named:
			without = append(without, gate.Feature+" (which cannot be turned off)")
		default:
			without = append(without, gate.Feature)
		}
	}
	return without
}
