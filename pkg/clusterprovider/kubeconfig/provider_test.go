// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

func TestParse_RejectsFilesAndPrograms(t *testing.T) {
	for want, change := range map[string]func(*api.Config){
		"uses an exec plugin": func(c *api.Config) {
			c.AuthInfos["u"].Exec = &api.ExecConfig{
				Command: "touch", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never",
			}
		},
		`the user "u" refers to files`:                         func(c *api.Config) { c.AuthInfos["u"].TokenFile = "/etc/passwd" },
		`the cluster "c" cannot be verified: use an https URL`: func(c *api.Config) { c.Clusters["c"].InsecureSkipTLSVerify = true },
		`the cluster "c" cannot be verified`:                   func(c *api.Config) { c.Clusters["c"].Server = "http://localhost" },
		`the cluster "c" refers to a file`:                     func(c *api.Config) { c.Clusters["c"].CertificateAuthority = "/etc/passwd" },
	} {
		config := api.NewConfig()
		config.Clusters["c"] = &api.Cluster{Server: "https://localhost"}
		config.AuthInfos["u"] = &api.AuthInfo{Token: "secret-token"}
		config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
		config.CurrentContext = "x"
		good, err := clientcmd.Write(*config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(good); err != nil {
			t.Errorf("self-contained: %v", err)
		}
		change(config)
		bad, err := clientcmd.Write(*config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(bad); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-token") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
