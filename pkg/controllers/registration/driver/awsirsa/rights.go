// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
)

// Rights are those that the driver adds to the hub's.
func Rights() []kit.Right {
	return []kit.Right{kit.On(corev1.SchemeGroupVersion, "configmaps", "get", "update").Named(awsAuthName).In(awsAuthNamespace).By("aws-auth")}
}
