// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentcsr has the rules for certificate requests of clusters' agents that hub, agent and command line share: how one is created and
// parsed, who may request one, what has been decided, and which key it is for. These rules are nowhere else.
package agentcsr

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Request is a certificate request for nothing but the identity of an agent of one cluster.
type Request struct {
	Cluster string
	// User is the name of the user that the certificate would authenticate.
	User string
	// KeySHA256 is the hash of its public key, as returned by the function KeySHA256.
	KeySHA256 string
}

var (
	oidCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization = asn1.ObjectIdentifier{2, 5, 4, 10}

	allowedUsages = []certificatesv1.KeyUsage{
		certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
	}
)

// ErrOther reports that a request is not of a cluster's agent. It belongs to other controllers.
var ErrOther = errors.New("not a certificate request of a cluster's agent")

// Parse parses a request. It returns an error if any part of it is for something else than the identity of an agent of the cluster in its label.
func Parse(csr *certificatesv1.CertificateSigningRequest) (*Request, error) {
	cluster := csr.Labels[registration.ClusterNameLabel]
	if cluster == "" || csr.Spec.SignerName != registration.SignerName {
		return nil, ErrOther
	}
	if err := registration.CheckName(cluster); err != nil {
		return nil, err
	}
	if !slices.Contains(csr.Spec.Usages, certificatesv1.UsageClientAuth) {
		return nil, errors.New("it does not ask for the usage \"client auth\"")
	}
	for _, usage := range csr.Spec.Usages {
		if !slices.Contains(allowedUsages, usage) {
			return nil, fmt.Errorf("it asks for the usage %q", usage)
		}
	}
	block, rest := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("spec.request is not one PEM block of a certificate request")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("spec.request: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("spec.request is not signed by its key: %w", err)
	}
	user, err := checkSubject(request, cluster)
	if err != nil {
		return nil, err
	}
	// There are more kinds of alternative names than x509 parses, and an agent needs no other extension either.
	if len(request.Extensions)+len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0 {
		return nil, errors.New("it asks for alternative names or other extensions")
	}
	return &Request{Cluster: cluster, User: user, KeySHA256: KeySHA256(request.RawSubjectPublicKeyInfo)}, nil
}

// checkSubject accepts the subject of an agent: its name and its two groups, each once, and nothing else. It refuses several names, of which
// parsers use different ones.
func checkSubject(request *x509.CertificateRequest, cluster string) (user string, err error) {
	var users, groups []string
	for _, name := range request.Subject.Names {
		value, ok := name.Value.(string)
		switch {
		case ok && name.Type.Equal(oidCommonName):
			users = append(users, value)
		case ok && name.Type.Equal(oidOrganization):
			groups = append(groups, value)
		default:
			return "", fmt.Errorf("its subject has more than names and groups: %q", request.Subject.String())
		}
	}
	slices.Sort(groups)
	if !slices.Equal(groups, agentGroups(cluster)) {
		return "", fmt.Errorf("it asks for the groups %q, and not for those of an agent of the cluster %s", groups, cluster)
	}
	if len(users) != 1 || !isAgent(users[0], cluster) {
		return "", fmt.Errorf("it asks for the user %q, and not for an agent of the cluster %s", users, cluster)
	}
	return users[0], nil
}

// agentGroups returns the groups of a cluster's agents, sorted.
func agentGroups(cluster string) []string {
	groups := []string{registration.ClusterGroup(cluster), registration.ManagedClustersGroup}
	slices.Sort(groups)
	return groups
}

// isAgent reports whether a user is an agent of a cluster. The name is shown to admins who decide on requests: it must not have characters that
// control a terminal.
func isAgent(user, cluster string) bool {
	agent, ok := strings.CutPrefix(user, registration.ClusterUser(cluster, ""))
	return ok && agent != "" && !strings.ContainsFunc(agent, func(r rune) bool { return r == ':' || r <= ' ' || r > '~' })
}
