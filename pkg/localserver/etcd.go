// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localserver

import (
	"crypto/x509/pkix"
	"errors"
)

// Etcd is an etcd of one member. It has a CA for each trust: whoever trusts a CA lets in all that it signs.
type Etcd struct {
	Port, PeerPort int
	DataDir        string
	// Certificates has those that are named below.
	Certificates Certificates
	// ServerCA signs Server, the certificate of the etcd; ClientCA signs Client, that of its clients; PeerCA signs Peer, with which
	// members speak to each other.
	ServerCA, ClientCA, PeerCA string
	Server, Client, Peer       string
	// UnsafeNoFsync spares the disk: a crash of the machine loses data.
	UnsafeNoFsync bool
}

// Identify makes the certificates that are missing. The authorities are those of the three CAs, by name.
func (e Etcd) Identify(authorities map[string]*Authority) error {
	return errors.Join(
		authorities[e.ServerCA].Server(e.Server, "etcd"),
		authorities[e.ClientCA].Client(e.Client, pkix.Name{CommonName: e.Client}),
		authorities[e.PeerCA].Peer(e.Peer, "etcd"),
	)
}

// URL is where clients reach it.
func (e Etcd) URL() string { return "https://" + Address(e.Port) }

// Args are the flags of etcd.
func (e Etcd) Args() []string {
	certs, peer := e.Certificates, "https://"+Address(e.PeerPort)
	args := []string{
		"--name=local", "--data-dir=" + e.DataDir, "--log-level=warn",
		"--listen-client-urls=" + e.URL(), "--advertise-client-urls=" + e.URL(),
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=local=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + certs.Cert(e.ClientCA),
		"--cert-file=" + certs.Cert(e.Server), "--key-file=" + certs.Key(e.Server),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + certs.Cert(e.PeerCA),
		"--peer-cert-file=" + certs.Cert(e.Peer), "--peer-key-file=" + certs.Key(e.Peer),
		"--enable-grpc-gateway=false", // etcd would be its own client there, with the certificate of a server
		"--quota-backend-bytes=8589934592",
	}
	if e.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

// ClientFlags are the flags by which API servers reach it.
func (e Etcd) ClientFlags() []string {
	certs := e.Certificates
	return []string{
		"--etcd-servers=" + e.URL(), "--etcd-cafile=" + certs.Cert(e.ServerCA),
		"--etcd-certfile=" + certs.Cert(e.Client), "--etcd-keyfile=" + certs.Key(e.Client),
	}
}
