// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package netns starts clusters for tests that have no network access: etcd and the servers of Kubernetes run in a network namespace whose only
// interface is its own loopback. Clients outside connect to the cluster by forwarded ports. The cluster cannot connect to the outside, like a managed
// cluster behind a firewall.
//
// It works on Linux: as root, or if the system allows users to create user namespaces.
package netns

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/await"
)

// Config is the configuration of such a cluster.
type Config struct {
	// BinDir has the programs.
	BinDir string
	// FrontArgs are additional flags of its kube-apiserver.
	FrontArgs []string
}

// Cluster is a cluster in a network namespace.
type Cluster struct {
	// Hub is the cluster for clients outside. Requests to it work.
	*localhub.Instance
	// EtcdPort is the port of its etcd for clients outside. The certificates are in the directory of the cluster.
	EtcdPort int

	mu      sync.Mutex
	ask     *json.Encoder
	answers *json.Decoder
}

// order is a request to the process in the namespace. It handles one at a time.
type order struct {
	// Start is the cluster to start, in the first order.
	Start *plain `json:",omitempty"`
	// Dial is an address to connect to.
	Dial string `json:",omitempty"`
}

// plain is a cluster of Kubernetes.
type plain struct {
	Dir, BinDir string
	FrontArgs   []string
}

func (p plain) config() localhub.Options {
	return localhub.Options{Dir: p.Dir, BinDir: p.BinDir, FrontArgs: p.FrontArgs, Plain: true, UnsafeNoFsync: true}
}

// answer is the response to an order.
type answer struct {
	Error string
	// Interfaces are the network interfaces of the namespace.
	Interfaces []string
}

func (a answer) err() error {
	if a.Error == "" {
		return nil
	}
	return fmt.Errorf("%s", a.Error)
}

// doors are the sockets that the process in the namespace gets from outside.
var doors = []string{"kube-apiserver", "etcd"}

// Start starts a cluster, which is stopped when the test ends.
func Start(t testing.TB, config Config) *Cluster {
	t.Helper()
	own := plain{Dir: filepath.Join(t.TempDir(), "cluster"),
		// Without a route it finds no address of its own.
		FrontArgs: append([]string{"--advertise-address=192.0.2.1"}, config.FrontArgs...)}
	var err error
	own.BinDir, err = filepath.Abs(config.BinDir)
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := inside()
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]int{}
	for _, door := range doors {
		listener, port, err := localserver.Listen()
		if err != nil {
			t.Fatal(err)
		}
		file, err := listener.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		defer listener.Close()
		cmd.ExtraFiles, ports[door] = append(cmd.ExtraFiles, file), port
	}
	c := &Cluster{EtcdPort: ports["etcd"]}
	c.run(t, cmd)
	if _, err := c.order(order{Start: &own}); err != nil {
		t.Fatalf("a cluster in a network namespace: %v", err)
	}
	c.Instance, err = localhub.Open(own.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := reachedBy(c.AdminKubeconfig(), localserver.Address(ports["kube-apiserver"])); err != nil {
		t.Fatal(err)
	}
	return c
}

// run starts the process in the namespace, which is stopped when the test ends.
func (c *Cluster) run(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	c.ask, c.answers = json.NewEncoder(stdin), json.NewDecoder(stdout)
	ended, err := start(cmd)
	if err != nil {
		t.Fatalf("this machine has no network namespaces for the tests: %v. They need Linux, and root or user namespaces", err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // then it stops the cluster, and ends
		select {
		case <-ended:
		case <-time.After(await.Limit):
			_ = cmd.Process.Kill()
			<-ended
		}
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the process in the network namespace said:\n%s", said)
		}
	})
}

func (c *Cluster) order(o order) (answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ask.Encode(o); err != nil {
		return answer{}, err
	}
	var a answer
	if err := c.answers.Decode(&a); err != nil {
		return answer{}, fmt.Errorf("the process in the network namespace does not answer: %w", err)
	}
	return a, a.err()
}

// Reaches tries to connect from inside of the namespace to an address.
func (c *Cluster) Reaches(address string) error {
	_, err := c.order(order{Dial: address})
	return err
}

// Inside returns the address of the kube-apiserver inside of the namespace.
func (c *Cluster) Inside() (string, error) {
	data, err := os.ReadFile(filepath.Join(c.Dir(), "ports.json"))
	var ports map[string]int
	if err == nil {
		err = json.Unmarshal(data, &ports)
	}
	if err == nil && ports["kube-apiserver"] == 0 {
		err = fmt.Errorf("the cluster has the ports %v", ports)
	}
	return localserver.Address(ports["kube-apiserver"]), err
}

// Alone returns an error unless the only interface of the namespace is its loopback.
func (c *Cluster) Alone() error {
	a, err := c.order(order{})
	if err == nil && !slices.Equal(a.Interfaces, []string{"lo"}) {
		err = fmt.Errorf("the network namespace has the interfaces %v, want lo only", a.Interfaces)
	}
	return err
}

// reachedBy sets a different address in a kubeconfig.
func reachedBy(kubeconfig, address string) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + address
	}
	return clientcmd.WriteToFile(*config, kubeconfig)
}

// copyBoth copies data in both directions until both have ended.
func copyBoth(a, b interface {
	io.ReadWriter
	CloseWrite() error
}) {
	var both sync.WaitGroup
	for _, way := range [][2]interface {
		io.ReadWriter
		CloseWrite() error
	}{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0])
			_ = way[1].CloseWrite()
		})
	}
	both.Wait()
}
