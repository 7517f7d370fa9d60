// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// authenticatorBinary is the environment variable with the path of aws-iam-authenticator, which is built in a module of its own.
const authenticatorBinary = "CLUSTERHUB_TEST_AWS_IAM_AUTHENTICATOR"

// TestAWSIAMAuthenticator verifies that AWS's own token verifier works with this server. It requires TLS and a host name of STS.
func TestAWSIAMAuthenticator(t *testing.T) {
	binary := os.Getenv(authenticatorBinary)
	if binary == "" {
		t.Skip("needs " + authenticatorBinary)
	}
	s := newSeed(t)
	c := s.withAccess(t)
	config := c.sts.Options()
	config.BaseEndpoint = nil
	ca := filepath.Join(t.TempDir(), "ca.pem")
	noError(t, nil, os.WriteFile(ca, s.CA(), 0o600))
	verify := func(cluster, token string) string {
		cmd := exec.CommandContext(t.Context(), binary, "verify", "-i", cluster, "-t", token, "-o", "json")
		cmd.Env = append(os.Environ(), "HTTPS_PROXY="+s.URL(), "SSL_CERT_FILE="+ca, "AWS_REGION="+region, "AWS_EC2_METADATA_DISABLED=true")
		out, _ := cmd.CombinedOutput() // the output has the error
		return string(out)
	}
	token := eksToken(t, sts.New(config), "hub")
	if got := verify("hub", token); !strings.Contains(got, s.hubARN) || !strings.Contains(got, `"SessionName": "agent"`) {
		t.Errorf("verify: %s", got)
	}
	if got := verify("other", token); strings.Contains(got, s.hubARN) {
		t.Errorf("verify for another cluster: %s", got)
	}
	s.world.hub.RemoveRole("ocm-hub-" + s.hash)
	if got := verify("hub", token); strings.Contains(got, s.hubARN) {
		t.Errorf("verify after the role is gone: %s", got)
	}
}
