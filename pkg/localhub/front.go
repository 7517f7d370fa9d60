// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localhub

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/localserver"
)

const systemNamespace = "clusterhub-system"

// LockFile is in the directory of every hub: whoever holds it may start and stop its processes.
const LockFile = "lock"

// open makes the directories, takes the lock and finds the processes that run.
func open(config Config) (*Hub, error) {
	if config.Log == nil {
		config.Log = func(string, ...any) {}
	}
	for _, dir := range []*string{&config.Dir, &config.BinDir, &config.Root} {
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return nil, err
		}
		*dir = absolute
	}
	for _, dir := range []string{"", "logs", "run", "pki"} {
		if err := os.MkdirAll(filepath.Join(config.Dir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	lock, err := os.OpenFile(filepath.Join(config.Dir, LockFile), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("the hub in %s is being started or stopped by another command: wait for it", config.Dir)
	}
	h := &Hub{config: config, started: map[string]bool{}, lock: lock}
	if h.ports, err = readPorts(h.path("ports.json")); err == nil {
		err = h.refuseFormer()
	}
	if err != nil {
		h.unlock()
		return nil, err
	}
	return h, nil
}

func (h *Hub) unlock() {
	if h.lock != nil {
		_ = h.lock.Close()
		h.lock = nil
	}
}

func (h *Hub) frontURL() string { return "https://" + localserver.Address(h.ports[procFront]) }

// etcds are the processes of this hub that are an etcd.
func (h *Hub) etcds() []string {
	if h.config.ExternalEtcd {
		return []string{procEtcd, procHubEtcd}
	}
	return []string{procEtcd}
}

// etcd is one of the hub's, by the name of its process.
func (h *Hub) etcd(name string) localserver.Etcd {
	return localserver.Etcd{
		Port: h.ports[name], PeerPort: h.ports[name+peerPort], DataDir: h.path(name), Certificates: h.certificates(),
		ServerCA: serverCA, ClientCA: etcdClientCA(name), PeerCA: etcdPeerCA(name), Server: name, Client: name + "-client", Peer: name + "-peer",
		UnsafeNoFsync: h.config.UnsafeNoFsync,
	}
}

func (h *Hub) startFront(ctx context.Context) error {
	if err := h.identify(); err != nil {
		return err
	}
	for _, name := range h.etcds() {
		listens := func(ctx context.Context) bool { return dials(ctx, h.ports[name]) }
		if err := h.run(ctx, name, "etcd", h.etcd(name).Args(), nil, listens); err != nil {
			return err
		}
	}
	server := localserver.KubeAPIServer{
		Port: h.ports[procFront], Certificates: h.certificates(), Server: procFront, ClientCA: clientBundle,
		Issuer: cmp.Or(h.config.Issuer, localserver.DefaultIssuer), Etcd: h.etcd(procEtcd),
	}
	args := append(server.Args(),
		// The front tells aggregated API servers who asks in these headers, and proves itself with this certificate.
		"--requestheader-client-ca-file="+h.pki("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+h.pki("front-proxy.crt"), "--proxy-client-key-file="+h.pki("front-proxy.key"))
	if h.config.EKS != nil {
		flag, err := h.initAuthenticator(ctx)
		if err != nil {
			return err
		}
		args = append(args, flag...)
	}
	err := h.run(ctx, procFront, "kube-apiserver", append(args, h.config.FrontArgs...), nil, func(ctx context.Context) bool {
		client, err := kubernetes.NewForConfig(h.AdminConfig())
		if err != nil {
			return false
		}
		_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil
	})
	if err != nil || h.config.EKS == nil {
		return err
	}
	return h.startAuthenticator(ctx)
}
