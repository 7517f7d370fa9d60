// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/leak"
)

const fuzzedToken = "hunter2-hunter2-hunter2"

// FuzzBootstrapKubeconfig: the agent uses the address and the CA certificates of the hub in its bootstrap kubeconfig, and no identity but its own;
// and no error contains a token.
func FuzzBootstrapKubeconfig(f *testing.F) {
	kubeconfig := func(cluster, user string) []byte {
		return []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], " +
			"clusters: [{name: c, cluster: " + cluster + "}], users: [{name: u, user: " + user + "}]}")
	}
	cert, key := agenttest.Certificate(f, registration.ClusterUser(agenttest.ClusterName, "agent"))
	for _, seed := range [][]byte{
		kubeconfig("{server: https://x}", "{token: "+fuzzedToken+"}"),
		kubeconfig("{server: https://x, certificate-authority-data: "+base64.StdEncoding.EncodeToString(cert)+", proxy-url: 'http://p:1', tls-server-name: y}", "{token: "+fuzzedToken+"}"),
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
	source := &hub.Bootstrap{Client: client, Namespace: agenttest.Namespace}
	roles := irsa.Identity{Hub: irsa.ClusterARN{Partition: "aws", Region: "us-west-2", Account: "111111111111", Name: "hub"},
		Managed: irsa.ClusterARN{Partition: "aws", Region: "eu-west-1", Account: "222222222222", Name: "c"}}
	byAWS := func(command string) *awsirsa.RegisterDriver {
		return &awsirsa.RegisterDriver{HubARN: roles.Hub.String(), ManagedARN: roles.Managed.String(), TokenCommand: command}
	}
	drivers := []identity.RegisterDriver{csr.New(), byAWS("hub-agent"), byAWS("aws")}

	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		data = kubeconfig
		noToken := func(err error) {
			t.Helper()
			if err != nil && strings.Contains(err.Error(), fuzzedToken) && !leak.NamedIn(data, fuzzedToken) {
				t.Errorf("the error has the token: %v", err)
			}
		}
		config, err := source.Read(t.Context())
		if err != nil {
			noToken(err)
			return
		}
		cluster := clusterOf(config)
		if cluster == nil || len(config.Clusters) != 1 || len(config.Contexts) != 1 || len(config.AuthInfos) > 1 || cluster.CertificateAuthority != "" {
			t.Fatalf("%s is read as %+v: %v", data, config, err)
		}
		_, err = hub.BootstrapConfig(config.DeepCopy())
		noToken(err)

		for _, driver := range drivers {
			own, err := driver.New(identity.Agent{})
			if err != nil {
				t.Fatal(err)
			}
			kept, err := hub.Kubeconfig(config, agenttest.ClusterName, own.User())
			if err != nil {
				t.Fatal(err)
			}
			if where, err := hub.URL(kept); err != nil || where != cluster.Server {
				t.Errorf("the hub is at %q instead of %q: %v", where, cluster.Server, err)
			}
			again, err := clientcmd.Load(kept)
			if err != nil {
				t.Fatal(err)
			}
			same := clusterOf(again)
			if same == nil || same.TLSServerName != cluster.TLSServerName || same.InsecureSkipTLSVerify != cluster.InsecureSkipTLSVerify || same.ProxyURL != cluster.ProxyURL ||
				!bytes.Equal(same.CertificateAuthorityData, cluster.CertificateAuthorityData) || same.CertificateAuthority != "" || len(same.Extensions) > 0 {
				t.Errorf("%+v became %+v, %v", cluster, same, err)
			}
			user := again.AuthInfos["default-auth"]
			if len(again.AuthInfos) != 1 || user.Token+user.TokenFile+user.Username+user.Password+user.Impersonate+string(user.ClientKeyData) != "" {
				t.Errorf("the users are %v", again.AuthInfos)
			}
			if !strings.Contains(cluster.ProxyURL, fuzzedToken) && !leak.NamedIn(data, fuzzedToken) && bytes.Contains(kept, []byte(fuzzedToken)) {
				t.Errorf("%s has become %s", data, kept)
			}
			if driver.Names()[0] == csr.Name {
				c, err := own.Config(state.State{Cert: cert, Key: key}, kept)
				noToken(err)
				if err == nil && (c.BearerToken+c.BearerTokenFile+c.Username+c.CertFile+c.KeyFile != "" || c.ExecProvider != nil ||
					rest.IsConfigTransportTLS(*c) && !bytes.Equal(c.KeyData, key)) {
					t.Errorf("it goes to the hub as %+v", c)
				}
				continue
			}
			tokens, err := awsirsa.TokensOf(kept)
			noToken(err)
			if err == nil && (tokens.Cluster != roles.Hub.Name || tokens.Region != roles.Hub.Region || tokens.RoleARN != roles.HubRoleARN()) {
				t.Errorf("its tokens are for %s in %s, of %s", tokens.Cluster, tokens.Region, tokens.RoleARN)
			}
		}
	})
}

// clusterOf returns the cluster of the current context, or nil.
func clusterOf(config *clientcmdapi.Config) *clientcmdapi.Cluster {
	if current := config.Contexts[config.CurrentContext]; current != nil {
		return config.Clusters[current.Cluster]
	}
	return nil
}
