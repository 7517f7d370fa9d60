// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelSpokeOnly is the label of ClusterClaims that are not reported to the hub, whatever its value. It allows a cluster to keep a fact private.
const labelSpokeOnly = "open-cluster-management.io/spoke-only"

// forHub selects the ClusterClaims that are reported to the hub.
func forHub(options metav1.ListOptions) metav1.ListOptions {
	options.LabelSelector = "!" + labelSpokeOnly
	return options
}
