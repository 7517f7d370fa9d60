// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localhub

import (
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"os"

	"github.com/clusterhub/clusterhub/pkg/localserver"
)

// The CAs of a hub. Each is for one trust: whoever has a certificate of one is let in where that one is trusted, and nowhere
// else.
const (
	// serverCA signs the certificates of all servers. Clients verify servers with it, and no server lets anybody in for it.
	serverCA = "ca"
	// clientCA signs what the hub's own clients say who they are with.
	clientCA = "client-ca"
	// csrSigner is what kube-controller-manager signs CertificateSigningRequests with: those of agents, above all.
	csrSigner = "csr-signer"
	// frontProxyCA signs the certificate that lets the front say who asks.
	frontProxyCA = "front-proxy-ca"
	// formerClientCA is there where a hub was made when one CA was everything: the certificates that agents got then stay good.
	// Its key is that of serverCA, which no process has any more.
	formerClientCA = "former-client-ca"
	// clientBundle is whom the front knows by certificate.
	clientBundle = "clients"
)

// etcdClientCA and etcdPeerCA are those of one etcd: who may use one may not use another.
func etcdClientCA(etcd string) string { return etcd + "-client-ca" }
func etcdPeerCA(etcd string) string   { return etcd + "-peer-ca" }

func (h *Hub) pki(name string) string { return h.path("pki", name) }

func (h *Hub) certificates() localserver.Certificates {
	return localserver.Certificates{Dir: h.path("pki")}
}

// authority makes a CA of the hub, or returns the one that is there.
func (h *Hub) authority(name string) (*localserver.Authority, error) {
	return h.certificates().Authority(name, "clusterhub-local-"+name)
}

// identify makes all that the processes prove who they are with.
func (h *Hub) identify() error {
	if err := h.leaveOneCA(); err != nil {
		return err
	}
	authorities := map[string]*localserver.Authority{}
	names := []string{serverCA, clientCA, csrSigner, frontProxyCA}
	for _, etcd := range h.etcds() {
		names = append(names, etcdClientCA(etcd), etcdPeerCA(etcd))
	}
	for _, name := range names {
		authority, err := h.authority(name)
		if err != nil {
			return err
		}
		authorities[name] = authority
	}
	if err := h.certificates().SigningKey(localserver.ServiceAccountKey); err != nil {
		return err
	}
	err := authorities[serverCA].Server(procFront, procFront, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	if err := authorities[frontProxyCA].Client("front-proxy", pkix.Name{CommonName: "front-proxy"}); err != nil {
		return err
	}
	for _, etcd := range h.etcds() {
		if err := h.etcd(etcd).Identify(authorities); err != nil {
			return err
		}
	}
	for name, subject := range map[string]pkix.Name{
		adminClient:       {CommonName: "admin", Organization: []string{"system:masters"}},
		procKCM:           {CommonName: "system:kube-controller-manager"},
		procHubAPIServer:  serviceAccount(systemNamespace, procHubAPIServer),
		procHubController: serviceAccount(systemNamespace, procHubController),
		procHubApprover:   serviceAccount(systemNamespace, procHubApprover),
	} {
		if err := authorities[clientCA].Client(name, subject); err != nil {
			return err
		}
	}
	if err := h.kubeconfigs(); err != nil {
		return err
	}
	clients := []string{clientCA, csrSigner}
	if h.has(formerClientCA) {
		clients = append(clients, formerClientCA)
	}
	return h.certificates().Bundle(clientBundle, clients...)
}

// leaveOneCA brings a hub over in which one CA was everything. What runs trusts it, and has to end before.
func (h *Hub) leaveOneCA() error {
	if !h.has(serverCA) || h.has(csrSigner) {
		return nil
	}
	if len(h.PIDs()) > 0 {
		h.config.Log("Stopping what runs, to give the hub a CA for each trust")
		h.stopProcesses(all)
	}
	former, err := os.ReadFile(h.certificates().Cert(serverCA))
	if err != nil {
		return err
	}
	return localserver.WriteFile(h.certificates().Cert(formerClientCA), former)
}

// has says whether there is a certificate of that name.
func (h *Hub) has(name string) bool {
	return exists(h.certificates().Cert(name))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

func serviceAccount(namespace, name string) pkix.Name {
	return pkix.Name{
		CommonName:   "system:serviceaccount:" + namespace + ":" + name,
		Organization: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// actAs makes the kubeconfig of a process that is a ServiceAccount.
func (h *Hub) actAs(process, namespace, name string) (kubeconfig string, err error) {
	return h.actAsUser(process, serviceAccount(namespace, name))
}

// actAsUser makes the kubeconfig of a process that is a user.
func (h *Hub) actAsUser(process string, user pkix.Name) (kubeconfig string, err error) {
	ca, err := h.authority(clientCA)
	if err != nil {
		return "", err
	}
	if err := ca.Client(process, user); err != nil {
		return "", err
	}
	return h.kubeconfigFile(process), h.kubeconfig(process)
}
