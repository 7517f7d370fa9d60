// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/test/leak"
)

// FuzzParseKubeconfig: an accepted token source makes us read no file, start no program and connect to no server that we cannot verify, as client-go
// interprets it; and no error contains a part of the token.
func FuzzParseKubeconfig(f *testing.F) {
	kubeconfig := func(cluster, user string) []byte {
		return []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], " +
			"clusters: [{name: c, cluster: " + cluster + "}], users: [{name: u, user: " + user + "}]}")
	}
	const token = "hunter2-hunter2-hunter2"
	for _, seed := range [][]byte{
		kubeconfig("{server: https://x}", "{token: "+token+"}"),
		kubeconfig("{server: http://x}", "{token: "+token+"}"),
		kubeconfig("{server: https://a:b@x, tls-server-name: y}", "{token: "+token+"}"),
		kubeconfig("{server: https://x, insecure-skip-tls-verify: true}", "{token: "+token+"}"),
		kubeconfig("{server: https://x, certificate-authority: /ca.crt}", "{tokenFile: /token}"),
		kubeconfig("{server: https://x, proxy-url: http://y}", "{token: "+token+", as: admin}"),
		kubeconfig("{server: https://x}", "{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}, token: "+token+"}"),
		bytes.ReplaceAll(kubeconfig("{server: https://x}", "{token: a}"), []byte("context: c,"), []byte("context: "+token+",")),
		[]byte("users: [{user: {token: " + token), nil,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &tokenSource{}
		if err := s.parseKubeconfig(data); err != nil {
			if strings.Contains(err.Error(), token) && !leak.NamedIn(data, token) {
				t.Errorf("%q has the token", err)
			}
			return
		}
		loaded, err := clientcmd.Load(data)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
		if err != nil {
			return // we accept less than client-go does
		}
		server, err := url.Parse(s.server)
		if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil {
			t.Errorf("the server is %q", s.server)
		}
		if config.Insecure || config.ExecProvider != nil || config.AuthProvider != nil || config.Impersonate.UserName != "" ||
			config.CAFile+config.CertFile+config.KeyFile+config.BearerTokenFile != "" || config.BearerToken != s.token || config.Proxy != nil {
			t.Errorf("%s is taken, and is %+v", data, config)
		}
	})
}
