// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package publicroots_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
	"k8s.io/client-go/util/cert"

	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

// child, when set, makes TestRoots_WithoutSystemRoots one that has no roots but those of the package.
const child = "CLUSTERHUB_TEST_NO_SYSTEM_ROOTS"

// awsRoots are those that the servers of AWS have their certificates of, by their SHA-256.
var awsRoots = map[string]string{
	"8ecde6884f3d87b1125ba31ac3fcb13d7016de7f57cc904fe1cb97c6ae98196e": "Amazon Root CA 1",
	"1ba5b2aa8c65401a82960118f80bec4f62304d83cec4713a19c39c011ea46db4": "Amazon Root CA 2",
	"18ce6cfe7bf14e60b2e347b8dfe868cb31d02ebb3ada271569f50343b46db3a4": "Amazon Root CA 3",
	"e35d28419ed02025cfa69038cd623962458da5c695fbdea3c22b0bfb25897092": "Amazon Root CA 4",
}

func TestRoots_WithoutSystemRoots(t *testing.T) {
	if os.Getenv(child) == "" {
		nowhere := filepath.Join(t.TempDir(), "nowhere")
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=yes", "SSL_CERT_FILE="+nowhere, "SSL_CERT_DIR="+nowhere)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	// A time at which all of them are valid: this test is about who is trusted.
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	found := 0
	for root := range bundle.Roots() {
		sum := sha256.Sum256(root.Certificate)
		name, aws := awsRoots[hex.EncodeToString(sum[:])]
		if !aws {
			continue
		}
		found++
		ca, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if ca.Subject.CommonName != name {
			t.Errorf("%s calls itself %s", name, ca.Subject)
		}
		if _, err := ca.Verify(x509.VerifyOptions{CurrentTime: at}); err != nil {
			t.Errorf("%s is not trusted: %v", name, err)
		}
	}
	if found != len(awsRoots) {
		t.Errorf("%d of the %d roots of AWS are there", found, len(awsRoots))
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "Amazon Root CA 1"}, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Verify(x509.VerifyOptions{}); err == nil {
		t.Error("whoever has the name of a root is trusted")
	}
}
