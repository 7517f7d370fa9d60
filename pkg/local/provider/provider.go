// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider is a cluster provider whose clusters are processes on this machine, a kube-apiserver and a kube-controller-manager each, for
// development and tests. They have no nodes. Everything listens on 127.0.0.1 only.
//
// The clusters share one etcd, each with a prefix of its own. Users of a cluster reach its prefix only, but each kube-apiserver has credentials for
// the whole etcd, and the files of all clusters belong to one user of this machine: that user, and an attacker who breaks out of a kube-apiserver,
// has access to all clusters.
//
// All state is in the directory of the provider. Each cluster has a folder there, named by the UID of its object: it is created before anything else
// of the cluster, and deleted after everything else. A lock that a process holds for its lifetime shows whether it runs. So a provider can be killed
// at any time: the next one finds the running processes, continues what was started, and never starts a second process of a kind for one cluster.
package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// configName is the name of the only profile's configuration.
const configName = "default"

// lockTimeout is the maximum time to wait for another provider that is about to end.
const lockTimeout = 10 * time.Second

// Options specify where a provider stores its clusters, and which binaries it uses.
type Options struct {
	// Dir is the directory of the provider. Only one provider can use it at a time.
	Dir string
	// BinDir has the binaries etcd, kube-apiserver and kube-controller-manager. Each folder in it that has the latter two offers a further version of
	// Kubernetes, 1.30 or later.
	BinDir string

	// Owner names the provider and its hub. A different one may not use the directory while it has clusters, which would be taken for leftovers.
	Owner string
	// IssuerCAFile has the CAs of OIDC issuers, in PEM form. The default is those of the system.
	IssuerCAFile string
	// EndWithProvider stops all processes when the provider is closed, and on Linux also when it is killed. Without it they continue, and the next
	// provider finds them.
	EndWithProvider bool
	// UnsafeNoFsync disables fsync: data loss in a crash of the machine does not matter to a test.
	UnsafeNoFsync bool
}

// Provider is a cluster provider whose clusters are processes on this machine.
type Provider struct {
	starter
	options  Options
	issuerCA string
	clusters keyedMutex
	versions versions

	lockMu sync.Mutex
	// lock is the lock of the directory, once this provider has it.
	lock *os.File
	// etcdMu is for the start of etcd, portsMu for the choice of ports.
	etcdMu, portsMu sync.Mutex
	// restarts has, by UID, the clusters whose kube-apiserver is restarted so that it trusts other OIDC issuers.
	restarts sync.Map
	// changed enqueues a Cluster for Ensure; nil before Watch has set it.
	changed atomic.Pointer[func(types.NamespacedName)]
}

var (
	_ clusterprovider.Provider    = &Provider{}
	_ clusterprovider.OIDCTruster = &Provider{}
	_ clusterprovider.Watcher     = &Provider{}
	_ io.Closer                   = &Provider{}
)

// New returns a provider. It starts nothing.
func New(options Options) (*Provider, error) {
	if options.Dir == "" || options.BinDir == "" {
		return nil, errors.New("the directories of the provider and of the binaries are required")
	}
	for _, path := range []*string{&options.Dir, &options.BinDir} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		*path = absolute
	}
	p := &Provider{options: options}
	p.versions.dir = options.BinDir
	if options.IssuerCAFile != "" {
		ca, err := os.ReadFile(options.IssuerCAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the CAs of OIDC issuers: %w", err)
		}
		p.issuerCA = string(ca)
	}
	if err := os.MkdirAll(p.path("clusters"), 0o700); err != nil {
		return nil, err
	}
	return p, nil
}

// own takes over the directory from the previous provider, unless this one has it already. A provider that only stands by, or lists its profiles,
// does not need it.
func (p *Provider) own(ctx context.Context) error {
	p.lockMu.Lock()
	defer p.lockMu.Unlock()
	if p.lock != nil {
		return nil
	}
	lock, err := os.OpenFile(p.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, lockTimeout, true, func(context.Context) (bool, error) {
		taken, err := localserver.TryLock(lock, syscall.LOCK_EX)
		return !taken, err
	})
	if err == nil {
		err = p.claim()
	}
	if err == nil {
		p.lock = lock
		return nil
	}
	_ = lock.Close()
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("another provider is using %s: stop it, or specify another directory", p.options.Dir)
	}
	return err
}

// claim records the owner of the clusters in the directory.
func (p *Provider) claim() error {
	file := p.path("owner")
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	owner := p.options.Owner + "\n"
	if string(before) == owner {
		return nil
	}
	uids, err := p.uids()
	if err != nil {
		return err
	}
	if len(uids) > 0 && len(before) > 0 {
		return fmt.Errorf("%s has clusters of the provider %s: specify another directory, or delete %s if this is the same provider",
			p.options.Dir, strings.TrimSpace(string(before)), file)
	}
	return localserver.WriteFile(file, []byte(owner))
}

