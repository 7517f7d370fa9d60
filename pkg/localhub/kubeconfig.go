// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localhub

import (
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig writes a kubeconfig for the front with the certificate of that name inside. It keeps the contexts of other
// clusters that a user has put in.
func (h *Hub) kubeconfig(file, name string) error {
	read := func(file string) []byte {
		data, _ := os.ReadFile(file) // client-go says so when it is missing
		return data
	}
	certs := h.certificates()
	const local = "clusterhub-local"
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		config = clientcmdapi.NewConfig()
	}
	config.Clusters[local] = &clientcmdapi.Cluster{Server: h.frontURL(), CertificateAuthorityData: read(certs.Cert(serverCA))}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: read(certs.Cert(name)), ClientKeyData: read(certs.Key(name))}
	config.Contexts[local] = &clientcmdapi.Context{Cluster: local, AuthInfo: name}
	config.CurrentContext = local
	return clientcmd.WriteToFile(*config, file)
}
