// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelSpokeOnly is on ClusterClaims that are not for the hub, whatever its value is. So a cluster keeps a fact to itself.
const labelSpokeOnly = "open-cluster-management.io/spoke-only"

// forHub selects the ClusterClaims that the hub is told of.
func forHub(options metav1.ListOptions) metav1.ListOptions {
	options.LabelSelector = "!" + labelSpokeOnly
	return options
}