// Close stops the processes, if they must end with the provider, and releases the directory for another provider. No method of this one may be called
// then.
func (p *Provider) Close() error {
	p.lockMu.Lock()
	defer p.lockMu.Unlock()
	if p.lock == nil {
		return nil
	}
	var err error
	if p.options.EndWithProvider {
		err = p.stop()
	}
	return errors.Join(err, p.lock.Close())
}

// stop stops the processes of all clusters, and then etcd, which they use.
func (p *Provider) stop() error {
	uids, err := p.uids()
	if err != nil {
		return err
	}
	errs := make([]error, len(uids))
	var clusters sync.WaitGroup
	for i, uid := range uids {
		clusters.Go(func() {
			c := p.cluster(uid)
			errs[i] = errors.Join(c.process(controllerManager).Stop(), c.process(apiServer).Stop())
		})
	}
	clusters.Wait()
	return errors.Join(append(errs, p.etcdProcess().Stop())...)
}

// Profiles returns one profile, with the versions of Kubernetes for which binaries exist, the newest first.
func (p *Provider) Profiles(ctx context.Context) ([]clusterprovider.Profile, error) {
	found, err := p.versions.list(ctx)
	if err != nil {
		return nil, err
	}
	profile := clusterprovider.Profile{Config: configName}
	for _, v := range found {
		profile.Versions = append(profile.Versions, v1alpha1.SupportedK8sVersion{Version: v.String()})
	}
	return []clusterprovider.Profile{profile}, nil
}

// Connect returns the admin's configuration of a cluster.
func (p *Provider) Connect(_ context.Context, object *v1alpha1.Cluster) (*rest.Config, error) {
	c, err := p.clusterOf(object)
	if err != nil {
		return nil, err
	}
	r, err := c.read()
	if err != nil {
		return nil, err
	}
	return c.adminConfig(r)
}

// uids returns the UIDs of all clusters that the provider has something of.
func (p *Provider) uids() ([]types.UID, error) {
	entries, err := os.ReadDir(p.path("clusters"))
	if err != nil {
		return nil, err
	}
	var uids []types.UID
	for _, entry := range entries {
		if entry.IsDir() && validUID.MatchString(entry.Name()) {
			uids = append(uids, types.UID(entry.Name()))
		}
	}
	return uids, nil
}

// validUID matches what can be the name of a folder and a part of a key in etcd.
var validUID = regexp.MustCompile(`^[0-9A-Za-z-]+$`)

func (p *Provider) clusterOf(object *v1alpha1.Cluster) (cluster, error) {
	if !validUID.MatchString(string(object.UID)) {
		return cluster{}, fmt.Errorf("the UID %q of the Cluster %s/%s is invalid", object.UID, object.Namespace, object.Name)
	}
	return p.cluster(object.UID), nil
}

func (p *Provider) cluster(uid types.UID) cluster {
	return cluster{uid: uid, dir: p.path("clusters", string(uid)), endWithProvider: p.options.EndWithProvider}
}

func (p *Provider) path(elements ...string) string {
	return filepath.Join(append([]string{p.options.Dir}, elements...)...)
}

func free(port int) bool {
	l, err := net.Listen("tcp", localserver.Address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// choosePorts returns n ports that are free and that no cluster has. Its caller holds portsMu until they are recorded.
func (p *Provider) choosePorts(n int) ([]int, error) {
	taken, err := p.knownPorts()
	if err != nil {
		return nil, err
	}
	var chosen []int
	for len(chosen) < n {
		l, port, err := localserver.Listen()
		if err != nil {
			return nil, err
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		if !taken[port] {
			taken[port] = true
			chosen = append(chosen, port)
		}
	}
	return chosen, nil
}

// knownPorts returns the ports of the clusters and of etcd, whether they run or not.
func (p *Provider) knownPorts() (map[int]bool, error) {
	uids, err := p.uids()
	if err != nil {
		return nil, err
	}
	known := map[int]bool{}
	for _, uid := range uids {
		if r, err := p.cluster(uid).read(); err == nil { // a cluster without a readable record has no port
			known[r.Port] = true
		}
	}
	var e etcdRecord
	if err := readJSON(p.etcdFile("etcd.json"), &e); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known[e.ClientPort], known[e.PeerPort] = true, true
	return known, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// keyedMutex is a mutex for each cluster.
type keyedMutex struct{ locks sync.Map }

func (k *keyedMutex) of(uid types.UID) *sync.Mutex {
	mu, _ := k.locks.LoadOrStore(uid, &sync.Mutex{})
	return mu.(*sync.Mutex)
}

// lock locks a cluster, and returns the function to unlock it.
func (k *keyedMutex) lock(uid types.UID) (unlock func()) {
	mu := k.of(uid)
	mu.Lock()
	return mu.Unlock
}
