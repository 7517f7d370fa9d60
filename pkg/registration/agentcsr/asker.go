// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentcsr

import (
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Asker is the kind of the requester of a certificate.
type Asker int

const (
	// Stranger is any other user. Only an admin can approve the request of such a user.
	Stranger Asker = iota
	// Bootstrap is a user who may request the first certificate of a cluster.
	Bootstrap
	// Agent is the user that the certificate is for: an agent that has one and renews it.
	Agent
)

// Asker returns the kind of the requester. The named users are bootstrap identities, too.
func (r *Request) Asker(spec *certificatesv1.CertificateSigningRequestSpec, named []string) Asker {
	switch {
	case r.IsRenewal(spec):
		return Agent
	case IsBootstrap(spec.Username, named):
		return Bootstrap
	}
	return Stranger
}

// IsRenewal reports whether the requester is the user that the certificate is for: an agent that has a certificate.
func (r *Request) IsRenewal(spec *certificatesv1.CertificateSigningRequestSpec) bool {
	groups := slices.DeleteFunc(slices.Clone(spec.Groups), func(g string) bool { return g == "system:authenticated" })
	slices.Sort(groups)
	return spec.Username == r.User && slices.Equal(groups, agentGroups(r.Cluster))
}

// IsBootstrap reports whether a user may request the first certificate of a cluster: the users of bootstrap tokens, and the named users.
func IsBootstrap(user string, named []string) bool {
	return strings.HasPrefix(user, registration.BootstrapUserPrefix) || user == registration.BootstrapServiceAccount ||
		slices.Contains(named, user)
}

// MayBeNamed reports whether a user may be named as a bootstrap identity. It matches the policy on hub-certificate-approver
// (artifacts/deploy/base/policies.yaml), which excludes Kubernetes' own users and the hub's.
func MayBeNamed(user string) bool {
	account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	return !strings.HasPrefix(user, "system:") || strings.HasPrefix(user, registration.BootstrapUserPrefix) ||
		isAccount && !strings.HasPrefix(account, "kube-system:") && !strings.HasPrefix(account, "clusterhub-system:")
}

// CheckNamed returns an error if a flag must not name a user as a bootstrap identity.
func CheckNamed(flag, user string) error {
	if MayBeNamed(user) {
		return nil
	}
	return fmt.Errorf("--%s: %q is a user of Kubernetes or of the hub itself, whose requests hub-certificate-approver may not "+
		"approve: name another user", flag, user)
}
