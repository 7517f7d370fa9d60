// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentcsr

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// IsPending reports whether a request waits for a decision: it has no certificate, and is neither approved, denied nor failed.
func IsPending(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) == 0 && !slices.ContainsFunc(csr.Status.Conditions,
		func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied ||
				c.Type == certificatesv1.CertificateFailed
		})
}

// Approval returns the condition by which a request was approved, or nil if it was not, or was refused as well.
func Approval(csr *certificatesv1.CertificateSigningRequest) (approval *certificatesv1.CertificateSigningRequestCondition) {
	for i := range csr.Status.Conditions {
		switch c := &csr.Status.Conditions[i]; c.Type {
		case certificatesv1.CertificateApproved:
			approval = nil
			if c.Status == corev1.ConditionTrue {
				approval = c
			}
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return nil
		}
	}
	return approval
}
