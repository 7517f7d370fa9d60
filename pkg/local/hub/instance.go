// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub runs a hub as processes on this machine, for development and tests: etcd, kube-apiserver and kube-controller-manager as built from
// hack/bin/kube, and our own servers. All of them listen on loopback only, on free ports, and write nothing outside of the hub's directory.
package hub

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// Options specifies the processes of the hub, and their files.
type Options struct {
	// Dir is the hub's directory: its data, certificates, kubeconfigs and logs.
	Dir string
	// BinDir has the binaries.
	BinDir string
	// ImagesDir has the files of images, DIR/NAME, as `make roots` unpacks them. Our servers and agents are then started in these, as the containers
	// that they are elsewhere. If empty, those of BinDir are started. Linux only.
	ImagesDir string
	// Detach lets the processes outlive this one, in whose session they are. Supervise restarts those that exit. Without it they die with this
	// process.
	Detach bool

	// Plain omits everything that is ours: the result is a Kubernetes cluster without nodes, to be managed by a hub, or to manage others.
	Plain bool
	// FrontReplicas is the number of kube-apiservers, Replicas that of hub-apiservers, EtcdMembers that of the members of each etcd, 1 or 3. 0 means
	// the number in the directory, or 1 for a new one. The number of API servers can change with a start; that of etcd members cannot.
	FrontReplicas, Replicas, EtcdMembers int
	// Clusters is the number of plain clusters beside the hub, which start and stop with it; see Hub.Clusters. 0 means the number in the directory.
	// It cannot be reduced.
	Clusters int
	// HubAgents is the number of agents of a Plain cluster that StartHubAgentIn can start. 0 means 1.
	HubAgents int
	// ExternalEtcd gives hub-apiserver an etcd of its own outside of its process. With several hub-apiservers, or an etcd of three members, that is
	// always so.
	ExternalEtcd bool
	// WithoutKubeControllerManager and WithoutHubControllerManager omit a process.
	WithoutKubeControllerManager, WithoutHubControllerManager bool
	// WithoutHubCertificateApprover omits hub-certificate-approver.
	WithoutHubCertificateApprover bool
	// Components are some of deploy.Components, whose rights are granted in addition.
	Components []string
	// FrontArgs, HubAPIServerArgs and HubControllerManagerArgs are further flags. hub-certificate-approver gets the last, too.
	FrontArgs, HubAPIServerArgs, HubControllerManagerArgs []string
	// HubControllerManagerEnv is added to its environment, which it inherits from this process.
	HubControllerManagerEnv []string
	// Issuer is the issuer of the tokens of service accounts, defaultIssuer by default.
	Issuer string
	// EKS makes the front behave like one of EKS.
	EKS *EKS
	// UnsafeNoFsync disables fsync: data loss in a crash of the machine does not matter to a test.
	UnsafeNoFsync bool
	// Log is called for each step. It may be nil.
	Log func(format string, args ...any)
}

// Instance is a running hub.
type Instance struct {
	*identity
	// clusters are those of Options.Clusters that this process has started.
	clusters []*Instance
	lock     *os.File
	taken    net.Listener // a port that no process may have, or nil
}

// Names of the processes, and of their logs. If there are several, those beyond the first have the suffixes "-1", "-2"…
const (
	procEtcd          = "etcd"
	procHubEtcd       = "hub-etcd"
	procFront         = "kube-apiserver"
	procKCM           = "kube-controller-manager"
	procHubAPIServer  = "hub-apiserver"
	procHubController = "hub-controller-manager"
	procHubApprover   = "hub-certificate-approver"
	procHubAgent      = "hub-agent"
	procProvider      = "cluster-provider"
	procNode          = "node"
	procAuthenticator = "aws-iam-authenticator"
	procSupervisor    = "supervisor"
)

