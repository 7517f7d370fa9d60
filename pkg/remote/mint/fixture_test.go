// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package mint

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/test/leak"
)

// adminToken is the secret of the sources of the tests, and proxyPassword that of their proxies.
const (
	adminToken    = "hunter2-hunter2-hunter2-hunter2"
	proxyPassword = "swordfish-swordfish"
)

// pair is a certificate, which also serves as a CA, and its key, in PEM.
var pair = sync.OnceValues(func() (certificate, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "admin"}, private)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
})

// kubeconfig returns a kubeconfig with the given fields of a cluster and a user, in YAML; $CA, $CERT and $KEY are replaced by valid ones, and $TWICE
// by a different CA.
func kubeconfig(cluster, user string) []byte {
	certificate, key := pair()
	encoded := base64.StdEncoding.EncodeToString
	return []byte(strings.NewReplacer("$CERT", encoded(certificate), "$KEY", encoded(key),
		"$CA", encoded(certificate), "$TWICE", encoded([]byte(string(certificate)+string(certificate)))).Replace(fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}, {name: other, context: {cluster: other, user: other}}]
clusters: [{name: c, cluster: {%s}}, {name: other, cluster: {server: "http://other"}}]
users: [{name: u, user: {%s}}, {name: other, user: {exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}}]
`, cluster, user)))
}

const (
	goodCluster = `server: "https://api.example:6443", certificate-authority-data: $CA`
	goodUser    = `token: ` + adminToken
)

// source returns a valid source.
func source(t testing.TB, cluster, user string) *Source {
	t.Helper()
	s, err := Parse(kubeconfig(cluster, user))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// looked has texts without secrets, since the search takes long.
var looked sync.Map

// noSecrets fails if a text contains a secret in any form.
func noSecrets(t testing.TB, text string) {
	t.Helper()
	if _, before := looked.Load(text); before {
		return
	}
	_, key := pair()
	secrets := leak.Secrets{"admin's token": []byte(adminToken), "password": []byte(proxyPassword), "key": key, "token": []byte(grantedToken)}
	if found := secrets.Find([]byte(text)); len(found) > 0 {
		t.Errorf("%q shows %v", text, found)
		return
	}
	looked.Store(text, true)
}

func reasonOf(err error) string {
	var refused *Refused
	var failed *Failed
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &failed):
		return failed.Reason
	case err != nil:
		return err.Error()
	}
	return ""
}
