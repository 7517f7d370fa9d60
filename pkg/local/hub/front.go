// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"k8s.io/client-go/kubernetes"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

const systemNamespace = "clusterhub-system"

// runDir is the folder with the locks and ids of the processes, in the directory of every hub.
const runDir = "run"

// LockFile is in the directory of every hub: its holder may start and stop the hub's processes.
const LockFile = "lock"

// open creates the directories, takes the lock and finds the running processes.
func open(config Options) (*Instance, error) {
	if config.Log == nil {
		config.Log = func(string, ...any) {}
	}
	for _, dir := range []*string{&config.Dir, &config.BinDir, &config.ImagesDir} {
		if dir == &config.ImagesDir && *dir == "" {
			continue
		}
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return nil, err
		}
		*dir = absolute
	}
	for _, dir := range []string{"", "logs", runDir, "pki"} {
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
	h := &Instance{identity: &identity{&launcher{config: config, started: map[string]bool{}}}, lock: lock}
	h.ports, err = readPorts(h.config.portsFile())
	if err == nil {
		err = h.refuseFormer()
	}
	if err != nil {
		h.unlock()
		return nil, err
	}
	return h, nil
}

func (h *Instance) unlock() {
	if h.lock != nil {
		_ = h.lock.Close()
		h.lock = nil
	}
}

// StartEtcd starts a member of each etcd and waits until they serve, which needs most of the others.
func (h *Instance) StartEtcd(ctx context.Context, member int) error { return h.startEtcds(ctx, member) }

// KillEtcd kills a member of each etcd with SIGKILL. If the others are a majority, it waits until they serve: they need some time to detect the loss
// of a leader before they elect another one, and writes fail until then.
func (h *Instance) KillEtcd(ctx context.Context, member int) error {
	for _, name := range h.etcds() {
		h.kill(memberName(name, member))
	}
	all := h.members(procEtcd)
	left := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return !h.running(memberName(procEtcd, i)) })
	if len(left) <= len(all)/2 {
		return nil
	}
	return h.awaitEtcds(ctx, left...)
}

// startEtcds starts members of each etcd. It starts all before it waits for one: a member of a new etcd serves only when most of the others run.
func (h *Instance) startEtcds(ctx context.Context, members ...int) error {
	for _, name := range h.etcds() {
		for _, i := range members { // the number of members is derived from the directories, so all of them are created first
			if err := os.MkdirAll(h.path(memberName(name, i)), 0o700); err != nil {
				return err
			}
		}
	}
	for _, name := range h.etcds() {
		for _, i := range members {
			if err := h.launch(memberName(name, i), "etcd", h.etcd(name).Args(i), nil); err != nil {
				return err
			}
		}
	}
	return h.awaitEtcds(ctx, members...)
}

// awaitEtcds waits until members of each etcd serve.
func (h *Instance) awaitEtcds(ctx context.Context, members ...int) error {
	for _, name := range h.etcds() {
		for _, i := range members {
			etcd := h.etcd(name).Through(i)
			serves := func(ctx context.Context) bool { return dials(ctx, etcd.Members[0].Port) && etcd.Alive(ctx) == nil }
			if err := h.await(ctx, memberName(name, i), serves); err != nil {
				return err
			}
		}
	}
	return nil
}

// identify creates all certificates and keys of the processes.
func (h *Instance) identify() error {
	if err := h.migrateOneCA(); err != nil {
		return err
	}
	return h.create()
}

// migrateOneCA migrates a hub with a single CA. The running processes trust it, and must exit before.
func (h *Instance) migrateOneCA() error {
	if !h.has(serverCA) || h.has(csrSigner) {
		return nil
	}
	if len(h.PIDs()) > 0 {
		h.config.Log("Stopping all processes, to create a CA for each purpose")
		h.stopProcesses(all)
	}
	former, err := os.ReadFile(h.certificates().Cert(serverCA))
	if err != nil {
		return err
	}
	return localserver.WriteFile(h.certificates().Cert(formerClientCA), former)
}

// startFronts starts etcd and all kube-apiservers.
func (h *Instance) startFronts(ctx context.Context) error {
	if err := h.identify(); err != nil {
		return err
	}
	if err := h.startEtcds(ctx, h.members(procEtcd)...); err != nil {
		return err
	}
	for _, i := range h.members(procFront) {
		if err := h.StartFront(ctx, i); err != nil {
			return err
		}
	}
	if h.config.EKS == nil {
		return nil
	}
	// The health server is not started where the port is in use: nothing of a hub listens on other addresses than loopback.
	if taken, err := net.Listen("tcp", authenticatorHealth); err == nil {
		h.taken = taken
	}
	return authenticator{h.identity}.start(ctx)
}

// eventLimits limits the rate of Events of each namespace, which kube-apiserver stores for an hour: an agent may write them in the namespace of its
// cluster, and 19,000 of the size that the policy agents-sizes.clusterhub.dev allows are 100 MB. No quota counts Events.
const eventLimits = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - {type: Namespace, qps: 5, burst: 1000, cacheSize: 20000}
`

// limitEvents returns the flags of a kube-apiserver that limits Events.
func (h *Instance) limitEvents() ([]string, error) {
	file := h.path("admission.yaml")
	if err := os.WriteFile(file, []byte(eventLimits), 0o600); err != nil {
		return nil, err
	}
	return []string{"--enable-admission-plugins=EventRateLimit", "--admission-control-config-file=" + file}, nil
}

// StartFront starts a kube-apiserver and waits until it is ready.
func (h *Instance) StartFront(ctx context.Context, replica int) error {
	name := memberName(procFront, replica)
	server := localserver.KubeAPIServer{
		Port: h.ports[name], Certificates: h.certificates(), Server: procFront, ClientCA: clientBundle,
		Issuer: cmp.Or(h.config.Issuer, localserver.DefaultIssuer), Etcd: h.etcd(procEtcd),
	}
	args := append(server.Args(),
		// The front passes the user to aggregated API servers in these headers, and authenticates with this certificate.
		"--requestheader-client-ca-file="+h.pki("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+h.pki("front-proxy.crt"), "--proxy-client-key-file="+h.pki("front-proxy.key"))
	limits, err := h.limitEvents()
	if err != nil {
		return err
	}
	args = append(args, limits...)
	if h.config.EKS != nil {
		flag, err := authenticator{h.identity}.initialize(ctx)
		if err != nil {
			return err
		}
		args = append(args, flag...)
	}
	err = h.run(ctx, name, procFront, append(args, h.config.FrontArgs...), nil, func(ctx context.Context) bool {
		client, err := kubernetes.NewForConfig(h.FrontConfig(replica))
		if err != nil {
			return false
		}
		_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil
	})
	if err != nil {
		return err
	}
	return h.kubeconfigs()
}

// KillFront kills a kube-apiserver with SIGKILL. From then on the kubeconfigs name another one; a process that has read one before must be restarted
// to use it.
func (h *Instance) KillFront(replica int) {
	h.kill(memberName(procFront, replica))
	if err := h.kubeconfigs(); err != nil {
		h.config.Log("%v", err)
	}
}

// Authenticator returns a handler of TokenReviews that uses the authenticator of this hub, with aws-auth.
func (h *Instance) Authenticator() (http.Handler, error) { return authenticator{h.identity}.handler() }