// Start starts what does not run yet, restarts those of our servers that have changed, and waits until the hub serves. On failure, it stops what it
// started; what ran before, and did not have to be restarted, continues.
func Start(ctx context.Context, config Options) (*Instance, error) {
	h, err := open(config)
	if err != nil {
		return nil, err
	}
	defer h.unlock()
	h.config, err = h.config.within(h.topology())
	if err != nil {
		return nil, err
	}
	if err := h.start(ctx); err != nil {
		h.stopStarted()
		return nil, err
	}
	return h, nil
}

// Open returns the hub in a directory, whatever of it runs, to inspect it or to stop it.
func Open(config Options) (*Instance, error) {
	h, err := open(config)
	if err == nil {
		h.unlock()
	}
	return h, err
}

func (h *Instance) start(ctx context.Context) error {
	if err := h.checkTools(); err != nil {
		return err
	}
	if err := h.ports.choose(ctx, h.config.portsFile(), h.config.portNames(), h.running); err != nil {
		return err
	}
	h.config.Log("Starting etcd and kube-apiserver")
	if err := h.startFronts(ctx); err != nil {
		return err
	}
	if err := h.startBehind(ctx); err != nil {
		return err
	}
	h.stopSurplus()
	return h.startClusters(ctx)
}

// startBehind starts the processes behind the fronts.
func (h *Instance) startBehind(ctx context.Context) error {
	if h.config.Plain {
		return h.startKubeControllerManager(ctx)
	}
	h.config.Log("Registering the APIServices")
	if err := h.deploy(ctx); err != nil {
		return err
	}
	h.config.Log("Starting hub-apiserver and the controllers")
	return h.startHub(ctx)
}

func (h *Instance) checkTools() error {
	tools := []string{"etcd", "kube-apiserver", "kubectl"}
	if !h.config.WithoutKubeControllerManager {
		tools = append(tools, procKCM)
	}
	if !h.config.Plain {
		tools = append(tools, procHubAPIServer)
	}
	if h.config.EKS != nil {
		if _, err := os.Stat(h.bin(procAuthenticator)); err != nil {
			return fmt.Errorf("%s is missing: build it with `make authenticator`", h.bin(procAuthenticator))
		}
	}
	if !h.config.Plain && !h.config.WithoutHubControllerManager {
		tools = append(tools, procHubController)
	}
	if err := h.checkImages(); err != nil {
		return err
	}
	for _, tool := range tools {
		if _, err := os.Stat(h.bin(tool)); err != nil {
			return fmt.Errorf("%s is missing: build it with `make build kube`", h.bin(tool))
		}
	}
	return nil
}

// Dir returns the hub's directory.
func (h *Instance) Dir() string { return h.config.Dir }

// AdminKubeconfig returns the path of the kubeconfig of a member of system:masters.
func (h *Instance) AdminKubeconfig() string { return h.kubeconfigFile(adminClient) }

// AdminConfig returns a configuration for a running front, as a member of system:masters. Clients are not rate-limited.
func (h *Instance) AdminConfig() *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", h.AdminKubeconfig())
	if err != nil {
		panic(fmt.Sprintf("reading the generated kubeconfig %s: %v", h.AdminKubeconfig(), err))
	}
	config.QPS, config.Burst = -1, -1
	return config
}

// FrontConfig returns a configuration for one of several fronts, running or not, as a member of system:masters.
func (h *Instance) FrontConfig(replica int) *rest.Config {
	config := h.AdminConfig()
	config.Host = h.frontURL(replica)
	return config
}

// FrontURLs returns the URLs of the running fronts.
func (h *Instance) FrontURLs() (urls []string) {
	for _, i := range h.runningFronts() {
		urls = append(urls, h.frontURL(i))
	}
	return urls
}

// UserConfig returns a configuration for a running front that impersonates a user.
func (h *Instance) UserConfig(user string, groups ...string) *rest.Config {
	return impersonate(h.AdminConfig(), user, groups)
}

