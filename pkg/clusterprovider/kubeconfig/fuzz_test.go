// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/test/leak"
)

// FuzzParse: an accepted kubeconfig reads no file, starts no program, and verifies its server.
func FuzzParse(f *testing.F) {
	kubeconfig := func(cluster, user string) []byte {
		return []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], " +
			"clusters: [{name: c, cluster: " + cluster + "}], users: [{name: u, user: " + user + "}]}")
	}
	const token = "hunter2-hunter2-hunter2"
	for _, seed := range [][]byte{
		kubeconfig("{server: https://x}", "{token: "+token+"}"),
		kubeconfig("{server: http://x}", "{token: "+token+"}"),
		kubeconfig("{server: x}", "{token: "+token+"}"),
		kubeconfig("{server: 'https://', tls-server-name: y}", "{token: "+token+"}"),
		kubeconfig("{server: https://x, insecure-skip-tls-verify: true}", "{token: "+token+"}"),
		kubeconfig("{server: https://x, certificate-authority: /ca.crt}", "{tokenFile: /token}"),
		kubeconfig("{server: https://x, proxy-url: http://y}", "{token: "+token+", as: admin}"),
		kubeconfig("{server: https://x}", "{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}"),
		kubeconfig("{server: https://x, proxy-url: 'http://a:"+token+"@y:z'}", "{token: a}"),
		kubeconfig("{server: https://x, proxy-url: 'ftp://a:"+token+"@y'}", "{token: a}"),
		bytes.ReplaceAll(kubeconfig("{server: https://x}", "{token: a}"), []byte("context: c,"), []byte("context: "+token+",")),
		[]byte("users: [{user: {token: " + token), nil,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := parse(data)
		if err != nil {
			if strings.Contains(err.Error(), token) && !leak.NamedIn(data, token) {
				t.Errorf("%q has the token", err)
			}
			return
		}
		if !strings.HasPrefix(config.Host, "https://") || config.Insecure || config.ExecProvider != nil || config.AuthProvider != nil ||
			config.CAFile+config.CertFile+config.KeyFile+config.BearerTokenFile != "" {
			t.Errorf("%s is taken, and is %+v", data, config)
		}
	})
}
