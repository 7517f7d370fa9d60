// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// NamedIn is whether a text stands in a kubeconfig where errors may quote it, as a name, the path of a file or an address: then it is
// no secret. Tokens, passwords, keys and the URLs of proxies are none of these.
func NamedIn(kubeconfig []byte, text string) bool {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return false
	}
	for _, user := range config.AuthInfos {
		user.Token, user.Password, user.ClientKeyData = "", "", nil
	}
	for _, cluster := range config.Clusters {
		cluster.ProxyURL = ""
	}
	rest, err := clientcmd.Write(*config)
	return err == nil && strings.Contains(string(rest), text)
}
