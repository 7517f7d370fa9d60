// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localhub runs a hub as processes on this machine, for development and tests: etcd, kube-apiserver and
// kube-controller-manager as built from hack/kube, and our own servers. All of them listen on loopback only, on ports
// that are free, and write nothing outside of the hub's directory.
package localhub

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/localserver"
)

// Config says which processes make up the hub, and where.
type Config struct {
	// Dir is the hub's directory: its data, certificates, kubeconfigs and logs.
	Dir string
	// BinDir is where the binaries are.
	BinDir string
	// ImagesDir has the files of images, DIR/NAME, as `make roots` unpacks them. Our servers and agents are then started in these, as the
	// containers that they are elsewhere. Empty starts those of BinDir. Linux only.
	ImagesDir string
	// Detach lets the processes live on when this one ends, and has them in its session. Supervise starts those again that end. Without it they
	// die with this process.
	Detach bool

	// Plain leaves out all that is ours: what runs is a Kubernetes cluster without nodes, to be managed by a hub, or to manage others.
	Plain bool
	// FrontReplicas is the number of kube-apiservers, Replicas that of hub-apiservers, EtcdMembers that of the members of each etcd, 1
	// or 3. 0 is what the directory has, and 1 when it is new. API servers come and go with a start; members of an etcd cannot.
	FrontReplicas, Replicas, EtcdMembers int
	// Clusters is the number of plain clusters beside the hub, which start and stop with it; see Hub.Clusters. 0 is what the
	// directory has. There cannot be fewer.
	Clusters int
	// HubAgents is the number of agents of a Plain cluster that StartHubAgentIn can start. 0 is 1.
	HubAgents int
	// ExternalEtcd gives hub-apiserver an etcd of its own outside of its process. Several hub-apiservers, and hubs with an etcd of
	// three members, have that anyway.
	ExternalEtcd bool
	// WithoutKubeControllerManager and WithoutHubControllerManager leave a process out.
	WithoutKubeControllerManager, WithoutHubControllerManager bool
	// WithoutHubCertificateApprover leaves out what approves certificates.
	WithoutHubCertificateApprover bool
	// Components are some of deploy.Components, whose rights are granted besides.
	Components []string
	// FrontArgs, HubAPIServerArgs and HubControllerManagerArgs are further flags. The last are hub-certificate-approver's, too.
	FrontArgs, HubAPIServerArgs, HubControllerManagerArgs []string
	// HubControllerManagerEnv is what its environment has besides this process's.
	HubControllerManagerEnv []string
	// Issuer is that of the tokens of service accounts, defaultIssuer by default.
	Issuer string
	// EKS makes the front one of EKS.
	EKS *EKS
	// UnsafeNoFsync spares the disk: what a crash of the machine would lose does not matter to a test.
	UnsafeNoFsync bool
	// Log is told of each step. It may be nil.
	Log func(format string, args ...any)
}

// Hub is a hub that runs.
type Hub struct {
	config Config
	ports  ports
	// started are the processes that this one has started.
	started map[string]bool
	// clusters are those of Config.Clusters that this one has started.
	clusters []*Hub
	lock     *os.File
	taken    net.Listener // a port that no process may have, or nil
	// record, if set, is called with each process instead of starting it. Nothing is waited for then, and no front is asked. It is for tests.
	record func(name, program string, args, env []string)
}

// Names of the processes; they are also the names of their logs. Where there are several, those beyond the first have "-1",
// "-2"… behind the name.
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

// Start starts what does not run yet, restarts those of our servers that have changed, and waits until the hub serves. When
// that fails, what it started is stopped again; what ran before, and did not have to be restarted, goes on.
func Start(ctx context.Context, config Config) (*Hub, error) {
	h, err := open(config)
	if err != nil {
		return nil, err
	}
	defer h.unlock()
	if h.config, err = h.config.within(h.topology()); err != nil {
		return nil, err
	}
	if err := h.start(ctx); err != nil {
		h.stopStarted()
		return nil, err
	}
	return h, nil
}

// Open returns the hub in a directory, whatever of it runs, to look at it or to stop it.
func Open(config Config) (*Hub, error) {
	h, err := open(config)
	if err == nil {
		h.unlock()
	}
	return h, err
}

