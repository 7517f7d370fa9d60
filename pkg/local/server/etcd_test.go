// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"slices"
	"strings"
	"testing"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

func TestEtcd_Args(t *testing.T) {
	etcd := localserver.Etcd{
		Members:      []localserver.EtcdMember{{Port: 1, PeerPort: 2, DataDir: "/a"}, {Port: 3, PeerPort: 4, DataDir: "/b"}, {Port: 5, PeerPort: 6, DataDir: "/c"}},
		Certificates: localserver.Certificates{Dir: "/pki"}, ServerCA: "ca", ClientCA: "client-ca", PeerCA: "peer-ca",
		Server: "etcd", Client: "client", Peer: "peer",
	}
	has := func(args []string, want ...string) {
		t.Helper()
		for _, flag := range want {
			if !slices.Contains(args, flag) {
				t.Errorf("there is no %s: %q", flag, args)
			}
		}
	}
	const all = "--initial-cluster=local=https://127.0.0.1:2,local-1=https://127.0.0.1:4,local-2=https://127.0.0.1:6"
	has(etcd.Args(0), "--name=local", "--data-dir=/a", all)
	has(etcd.Args(2), "--name=local-2", "--data-dir=/c", "--listen-client-urls=https://127.0.0.1:5", "--advertise-client-urls=https://127.0.0.1:5",
		"--listen-peer-urls=https://127.0.0.1:6", "--initial-advertise-peer-urls=https://127.0.0.1:6", all)
	has(etcd.ClientFlags(), "--etcd-servers=https://127.0.0.1:1,https://127.0.0.1:3,https://127.0.0.1:5")
	has(etcd.Through(1).ClientFlags(), "--etcd-servers=https://127.0.0.1:3")
	if len(etcd.Members) != 3 {
		t.Errorf("the etcd has become one of %d members", len(etcd.Members))
	}

	// One member has the same flags as before other topologies existed: running ones must not be restarted.
	etcd.Members, etcd.UnsafeNoFsync = etcd.Members[:1], true
	want := "--name=local --data-dir=/a --log-level=warn --listen-client-urls=https://127.0.0.1:1 --advertise-client-urls=https://127.0.0.1:1 " +
		"--listen-peer-urls=https://127.0.0.1:2 --initial-advertise-peer-urls=https://127.0.0.1:2 --initial-cluster=local=https://127.0.0.1:2 " +
		"--client-cert-auth --trusted-ca-file=/pki/client-ca.crt --cert-file=/pki/etcd.crt --key-file=/pki/etcd.key " +
		"--peer-client-cert-auth --peer-trusted-ca-file=/pki/peer-ca.crt --peer-cert-file=/pki/peer.crt --peer-key-file=/pki/peer.key " +
		"--enable-grpc-gateway=false --quota-backend-bytes=8589934592 --unsafe-no-fsync"
	if got := strings.Join(etcd.Args(0), " "); got != want {
		t.Errorf("the flags are\n%s, want\n%s", got, want)
	}
}
