// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
	"github.com/clusterhub/clusterhub/test/leak"
)

const fuzzedToken = "hunter2-hunter2-hunter2"

// FuzzBootstrapKubeconfig: what the agent keeps of its bootstrap kubeconfig is where the hub is and how it is trusted, and nobody's
// identity but its own; and no error has a token in it.
func FuzzBootstrapKubeconfig(f *testing.F) {
	kubeconfig := func(cluster, user string) []byte {
		return []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], " +
			"clusters: [{name: c, cluster: " + cluster + "}], users: [{name: u, user: " + user + "}]}")
	}
	for _, seed := range [][]byte{
		kubeconfig("{server: https://x}", "{token: "+fuzzedToken+"}"),
		kubeconfig("{server: https://x, certificate-authority-data: YQ==, proxy-url: 'http://p:1', tls-server-name: y}", "{token: "+fuzzedToken+"}"),
		kubeconfig("{server: https://x, insecure-skip-tls-verify: true}", "{username: a, password: "+fuzzedToken+"}"),
		kubeconfig("{server: https://x, proxy-url: 'http://a:"+fuzzedToken+"@p:x'}", "{token: a}"),
		kubeconfig("{server: https://x, certificate-authority: /nowhere/ca.crt}", "{tokenFile: /token}"),
		kubeconfig("{server: 'https://a:"+fuzzedToken+"@x'}", "{as: admin, token: a}"),
		kubeconfig("{server: https://x, extensions: [{name: e, extension: {token: "+fuzzedToken+"}}]}", "{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}"),
		kubeconfig("{server: https://x}", "{client-certificate-data: YQ==, client-key-data: "+base64.StdEncoding.EncodeToString([]byte(fuzzedToken))+"}"),
		kubeconfig("{server: https://x}", "{token: ["+fuzzedToken+"]}"),
		bytes.Replace(kubeconfig("{server: https://x}", "{token: "+fuzzedToken+"}"), []byte("current-context: c"), []byte("current-context: d"), 1),
		kubeconfig("{server: x}", "{token: "+fuzzedToken+"}"), kubeconfig("{server: 'https:// 0'}", "{token: a}"),
		[]byte("users: [{user: {token: " + fuzzedToken), []byte("{}"), nil,
	} {
		f.Add(seed)
	}
	var data []byte
	client := &kubefake.Clientset{}
	client.AddReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &corev1.Secret{Data: map[string][]byte{registration.KeyKubeconfig: data}}, nil
	})
	source := &bootstrapSource{client: client, namespace: namespace}
	cert, key := fuzzedCertificate(f, registration.ClusterUser(clusterName, "agent"))
	roles := irsa.Identity{Hub: irsa.Cluster{Partition: "aws", Region: "us-west-2", Account: "111111111111", Name: "hub"},
		Managed: irsa.Cluster{Partition: "aws", Region: "eu-west-1", Account: "222222222222", Name: "c"}}

	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		data = kubeconfig
		noToken := func(err error) {
			t.Helper()
			if err != nil && strings.Contains(err.Error(), fuzzedToken) && !leak.NamedIn(data, fuzzedToken) {
				t.Errorf("the error has the token: %v", err)
			}
		}
		config, err := source.read(t.Context())
		if err != nil {
			noToken(err)
			return
		}
		cluster, err := onlyCluster(config)
		if err != nil || len(config.Clusters) != 1 || len(config.Contexts) != 1 || len(config.AuthInfos) > 1 || cluster.CertificateAuthority != "" {
			t.Fatalf("%s is read as %+v: %v", data, config, err)
		}
		_, err = restConfig(config.DeepCopy())
		noToken(err)

		for _, own := range []identity{&csrIdentity{}, &awsIdentity{roles: roles}, &awsIdentity{roles: roles, command: tokenCommandAWS}} {
			kept, err := hubKubeconfig(config, clusterName, own.user())
			if err != nil {
				t.Fatal(err)
			}
			if where, err := hubURL(kept); err != nil || where != cluster.Server {
				t.Errorf("the hub is at %q instead of %q: %v", where, cluster.Server, err)
			}
			again, err := clientcmd.Load(kept)
			if err != nil {
				t.Fatal(err)
			}
			same, err := onlyCluster(again)
			if err != nil || same.TLSServerName != cluster.TLSServerName || same.InsecureSkipTLSVerify != cluster.InsecureSkipTLSVerify || same.ProxyURL != cluster.ProxyURL ||
				!bytes.Equal(same.CertificateAuthorityData, cluster.CertificateAuthorityData) || same.CertificateAuthority != "" || len(same.Extensions) > 0 {
				t.Errorf("%+v became %+v, %v", cluster, same, err)
			}
			user := again.AuthInfos[kubeconfigUser]
			if len(again.AuthInfos) != 1 || user.Token+user.TokenFile+user.Username+user.Password+user.Impersonate+string(user.ClientKeyData) != "" {
				t.Errorf("the users are %v", again.AuthInfos)
			}
			if !strings.Contains(cluster.ProxyURL, fuzzedToken) && !leak.NamedIn(data, fuzzedToken) && bytes.Contains(kept, []byte(fuzzedToken)) {
				t.Errorf("%s has become %s", data, kept)
			}
			switch own := own.(type) {
			case *csrIdentity:
				c, err := own.config(state{cert: cert, key: key}, kept)
				noToken(err)
				if err == nil && (c.BearerToken+c.BearerTokenFile+c.Username+c.CertFile+c.KeyFile != "" || c.ExecProvider != nil ||
					rest.IsConfigTransportTLS(*c) && !bytes.Equal(c.KeyData, key)) {
					t.Errorf("it goes to the hub as %+v", c)
				}
			case *awsIdentity:
				tokens, err := tokensOf(kept)
				noToken(err)
				if err == nil && (tokens.cluster != roles.Hub.Name || tokens.region != roles.Hub.Region || tokens.roleARN != roles.HubRoleARN()) {
					t.Errorf("its tokens are for %s in %s, of %s", tokens.cluster, tokens.region, tokens.roleARN)
				}
			}
		}
	})
}

