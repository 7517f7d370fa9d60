// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// Feature gates of our servers. They have the names of Open Cluster Management's.
const (
	gateDefaultSet   = "DefaultClusterSet"
	gateAutoApproval = "ManagedClusterAutoApproval"
)

var knownGates = []string{gateDefaultSet, gateAutoApproval}

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

// gates are those that are named, and whether they are on.
func gates(cm *operatorv1.ClusterManager) map[string]bool {
	named := map[string]bool{}
	for _, gate := range allGates(cm) {
		named[gate.Feature] = gate.Mode == operatorv1.FeatureGateModeTypeEnable
	}
	return named
}

// unknownGates are those that no server of ours has.
func unknownGates(cm *operatorv1.ClusterManager) (unknown []string) {
	for name := range gates(cm) {
		if !slices.Contains(knownGates, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// ignored are the fields that are set and have no effect.
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
		"registrationConfiguration.importerConfiguration": spec.RegistrationConfiguration != nil &&
			spec.RegistrationConfiguration.ImporterConfiguration != nil,
		"registrationConfiguration.registrationDrivers of type grpc": spec.RegistrationConfiguration != nil &&
			slices.ContainsFunc(spec.RegistrationConfiguration.RegistrationDrivers, func(d operatorv1.RegistrationDriverHub) bool {
				return d.AuthType == operatorv1.GRPCAuthType
			}),
		"clusterhub.apiServer.address": hub.APIServer.Address != nil && !cm.IsDetached(),
	} {
		if set {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}

// few is a list for a message, with so many of the items as one reads.
func few(items []string) string {
	const most = 5
	if len(items) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), len(items)-most)
	}
	return strings.Join(items, ", ")
}
