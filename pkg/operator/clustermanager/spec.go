// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// Feature gates of our servers. They have the names of Open Cluster Management's.
const (
	gateDefaultSet   = "DefaultClusterSet"
	gateAutoApproval = "ManagedClusterAutoApproval"
	gateNilExecutor  = work.NilExecutorValidating
)

var knownGates = []string{gateDefaultSet, gateAutoApproval, gateNilExecutor}

func allGates(cm *operatorv1.ClusterManager) (all []operatorv1.FeatureGate) {
	if c := cm.Spec.RegistrationConfiguration; c != nil {
		all = append(all, c.FeatureGates...)
	}
	if c := cm.Spec.WorkConfiguration; c != nil {
		all = append(all, c.FeatureGates...)
	}
	if c := cm.Spec.PlacementConfiguration; c != nil {
		all = append(all, c.FeatureGates...)
	}
	return all
}

// gates returns the feature gates that are set, and whether each is enabled.
func gates(cm *operatorv1.ClusterManager) map[string]bool {
	named := map[string]bool{}
	for _, gate := range allGates(cm) {
		named[gate.Feature] = gate.Mode == operatorv1.FeatureGateModeTypeEnable
	}
	return named
}

// unknownGates returns the gates that none of our servers has.
func unknownGates(cm *operatorv1.ClusterManager) (unknown []string) {
	for name := range gates(cm) {
		if !slices.Contains(knownGates, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// ignored returns the fields that are set and have no effect. A field that the plan does not pass to the servers is listed here. A test verifies for
// each field that it is in the plan or here.
func ignored(cm *operatorv1.ClusterManager) (fields []string) {
	spec := &cm.Spec
	hub := cmp.Or(spec.Clusterhub, &operatorv1.ClusterManagerClusterhub{})
	for field, set := range map[string]bool{
		"registrationImagePullSpec": spec.RegistrationImagePullSpec != "",
		"workImagePullSpec":         spec.WorkImagePullSpec != "",
		"placementImagePullSpec":    spec.PlacementImagePullSpec != "",
		"addOnManagerImagePullSpec": spec.AddOnManagerImagePullSpec != "",
		"addOnManagerConfiguration": spec.AddOnManagerConfiguration != nil,
		"serverConfiguration":       spec.ServerConfiguration != nil,
		"deployOption.default":      spec.DeployOption.Default != nil,
		"deployOption.hosted":       spec.DeployOption.Hosted != nil,
		"workConfiguration.workDriver": spec.WorkConfiguration != nil && spec.WorkConfiguration.WorkDriver != "" &&
			spec.WorkConfiguration.WorkDriver != operatorv1.WorkDriverTypeKube,
		"resourceRequirement.resourceRequirements without the type ResourceRequirement": spec.ResourceRequirement != nil &&
			spec.ResourceRequirement.ResourceRequirements != nil && spec.ResourceRequirement.Type != operatorv1.ResourceQosClassResourceRequirement,
		"clusterhub.apiServer.address":                       hub.APIServer.Address != nil && !cm.IsDetached(),
		"clusterhub.etcd.embedded with the type External":    hub.Etcd.Embedded != nil && hub.Etcd.Type == operatorv1.HubEtcdExternal,
		"clusterhub.etcd.external without the type External": hub.Etcd.External != nil && hub.Etcd.Type != operatorv1.HubEtcdExternal,
	} {
		if set {
			fields = append(fields, field)
		}
	}
	fields = append(fields, ignoredOfRegistration(cm)...)
	slices.Sort(fields)
	return slices.Compact(fields)
}

func ignoredOfRegistration(cm *operatorv1.ClusterManager) (fields []string) {
	r := cm.Spec.RegistrationConfiguration
	if r == nil {
		return nil
	}
	say := func(is bool, field string) {
		if is {
			fields = append(fields, "registrationConfiguration."+field)
		}
	}
	const without = " without the feature gate " + gateAutoApproval
	auto := gates(cm)[gateAutoApproval]
	say(r.ImporterConfiguration != nil, "importerConfiguration")
	say(len(r.AutoApproveUsers) > 0 && !auto, "autoApproveUsers"+without)
	for _, d := range r.RegistrationDrivers {
		byCertificate, byAWS := d.AuthType == "" || d.AuthType == operatorv1.CSRAuthType, d.AuthType == operatorv1.AwsIrsaAuthType
		say(d.AuthType == operatorv1.GRPCAuthType, "registrationDrivers of type grpc")
		say(d.GRPC != nil, "registrationDrivers.grpc")
		say(d.CSR != nil && !byCertificate, "registrationDrivers.csr of another type")
		say(d.AwsIrsa != nil && !byAWS, "registrationDrivers.awsirsa of another type")
		say(byAWS && d.AwsIrsa != nil && len(d.AwsIrsa.AutoApprovedIdentities) > 0 && !auto, "registrationDrivers.awsirsa.autoApprovedIdentities"+without)
		say(byCertificate && d.CSR != nil && len(d.CSR.AutoApprovedIdentities) > 0 && !auto, "registrationDrivers.csr.autoApprovedIdentities"+without)
	}
	return fields
}

// shortened formats a list for a message, with the first items only if it is long.
func shortened(items []string) string {
	const most = 5
	if len(items) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), len(items)-most)
	}
	return strings.Join(items, ", ")
}
