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
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/localserver"
)

// startTimeout bounds how long one process may take until it serves.
const startTimeout = 90 * time.Second

const systemNamespace = "clusterhub-system"

const defaultIssuer = "https://kubernetes.default.svc"

// LockFile is in the directory of every hub: whoever holds it may start and stop its processes.
const LockFile = "lock"

// open makes the directories, takes the lock and finds the processes that run.
func open(config Config) (*Hub, error) {
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
	h := &Hub{config: config, procs: map[string]*process{}, lock: lock}
	if h.ports, err = readPorts(h.path("ports.json")); err != nil {
		h.unlock()
		return nil, err
	}
	files, err := filepath.Glob(h.path("run", "*.pid"))
	if err != nil {
		h.unlock()
		return nil, err
	}
	for _, file := range files {
		name := filepath.Base(file[:len(file)-len(".pid")])
		if p := findProcess(config.Dir, name); p != nil {
			h.procs[name] = p
		}
	}
	return h, nil
}

func (h *Hub) unlock() {
	if h.lock != nil {
		_ = h.lock.Close()
		h.lock = nil
	}
}

// run starts a process unless it runs, and waits until it is ready. One of our servers that runs with another binary or
// other flags is restarted.
func (h *Hub) run(ctx context.Context, name, bin string, args, env []string, ready func(context.Context) bool) error {
	if h.running(name) {
		runs, err := fingerprint(h.bin(bin), args, env)
		switch {
		case err != nil:
			return err
		case runs == h.procs[name].Runs:
		case bin == procHubAPIServer || bin == procHubController || bin == procHubAgent || bin == procProvider:
			h.config.Log("Restarting %s, whose binary or flags have changed", name)
			h.procs[name].stop()
		default: // it would end slowly under its clients, and hub-controller-manager lose its lease
			h.config.Log("Leaving the old %s running, which `make down up` replaces", name)
		}
	}
	if !h.running(name) {
		p, err := startProcess(name, h.config.Dir, h.bin(bin), args, env, h.config.Detach)
		if err != nil {
			return err
		}
		h.procs[name] = p
	}
	p := h.procs[name]
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := p.ended(); err != nil {
			return false, err
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return ready(ctx), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("%s is not ready after %s: %s; its log is %s", name, startTimeout, localserver.Complaint(p.log), p.log)
	}
	return err
}

func (h *Hub) frontURL() string { return fmt.Sprintf("https://127.0.0.1:%d", h.ports[procFront]) }

// etcds are the processes of this hub that are an etcd.
func (h *Hub) etcds() []string {
	if h.config.ExternalEtcd {
		return []string{procEtcd, procHubEtcd}
	}
	return []string{procEtcd}
}

// etcdArgs are those of an etcd that proves itself to its clients and asks them to do the same.
func (h *Hub) etcdArgs(name string) []string {
	client, peer := fmt.Sprintf("https://127.0.0.1:%d", h.ports[name]), fmt.Sprintf("https://127.0.0.1:%d", h.ports[name+peerPort])
	certs := h.certificates()
	args := []string{
		"--name=local", "--data-dir=" + h.path(name), "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=local=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + certs.Cert(etcdClientCA(name)),
		"--cert-file=" + certs.Cert(name), "--key-file=" + certs.Key(name),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + certs.Cert(etcdPeerCA(name)),
		"--peer-cert-file=" + certs.Cert(name+"-peer"), "--peer-key-file=" + certs.Key(name+"-peer"),
		"--enable-grpc-gateway=false", // etcd would be its own client there, with the certificate of a server
		"--quota-backend-bytes=8589934592",
	}
	if h.config.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (h *Hub) etcdFlags(name string) []string {
	certs := h.certificates()
	return []string{
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", h.ports[name]), "--etcd-cafile=" + certs.Cert(serverCA),
		"--etcd-certfile=" + certs.Cert(name+"-client"), "--etcd-keyfile=" + certs.Key(name+"-client"),
	}
}

func (h *Hub) startFront(ctx context.Context) error {
	if err := h.identify(); err != nil {
		return err
	}
	for _, name := range h.etcds() {
		listens := func(ctx context.Context) bool { return dials(ctx, h.ports[name]) }
		if err := h.run(ctx, name, "etcd", h.etcdArgs(name), nil, listens); err != nil {
			return err
		}
	}
	args := append([]string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", h.ports[procFront]),
		"--tls-cert-file=" + h.pki("kube-apiserver.crt"), "--tls-private-key-file=" + h.pki("kube-apiserver.key"),
		"--client-ca-file=" + h.certificates().Cert(clientBundle),
		"--service-account-issuer=" + cmp.Or(h.config.Issuer, defaultIssuer),
		"--service-account-key-file=" + h.pki("service-accounts.key"),
		"--service-account-signing-key-file=" + h.pki("service-accounts.key"),
		"--authorization-mode=RBAC",
		// The front tells aggregated API servers who asks in these headers, and proves itself with this certificate.
		"--requestheader-client-ca-file=" + h.pki("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + h.pki("front-proxy.crt"), "--proxy-client-key-file=" + h.pki("front-proxy.key"),
		// There are no nodes and no network of services.
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
	}, h.etcdFlags(procEtcd)...)
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