// fuzzedCertificate is one of a user, and its key.
func fuzzedCertificate(f *testing.F, user string) (certificate, key []byte) {
	f.Helper()
	key, err := newKey()
	if err != nil {
		f.Fatal(err)
	}
	signer, err := parseKey(key)
	if err != nil {
		f.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: agentcsr.Subject(clusterName, "agent"), NotBefore: time.Unix(1700000000, 0), NotAfter: time.Unix(1800000000, 0),
	}
	template.Subject.CommonName = user
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer.(*ecdsa.PrivateKey))
	if err != nil {
		f.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// FuzzParseCert: a certificate and a key that are taken are what TLS takes, and that certificate is the agent's; and no error has
// anything of the key.
func FuzzParseCert(f *testing.F) {
	own, key := fuzzedCertificate(f, registration.ClusterUser(clusterName, "agent"))
	others, othersKey := fuzzedCertificate(f, registration.ClusterUser("c2", "agent"))
	headed := bytes.Replace(others, []byte("CERTIFICATE-----\n"), []byte("CERTIFICATE-----\nA: b\n\n"), 1)
	block, _ := pem.Decode(key)
	for _, pair := range [][2][]byte{
		{own, key}, {own, othersKey}, {others, othersKey}, {append(bytes.Clone(own), others...), key}, {append(bytes.Clone(others), own...), key},
		{append(bytes.Clone(headed), own...), key}, {append(bytes.Clone(key), own...), append(bytes.Clone(own), key...)},
		{own, append(bytes.Clone(othersKey), key...)}, {own, append(bytes.Clone(key), othersKey...)}, {own[:len(own)/2], key}, {own, key[:len(key)/2]},
		{own, bytes.ReplaceAll(key, []byte("EC PRIVATE KEY"), []byte("RSA PRIVATE KEY"))}, {own, pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: block.Bytes})},
		{own, []byte("-----BEGIN EC PRIVATE KEY-----\n" + fuzzedToken + "\n-----END EC PRIVATE KEY-----\n")}, {nil, key}, {own, nil},
	} {
		f.Add(pair[0], pair[1])
	}
	secret := block.Bytes[7 : 7+32] // the number that is the key
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		leaf, err := parseCert(certificate, key, clusterName, "agent")
		if err != nil {
			for _, text := range []string{fuzzedToken, string(secret), base64.StdEncoding.EncodeToString(block.Bytes)[10:30]} {
				if strings.Contains(err.Error(), text) {
					t.Errorf("the error has the key: %v", err)
				}
			}
			return
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			t.Fatalf("TLS does not take it: %v", err)
		}
		if !pair.Leaf.Equal(leaf) || leaf.Subject.CommonName != registration.ClusterUser(clusterName, "agent") {
			t.Errorf("the certificate is that of %q, and taken for that of %q", pair.Leaf.Subject.CommonName, leaf.Subject.CommonName)
		}
		// The key is the one that it asks for and tells the hub of.
		request, err := newRequest(key, clusterName, "agent")
		if err != nil {
			t.Fatal(err)
		}
		if hash, err := keyHash(key); err != nil || len(hash) != 64 || !requestsKey(request, key) || requestsKey(request, othersKey) && !bytes.Contains(key, othersKey) {
			t.Errorf("the hash of its key is %q: %v", hash, err)
		}
	})
}

