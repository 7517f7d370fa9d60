// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// adminClient is a member of system:masters.
const adminClient = "admin"

// clients returns the clients that have a kubeconfig: each hub-apiserver has its own, so that not all of them need the same front.
func (h *identity) clients() []string {
	names := []string{adminClient, procKCM, procHubController, procHubApprover, procHubAgent, procProvider, procNode}
	for _, i := range h.members(procHubAPIServer) {
		names = append(names, memberName(procHubAPIServer, i))
	}
	return names
}

// kubeconfigs writes the kubeconfigs of all clients that have a certificate.
func (h *identity) kubeconfigs() error {
	for _, name := range h.clients() {
		if kind, _ := memberOf(name); !h.has(kind) {
			continue
		}
		if err := h.kubeconfig(name); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfig writes the kubeconfig of a client with its embedded certificate, for a running front. It retains the contexts of other clusters that a
// user has added.
func (h *identity) kubeconfig(client string) error {
	read := func(file string) []byte {
		data, _ := os.ReadFile(file) // client-go reports a missing file
		return data
	}
	certs, file := h.certificates(), h.kubeconfigFile(client)
	name, i := memberOf(client)
	fronts := h.runningFronts()
	const local = "clusterhub-local"
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		config = clientcmdapi.NewConfig()
	}
	config.Clusters[local] = &clientcmdapi.Cluster{
		Server: h.frontURL(fronts[i%len(fronts)]), CertificateAuthorityData: read(certs.Cert(serverCA)),
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: read(certs.Cert(name)), ClientKeyData: read(certs.Key(name))}
	config.Contexts[local] = &clientcmdapi.Context{Cluster: local, AuthInfo: name}
	config.CurrentContext = local
	return clientcmd.WriteToFile(*config, file)
}
