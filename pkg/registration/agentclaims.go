// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Claims about an agent itself in the status of its ManagedCluster, in addition to those of its cluster. The agent needs no additional permission
// for them, other programs treat them as any claim, and placements can select by them.
const (
	// ClaimAgentVersion is the version of the agent.
	ClaimAgentVersion = "version.agent.clusterhub.dev"
	// ClaimHubCA has the certificates by which the agent trusts the hub: their SHA-256 (DER), separated by commas. An agent that trusts the hub by
	// the certificates of its machine does not have it.
	ClaimHubCA = "hub-ca.agent.clusterhub.dev"
	// MaxAgentClaims is their number.
	MaxAgentClaims = 2

	// maxHubCAs is the maximum number of certificates in the claim: while a CA is renewed there are two.
	maxHubCAs = 8
)

// IsAgentClaim reports whether a claim is about the agent, and not about its cluster.
func IsAgentClaim(name string) bool { return name == ClaimAgentVersion || name == ClaimHubCA }

// A value that others may have written counts as a version, or as a hash, only if it has the form of one.
var (
	validVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,127}$`)
	validHash    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// AgentClaims returns the claims of an agent. Unknown values and invalid versions are left out.
func AgentClaims(version string, hubCA []byte) map[string]string {
	claims := map[string]string{}
	if validVersion.MatchString(version) {
		claims[ClaimAgentVersion] = version
	}
	if hashes := CertificateHashes(hubCA); len(hashes) > 0 {
		claims[ClaimHubCA] = strings.Join(hashes[:min(len(hashes), maxHubCAs)], ",")
	}
	return claims
}

// CertificateHashes returns the SHA-256 of the certificates in PEM, sorted, without duplicates.
func CertificateHashes(data []byte) (hashes []string) {
	for {
		var block *pem.Block
		block, data = pem.Decode(data)
		if block == nil {
			slices.Sort(hashes)
			return slices.Compact(hashes)
		}
		if block.Type == "CERTIFICATE" {
			hashes = append(hashes, CertificateHash(block.Bytes))
		}
	}
}

// CertificateHash returns the SHA-256 of a certificate in DER.
func CertificateHash(der []byte) string {
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// AgentVersion returns the version in a claim, or "" if it is invalid.
func AgentVersion(claim string) string {
	if !validVersion.MatchString(claim) {
		return ""
	}
	return claim
}

// HubCAHashes returns the hashes in a claim, or none if one of them is invalid.
func HubCAHashes(claim string) []string {
	hashes := strings.SplitN(claim, ",", maxHubCAs+1)
	if len(hashes) > maxHubCAs || slices.ContainsFunc(hashes, func(h string) bool { return !validHash.MatchString(h) }) {
		return nil
	}
	return hashes
}

// maxBehind is the maximum number of minors by which an agent may be older than its hub: docs/versions.md.
const maxBehind = 2

// AgentSkew returns why an agent of a version is not compatible with a hub of another. It is empty if they are compatible, or if that is not known.
func AgentSkew(hub, agent string) string {
	h, hubErr := version.ParseSemantic(hub)
	a, agentErr := version.ParseSemantic(agent)
	switch {
	case hubErr != nil || agentErr != nil:
		return ""
	case a.Major() > h.Major() || a.Major() == h.Major() && a.Minor() > h.Minor():
		return "newer than the hub"
	case a.Major() < h.Major():
		return "of an older major version"
	case h.Minor()-a.Minor() > maxBehind:
		return fmt.Sprintf("%d minor versions behind", h.Minor()-a.Minor())
	}
	return ""
}

// AgentOutdated reports whether an agent is of an older version than its hub. It is false if one of the versions is not known.
func AgentOutdated(hub, agent string) bool {
	h, hubErr := version.ParseSemantic(hub)
	a, agentErr := version.ParseSemantic(agent)
	return hubErr == nil && agentErr == nil && a.LessThan(h)
}
