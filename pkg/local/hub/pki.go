// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"os"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// The CAs of a hub. Each is for one purpose: a certificate of one is trusted where that one is trusted, and nowhere else.
const (
	// serverCA signs the certificates of all servers. Clients verify servers with it, and no server authenticates clients with it.
	serverCA = "ca"
	// clientCA signs the certificates of the hub's own clients.
	clientCA = "client-ca"
	// csrSigner is the CA with which kube-controller-manager signs CertificateSigningRequests, mostly those of agents.
	csrSigner = "csr-signer"
	// frontProxyCA signs the certificate with which the front may assert users.
	frontProxyCA = "front-proxy-ca"
	// formerClientCA exists if a hub was created with a single CA: the certificates that agents got then stay valid. It has the key of serverCA,
	// which no process has.
	formerClientCA = "former-client-ca"
	// clientBundle has the CAs of the clients that the front authenticates.
	clientBundle = "clients"
)

// etcdClientCA and etcdPeerCA are those of one etcd: clients of one may not use another.
func etcdClientCA(etcd string) string { return etcd + "-client-ca" }
func etcdPeerCA(etcd string) string   { return etcd + "-peer-ca" }

// identity has the certificates and kubeconfigs of a hub's processes.
type identity struct{ *launcher }

func (h *identity) pki(name string) string { return h.path("pki", name) }

func (h *identity) certificates() localserver.Certificates {
	return localserver.Certificates{Dir: h.path("pki")}
}

// authority creates a CA of the hub, or returns the existing one.
func (h *identity) authority(name string) (*localserver.Authority, error) {
	return h.certificates().Authority(name, "clusterhub-local-"+name)
}

// create creates all certificates, keys and kubeconfigs of the processes.
func (h *identity) create() error {
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

// has reports whether a certificate of that name exists.
func (h *identity) has(name string) bool {
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

// etcds returns the etcds of this hub, by the name of their first process.
func (h *identity) etcds() []string {
	if h.config.ExternalEtcd {
		return []string{procEtcd, procHubEtcd}
	}
	return []string{procEtcd}
}

// etcd returns one of the hub's etcds, by the name of its first process.
func (h *identity) etcd(name string) localserver.Etcd {
	etcd := localserver.Etcd{
		Certificates: h.certificates(), ServerCA: serverCA, ClientCA: etcdClientCA(name), PeerCA: etcdPeerCA(name),
		Server: name, Client: name + "-client", Peer: name + "-peer", UnsafeNoFsync: h.config.UnsafeNoFsync,
	}
	for _, i := range h.members(name) {
		member := memberName(name, i)
		etcd.Members = append(etcd.Members, localserver.EtcdMember{
			Port: h.ports[member], PeerPort: h.ports[member+peerPort], DataDir: h.path(member),
		})
	}
	return etcd
}

// actAs creates the kubeconfig of a process with the identity of a ServiceAccount.
func (h *identity) actAs(process, namespace, name string) (kubeconfig string, err error) {
	return h.actAsUser(process, serviceAccount(namespace, name))
}

// actAsUser creates the kubeconfig of a process with the identity of a user.
func (h *identity) actAsUser(process string, user pkix.Name) (kubeconfig string, err error) {
	ca, err := h.authority(clientCA)
	if err != nil {
		return "", err
	}
	if err := ca.Client(process, user); err != nil {
		return "", err
	}
	return h.kubeconfigFile(process), h.kubeconfig(process)
}
