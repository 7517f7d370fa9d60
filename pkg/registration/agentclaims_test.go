// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/pem"
	"slices"
	"strings"
	"testing"
)

func TestAgentClaims_RoundTrip(t *testing.T) {
	var ca []byte
	for _, der := range []string{"b", "a", "b"} {
		ca = append(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(der)})...)
	}
	ca = append(ca, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("secret")})...)
	claims := AgentClaims("v1.2.3-rc.1+x", ca)
	if got := AgentVersion(claims[ClaimAgentVersion]); got != "v1.2.3-rc.1+x" {
		t.Errorf("the version is %q", got)
	}
	got, want := HubCAHashes(claims[ClaimHubCA]), []string{CertificateHash([]byte("a")), CertificateHash([]byte("b"))}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the CAs are %v, not %v", got, want)
	}
	if len(claims) > MaxAgentClaims || !IsAgentClaim(ClaimHubCA) || !IsAgentClaim(ClaimAgentVersion) || IsAgentClaim("id.k8s.io") {
		t.Errorf("the claims are %v", claims)
	}
	if claims := AgentClaims("(devel)", nil); len(claims) > 0 {
		t.Errorf("an agent that knows neither says %v", claims)
	}
}

// Others write claims, too.
func TestAgentClaims_InvalidIsIgnored(t *testing.T) {
	for _, claim := range []string{"", "v1\x1b[2J", "v1 ", "-rf", strings.Repeat("1", 129), "$(reboot)", "<b>"} {
		if got := AgentVersion(claim); got != "" {
			t.Errorf("%q is read as the version %q", claim, got)
		}
	}
	hash := CertificateHash(nil)
	for _, claim := range []string{"", "sha256:", hash + ",", hash + ",x", strings.ToUpper(hash), hash[:len(hash)-1], strings.Repeat(hash+",", 8) + hash} {
		if got := HubCAHashes(claim); got != nil {
			t.Errorf("%q is read as %v", claim, got)
		}
	}
}

func TestAgentSkew(t *testing.T) {
	for versions, want := range map[[2]string]string{
		{"v1.4.0", "v1.4.9"}: "", {"v1.4.0", "v1.2.0"}: "", {"v1.4.0", "v1.5.0-rc.1"}: "newer than the hub", {"v1.4.0", "v2.0.0"}: "newer than the hub",
		{"v1.4.0", "v1.1.7"}: "3 minor versions behind", {"v2.0.0", "v1.9.0"}: "of an older major version", {"v1.4.0-3-gabc-dirty", "v1.4.0"}: "",
		{"v1.4.0", ""}: "", {"", "v1.4.0"}: "", {"dev", "v1.4.0"}: "",
	} {
		if got := AgentSkew(versions[0], versions[1]); got != want {
			t.Errorf("an agent %s of a hub %s is %q, not %q", versions[1], versions[0], got, want)
		}
	}
}
