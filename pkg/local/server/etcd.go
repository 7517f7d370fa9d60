// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdDialTimeout is the timeout of a client's connection.
const etcdDialTimeout = 30 * time.Second

// Etcd is an etcd of one or several members, which share its certificates. It has a CA for each purpose, since everything that a trusted CA signs is
// accepted.
type Etcd struct {
	Members []EtcdMember
	// Certificates has the certificates that are named below.
	Certificates Certificates
	// ServerCA signs Server, the certificate of the etcd; ClientCA signs Client, that of its clients; PeerCA signs Peer, which members use among each
	// other.
	ServerCA, ClientCA, PeerCA string
	Server, Client, Peer       string
	// UnsafeNoFsync disables fsync: a crash of the machine loses data.
	UnsafeNoFsync bool
}

// EtcdMember is one process of an etcd.
type EtcdMember struct {
	Port, PeerPort int
	DataDir        string
}

// URL returns the URL for clients.
func (m EtcdMember) URL() string { return "https://" + Address(m.Port) }

func (m EtcdMember) peerURL() string { return "https://" + Address(m.PeerPort) }

// Identify creates missing certificates. The authorities are those of the three CAs, by name.
func (e Etcd) Identify(authorities map[string]*Authority) error {
	return errors.Join(
		authorities[e.ServerCA].Server(e.Server, "etcd"),
		authorities[e.ClientCA].Client(e.Client, pkix.Name{CommonName: e.Client}),
		authorities[e.PeerCA].Peer(e.Peer, "etcd"),
	)
}

// URLs returns the URLs of its members for clients.
func (e Etcd) URLs() (urls []string) {
	for _, member := range e.Members {
		urls = append(urls, member.URL())
	}
	return urls
}

// etcdMemberName returns the name of a member.
func etcdMemberName(i int) string {
	if i == 0 {
		return "local"
	}
	return fmt.Sprintf("local-%d", i)
}

// Args returns the flags of one of its members. A member serves once most of them run, so all must be started together at first.
func (e Etcd) Args(member int) []string {
	var all []string
	for i, m := range e.Members {
		all = append(all, etcdMemberName(i)+"="+m.peerURL())
	}
	m, certs := e.Members[member], e.Certificates
	args := []string{
		"--name=" + etcdMemberName(member), "--data-dir=" + m.DataDir, "--log-level=warn",
		"--listen-client-urls=" + m.URL(), "--advertise-client-urls=" + m.URL(),
		"--listen-peer-urls=" + m.peerURL(), "--initial-advertise-peer-urls=" + m.peerURL(), "--initial-cluster=" + strings.Join(all, ","),
		"--client-cert-auth", "--trusted-ca-file=" + certs.Cert(e.ClientCA),
		"--cert-file=" + certs.Cert(e.Server), "--key-file=" + certs.Key(e.Server),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + certs.Cert(e.PeerCA),
		"--peer-cert-file=" + certs.Cert(e.Peer), "--peer-key-file=" + certs.Key(e.Peer),
		"--enable-grpc-gateway=false", // etcd would be its own client there, with a server's certificate
		"--quota-backend-bytes=8589934592",
	}
	if e.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

// ClientFlags returns the flags with which API servers reach it.
func (e Etcd) ClientFlags() []string {
	certs := e.Certificates
	return []string{
		"--etcd-servers=" + strings.Join(e.URLs(), ","), "--etcd-cafile=" + certs.Cert(e.ServerCA),
		"--etcd-certfile=" + certs.Cert(e.Client), "--etcd-keyfile=" + certs.Key(e.Client),
	}
}

// Through returns the etcd with only one of its members, as some clients use it.
func (e Etcd) Through(member int) Etcd {
	e.Members = e.Members[member : member+1]
	return e
}

// Connect returns a client.
func (e Etcd) Connect() (*clientv3.Client, error) {
	certs := e.Certificates
	tls, err := transport.TLSInfo{
		TrustedCAFile: certs.Cert(e.ServerCA), CertFile: certs.Cert(e.Client), KeyFile: certs.Key(e.Client),
	}.ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: e.URLs(), TLS: tls, DialTimeout: etcdDialTimeout, Logger: zap.NewNop()})
}

// Alive reads a key, as etcdctl endpoint health does. That needs most of the members.
func (e Etcd) Alive(ctx context.Context) error {
	client, err := e.Connect()
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Get(ctx, "health")
	return err
}
