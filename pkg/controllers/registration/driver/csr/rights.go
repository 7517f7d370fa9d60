// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package csr

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
)

// Rights are those that the driver adds to the hub's. Who asks for a certificate decides whether the cluster is accepted.
func Rights() []kit.Right {
	return []kit.Right{kit.On(certificatesv1.SchemeGroupVersion, "certificatesigningrequests", "list", "watch").By("auto-approval")}
}