func (h *Hub) start(ctx context.Context) error {
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

// startBehind starts what is behind the fronts.
func (h *Hub) startBehind(ctx context.Context) error {
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

func (h *Hub) checkTools() error {
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

func (h *Hub) path(elements ...string) string {
	return filepath.Join(append([]string{h.config.Dir}, elements...)...)
}

func (h *Hub) bin(name string) string { return filepath.Join(h.config.BinDir, name) }

// Dir is the hub's directory.
func (h *Hub) Dir() string { return h.config.Dir }

// AdminKubeconfig is the path of the kubeconfig of a member of system:masters.
func (h *Hub) AdminKubeconfig() string { return h.kubeconfigFile(adminClient) }

// AdminConfig reaches a front that runs as a member of system:masters. Clients are not slowed down.
func (h *Hub) AdminConfig() *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", h.AdminKubeconfig())
	if err != nil {
		panic(fmt.Sprintf("the hub has written %s itself: %v", h.AdminKubeconfig(), err))
	}
	config.QPS, config.Burst = -1, -1
	return config
}

// FrontConfig reaches one of several fronts as a member of system:masters, whether it runs or not.
func (h *Hub) FrontConfig(replica int) *rest.Config {
	config := h.AdminConfig()
	config.Host = h.frontURL(replica)
	return config
}

// FrontURLs are where the fronts that run are reached.
func (h *Hub) FrontURLs() (urls []string) {
	for _, i := range h.runningFronts() {
		urls = append(urls, h.frontURL(i))
	}
	return urls
}

// UserConfig reaches a front that runs as another user, by impersonation.
func (h *Hub) UserConfig(user string, groups ...string) *rest.Config {
	return impersonate(h.AdminConfig(), user, groups)
}

// HubAPIServerAddresses are where the replicas of hub-apiserver listen, HOST:PORT. A Plain cluster keeps them free.
func (h *Hub) HubAPIServerAddresses() (addresses []string) {
	for _, i := range h.members(procHubAPIServer) {
		addresses = append(addresses, localserver.Address(h.ports[memberName(procHubAPIServer, i)]))
	}
	return addresses
}

// HubAPIServerConfig reaches one replica of hub-apiserver directly, past the front, as a member of system:masters.
func (h *Hub) HubAPIServerConfig(replica int) *rest.Config {
	config := h.AdminConfig()
	config.Host = "https://" + localserver.Address(h.ports[memberName(procHubAPIServer, replica)])
	// Its certificate is of a CA that the hub keeps in its APIServices, for the name of its Service.
	config.CAFile, config.CAData = "", h.servingCA()
	config.ServerName = "hub-apiserver.clusterhub-system.svc"
	return config
}

// HubAPIServerUserConfig reaches one replica of hub-apiserver directly, as another user.
func (h *Hub) HubAPIServerUserConfig(replica int, user string, groups ...string) *rest.Config {
	return impersonate(h.HubAPIServerConfig(replica), user, groups)
}

func impersonate(config *rest.Config, user string, groups []string) *rest.Config {
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// Kubectl returns kubectl with the admin's kubeconfig.
func (h *Hub) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.bin("kubectl"), append([]string{"--kubeconfig", h.AdminKubeconfig()}, args...)...)
	// Its discovery cache stays with the hub.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "KUBECONFIG=") || strings.HasPrefix(v, "KUBECACHEDIR=")
	}), "KUBECACHEDIR="+h.path("kubectl-cache"))
	return cmd
}

// PIDs returns the processes that run, by name, without those of clusters beside the hub.
func (h *Hub) PIDs() map[string]int {
	pids := map[string]int{}
	for _, name := range h.processes() {
		if h.running(name) {
			pids[name] = h.process(name).PID()
		}
	}
	return pids
}

// stopOrder has those first that depend on the others.
var stopOrder = []string{procNode, procProvider, procHubAgent, procHubApprover, procHubController, procKCM, procAuthenticator,
	procHubAPIServer, procFront, procHubEtcd, procEtcd}

// Stop ends all processes, gracefully where they let it, and those of the clusters beside the hub.
func (h *Hub) Stop() {
	defer h.unlock()
	h.stop(procSupervisor) // from here on nothing is started again
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

// Kill ends all processes with SIGKILL, and those of the clusters beside the hub. It is much faster than Stop, for a hub whose data has no
// further use.
func (h *Hub) Kill() {
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

// stopStarted ends what this process has started.
func (h *Hub) stopStarted() {
	for _, c := range h.clusters {
		c.stopStarted()
	}
	h.stopProcesses(func(name string) bool { return h.started[name] })
}

func (h *Hub) stopProcesses(which func(name string) bool) {
	for _, kind := range stopOrder {
		for _, name := range h.processes() { // one by one: a member of an etcd that leads hands that over to another one
			if of, _ := memberOf(name); of == kind && which(name) {
				h.stop(name)
			}
		}
	}
	h.free()
}

// free lets others have the port that no process of the hub may have.
func (h *Hub) free() {
	if h.taken != nil {
		_ = h.taken.Close()
		h.taken = nil
	}
}