// FuzzRequestsKey: a request on the hub is the agent's if it is for the agent's key, and signed with it.
func FuzzRequestsKey(f *testing.F) {
	_, key := fuzzedCertificate(f, "a")
	_, other := fuzzedCertificate(f, "a")
	for _, with := range [][]byte{key, other} {
		request, err := newRequest(with, clusterName, "agent")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(request)
		f.Add(append(bytes.Clone(request), request...))
		f.Add(bytes.ReplaceAll(request, []byte("CERTIFICATE REQUEST"), []byte("CERTIFICATE")))
	}
	f.Add([]byte("-----BEGIN"))
	f.Add(key)
	signer, err := parseKey(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		if !requestsKey(request, key) {
			return
		}
		block, _ := pem.Decode(request)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || !signer.Public().(*ecdsa.PublicKey).Equal(parsed.PublicKey) || requestsKey(request, other) {
			t.Errorf("%s is for %v: %v", request, parsed.PublicKey, err)
		}
	})
}

// FuzzState: what is in the Secret stays, the agent's own keys as they are read, and those of others.
func FuzzState(f *testing.F) {
	f.Add("kubeconfig", []byte("a"), "next.csr", []byte("csr-1"))
	f.Add("tls.key", []byte{0xff, 0}, "other", []byte("x"))
	f.Add("cluster-name", []byte(""), "cluster-name", []byte("c1"))
	f.Fuzz(func(t *testing.T, key1 string, value1 []byte, key2 string, value2 []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{key1: value1, key2: value2}}
		before := maps.Clone(secret.Data)
		s := stateOf(secret)
		s.writeTo(secret)
		for key, value := range before {
			if got, ok := secret.Data[key]; !bytes.Equal(got, value) || !ok && len(value) > 0 {
				t.Errorf("%s was %q and is %q, %t", key, value, got, ok)
			}
		}
		if s.writeTo(secret) {
			t.Error("it is written a second time")
		}
		written := &corev1.Secret{}
		s.writeTo(written)
		if again := stateOf(written); again.clusterName != s.clusterName || again.nextCSR != s.nextCSR || !bytes.Equal(again.key, s.key) || !bytes.Equal(again.kubeconfig, s.kubeconfig) {
			t.Errorf("%q became %q", s.clusterName, again.clusterName)
		}
	})
}