// HubAPIServerAddresses returns the addresses of the replicas of hub-apiserver, as HOST:PORT. A Plain cluster keeps them free.
func (h *Instance) HubAPIServerAddresses() (addresses []string) {
	for _, i := range h.members(procHubAPIServer) {
		addresses = append(addresses, localserver.Address(h.ports[memberName(procHubAPIServer, i)]))
	}
	return addresses
}

// HubAPIServerConfig returns a configuration for one replica of hub-apiserver without the front, as a member of system:masters.
func (h *Instance) HubAPIServerConfig(replica int) *rest.Config {
	config := h.AdminConfig()
	config.Host = "https://" + localserver.Address(h.ports[memberName(procHubAPIServer, replica)])
	// Its certificate is signed by a CA in the hub's APIServices, for the name of its Service.
	config.CAFile, config.CAData = "", h.servingCA()
	config.ServerName = "hub-apiserver.clusterhub-system.svc"
	return config
}

// HubAPIServerUserConfig returns a configuration for one replica of hub-apiserver without the front, as another user.
func (h *Instance) HubAPIServerUserConfig(replica int, user string, groups ...string) *rest.Config {
	return impersonate(h.HubAPIServerConfig(replica), user, groups)
}

func impersonate(config *rest.Config, user string, groups []string) *rest.Config {
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// Kubectl returns a kubectl command with the admin's kubeconfig.
func (h *Instance) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.bin("kubectl"), append([]string{"--kubeconfig", h.AdminKubeconfig()}, args...)...)
	// Its discovery cache stays with the hub.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "KUBECONFIG=") || strings.HasPrefix(v, "KUBECACHEDIR=")
	}), "KUBECACHEDIR="+h.path("kubectl-cache"))
	return cmd
}

// stopOrder lists processes before those that they depend on.
var stopOrder = []string{procNode, procProvider, procHubAgent, procHubApprover, procHubController, procKCM, procAuthenticator,
	procHubAPIServer, procFront, procHubEtcd, procEtcd}

// Stop stops all processes, gracefully where possible, and those of the clusters beside the hub.
func (h *Instance) Stop() {
	defer h.unlock()
	h.stop(procSupervisor) // from here on nothing is restarted
	clusters, err := h.Clusters()
	if err != nil {
		h.config.Log("%v", err)
	}
	for _, c := range clusters {
		c.Stop()
	}
	h.stopProcesses(all)
}

func all(string) bool { return true }

// Kill kills all processes with SIGKILL, and those of the clusters beside the hub. It is much faster than Stop, for a hub whose data is no longer
// needed.
func (h *Instance) Kill() {
	defer h.unlock()
	h.kill(procSupervisor)
	clusters, err := h.Clusters()
	if err != nil {
		h.config.Log("%v", err)
	}
	var ending sync.WaitGroup
	for _, c := range clusters {
		ending.Go(c.Kill)
	}
	for _, name := range h.processes() {
		ending.Go(func() { h.kill(name) })
	}
	ending.Wait()
	h.free()
}

// stopStarted stops what this process has started.
func (h *Instance) stopStarted() {
	for _, c := range h.clusters {
		c.stopStarted()
	}
	h.stopProcesses(func(name string) bool { return h.started[name] })
}

func (h *Instance) stopProcesses(which func(name string) bool) {
	for _, kind := range stopOrder {
		for _, name := range h.processes() { // one by one: an etcd member that is the leader transfers the leadership
			if of, _ := memberOf(name); of == kind && which(name) {
				h.stop(name)
			}
		}
	}
	h.free()
}

// free releases the port that no process of the hub may have.
func (h *Instance) free() {
	if h.taken != nil {
		_ = h.taken.Close()
		h.taken = nil
	}
}

// stopSurplus stops the API servers that the hub had, and that are no longer desired.
func (h *Instance) stopSurplus() {
	h.stopProcesses(func(name string) bool {
		kind, _ := memberOf(name)
		surplus := (kind == procFront || kind == procHubAPIServer) && h.ports[name] == 0
		if surplus && h.running(name) {
			h.config.Log("Stopping %s: fewer replicas are requested", name)
		}
		return surplus
	})
}
