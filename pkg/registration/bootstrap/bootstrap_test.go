// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/pkg/registration/bootstrap"
	"github.com/clusterhub/clusterhub/test/leak"
)

const token = "hunter2-hunter2-hunter2-hunter2"

// pair returns a certificate, which also serves as a CA, and its key, in PEM.
var pair = sync.OnceValues(func() (certificate, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "hub"}, private)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
})

// kubeconfig returns a kubeconfig with the fields of a cluster and a user, in YAML; $CERT and $KEY stand for valid ones. Its other contexts are of
// no use to an agent, and do not count.
func kubeconfig(cluster, user string) []byte {
	certificate, key := pair()
	encoded := base64.StdEncoding.EncodeToString
	return []byte(strings.NewReplacer("$CERT", encoded(certificate), "$KEY", encoded(key)).Replace(fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}, {name: other, context: {cluster: other, user: other}}]
clusters: [{name: c, cluster: {%s}}, {name: other, cluster: {server: "http://other", certificate-authority: /ca}}]
users: [{name: u, user: {%s}}, {name: other, user: {exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}}]
`, cluster, user)))
}

const (
	server      = `server: "https://hub.example:6443"`
	goodCluster = server + `, certificate-authority-data: $CERT`
	goodUser    = `token: ` + token
)

// noSecrets fails if an error quotes a secret: users who may not read Secrets see it.
func noSecrets(t *testing.T, err error) {
	t.Helper()
	_, key := pair()
	if found := (leak.Secrets{"token": []byte(token), "key": key}).Find([]byte(err.Error())); len(found) > 0 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q shows %v", err, found)
	}
}

// TestParse_Rejected has attacks, and mistakes. Those without a text of an error are accepted.
func TestParse_Rejected(t *testing.T) {
	for name, test := range map[string]struct{ cluster, user, want string }{
		"good":                  {goodCluster, goodUser, ""},
		"a certificate":         {goodCluster, `client-certificate-data: $CERT, client-key-data: $KEY`, ""},
		"the CAs of all":        {server, goodUser, ""},
		"path, proxy and name":  {`server: "https://[::1]/k8s/c-1", proxy-url: "socks5://u:` + token + `@p:1", tls-server-name: hub.x`, goodUser, ""},
		"a name and a password": {goodCluster, `username: u, password: ` + token, ""},

		"a CA of the pod":          {server + `, certificate-authority: /etc/ca.crt`, goodUser, "names a file in certificate-authority"},
		"a CA of the pod, too":     {goodCluster + `, certificate-authority: /etc/ca.crt`, goodUser, "names a file in certificate-authority"},
		"a token of the pod":       {goodCluster, `tokenFile: /var/run/secrets/token`, "names a file in tokenFile"},
		"a token of the pod, too":  {goodCluster, goodUser + `, tokenFile: /var/run/secrets/token`, "names a file in tokenFile"},
		"a certificate of the pod": {goodCluster, `client-certificate: /c, client-key-data: $KEY`, "names a file in tokenFile, client-certificate"},
		"a key of the pod":         {goodCluster, `client-certificate-data: $CERT, client-key: /k`, "names a file in tokenFile, client-certificate"},
		"a program":                {goodCluster, `exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}`, "by a program"},
		"a provider":               {goodCluster, `auth-provider: {name: oidc}`, "by a program"},

		"http":                    {`server: "http://hub.example"`, goodUser, "is insecure"},
		"unverified":              {server + `, insecure-skip-tls-verify: true`, goodUser, "is insecure"},
		"unverified with a CA":    {goodCluster + `, insecure-skip-tls-verify: true`, goodUser, "is insecure"},
		"no server":               {``, goodUser, "has no server"},
		"no scheme":               {`server: "hub.example:6443"`, goodUser, "has a server that is not a URL"},
		"no host":                 {`server: "https://:6443"`, goodUser, "has a server that is not a URL"},
		"a port that is none":     {`server: "https://hub.example:65536"`, goodUser, "has a server that is not a URL"},
		"userinfo":                {`server: "https://u:` + token + `@hub.example"`, goodUser, "has a server that is not a URL"},
		"query":                   {`server: "https://hub.example?t=` + token + `"`, goodUser, "has a server that is not a URL"},
		"a CA that is none":       {server + `, certificate-authority-data: aHVudGVyMg==`, goodUser, "has no certificate in PEM"},
		"a key for a CA":          {server + `, certificate-authority-data: $KEY`, goodUser, "has no certificate in PEM"},
		"a proxy that is none":    {goodCluster + `, proxy-url: "ftp://u:` + token + `@p"`, goodUser, "has an invalid proxy-url"},
		"a proxy that is no URL":  {goodCluster + `, proxy-url: "http://u:` + token + `@p:z"`, goodUser, "has an invalid proxy-url"},
		"no credentials":          {goodCluster, ``, "has a user without credentials"},
		"an empty token":          {goodCluster, `token: ""`, "has a user without credentials"},
		"a token and a new line":  {goodCluster, `token: "` + token + `\n"`, "has an invalid token"},
		"no key":                  {goodCluster, `client-certificate-data: $CERT`, "must have a certificate in"},
		"a key of nothing":        {goodCluster, `client-certificate-data: aGk=, client-key-data: $KEY`, "must have a certificate in"},
		"two ways to log in":      {goodCluster, goodUser + `, username: u, password: p`, "do not go together"},
		"groups of another user":  {goodCluster, goodUser + `, as-groups: ["system:masters"]`, "do not go together"},
		"a name beside a program": {goodCluster, goodUser + `, exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}`, "by a program"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := bootstrap.Parse(kubeconfig(test.cluster, test.user))
			if test.want == "" {
				if err != nil || len(config.Contexts) != 1 || len(config.Clusters) != 1 || len(config.AuthInfos) != 1 {
					t.Fatalf("got %+v, %v", config, err)
				}
				// A client can use the accepted ones.
				c, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
				if err == nil {
					_, err = rest.TLSConfigFor(c)
				}
				if err != nil {
					t.Errorf("it is taken, and a client says: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			noSecrets(t, err)
		})
	}
}

func TestParse_InvalidKubeconfig(t *testing.T) {
	good := kubeconfig(goodCluster, goodUser)
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":               {nil, "has no current context"},
		"huge":                  {bytes.Repeat([]byte("#\n"), bootstrap.MaxSize), "has 524288 bytes, and may have 262144"},
		"text":                  {[]byte(token), "cannot be read as a kubeconfig"},
		"half":                  {[]byte("users: [{user: {token: " + token), "cannot be read as a kubeconfig"},
		"another kind":          {[]byte("apiVersion: v1\nkind: Secret"), "cannot be read as a kubeconfig"},
		"deep":                  {[]byte(strings.Repeat("[", bootstrap.MaxSize/2)), "cannot be read as a kubeconfig"},
		"no current context":    {bytes.Replace(good, []byte("current-context: c"), nil, 1), "has no current context"},
		"a context that is not": {bytes.Replace(good, []byte("current-context: c"), []byte("current-context: "+token), 1), "has no current context"},
		"a user that is not":    {bytes.Replace(good, []byte("user: u}"), []byte("user: "+token+"}"), 1), "must name a user"},
		"a cluster that is not": {bytes.Replace(good, []byte("cluster: c,"), []byte("cluster: "+token+","), 1), "has no server"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := bootstrap.Parse(test.data)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Fatalf("got %+v, %v, want %q", config, err, test.want)
			}
			noSecrets(t, err)
		})
	}
}
