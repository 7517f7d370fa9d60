// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// daemon is a process that a test can kill and start again.
type daemon struct {
	t    *testing.T
	bin  string
	args []string
	out  synced

	mu  sync.Mutex
	cmd *exec.Cmd
	// over is whether the test is.
	over bool
}

func startDaemon(t *testing.T, bin string, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, bin: bin, args: args}
	d.restart()
	t.Cleanup(func() {
		d.mu.Lock()
		d.over = true
		d.mu.Unlock()
		d.kill()
		if said := d.out.String(); t.Failed() || strings.Contains(said, "forbidden") {
			t.Errorf("%s %s says:\n%s", filepath.Base(bin), args[0], said[max(0, len(said)-8000):])
		}
	})
	return d
}

// restart ends the process, if it runs, and starts it.
func (d *daemon) restart() {
	d.t.Helper()
	d.kill()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	d.cmd = exec.Command(d.bin, d.args...)
	d.cmd.Stdout, d.cmd.Stderr = &d.out, &d.out
	if err := d.cmd.Start(); err != nil {
		d.t.Error(err)
	}
}

// kill ends the process with SIGKILL.
func (d *daemon) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		d.cmd = nil
	}
}

// fuse kills a process after a write, each time after another one.
type fuse struct {
	*daemon
	// agent is the start of the process's User-Agent.
	agent string

	lock sync.Mutex
	// burnt is what is done when it has been killed; nil while it is not to be.
	burnt func()
	// writes are those since it was armed, by what they were; after those that are done it has been killed before, and after
	// the last one most recently.
	writes map[string]int
	done   sets.Set[string]
	last   string
}

// arm has the process killed after the next write after which it has not been before, unless burnt is nil. It returns whether
// there was none since it was armed before.
func (f *fuse) arm(burnt func()) (unused bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	unused = f.burnt != nil
	f.burnt, f.writes = burnt, map[string]int{}
	return unused
}

var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// burn is told of a write, and returns true if the process will not know of it any more.
func (f *fuse) burn(r *http.Request) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.burnt == nil {
		return false
	}
	write := r.Method + " " + uid.ReplaceAllString(r.URL.Path, "UID")
	f.writes[write]++
	write = fmt.Sprintf("%s (%d)", write, f.writes[write])
	if f.done.Has(write) {
		return false
	}
	f.done.Insert(write)
	f.last = write
	f.kill()
	f.burnt()
	f.burnt = nil
	return true
}

// noWrite are questions and records that are asked by POST, or written for people only.
var noWrite = regexp.MustCompile(`/(selfsubject|subjectaccess|tokenreview|events)`)

// tap returns a kubeconfig like another one, of which each write that succeeds counts for a fuse.
func (h *accessHub) tap(t *testing.T, kubeconfigFile string, f *fuse) (kubeconfig string) {
	t.Helper()
	config := must(clientcmd.BuildConfigFromFlags("", kubeconfigFile))(t)
	proxy := httputil.NewSingleHostReverseProxy(must(url.Parse(config.Host))(t))
	proxy.Transport = must(rest.TransportFor(rest.AnonymousClientConfig(config)))(t) // each request has its token
	proxy.FlushInterval = -1
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	proxy.ModifyResponse = func(r *http.Response) error {
		write := r.Request.Method != http.MethodGet && r.StatusCode < 300 && !noWrite.MatchString(r.Request.URL.Path)
		if write && strings.HasPrefix(r.Request.UserAgent(), f.agent) && f.burn(r.Request) {
			return errors.New("who has asked is dead")
		}
		return nil
	}
	server := httptest.NewUnstartedServer(proxy)
	server.Config.ErrorLog = proxy.ErrorLog
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	loaded := must(clientcmd.LoadFromFile(kubeconfigFile))(t)
	cluster := loaded.Clusters[loaded.Contexts[loaded.CurrentContext].Cluster]
	cluster.Server = server.URL
	cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return writeKubeconfig(t, string(must(clientcmd.Write(*loaded))(t)))
}

// endLeftovers ends what a provider of the kind local has left running when the test is over.
func endLeftovers(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() {
		files, _ := filepath.Glob(filepath.Join(dir, "clusters", "*", "*.pid"))
		for _, file := range append(files, filepath.Join(dir, "etcd", "etcd.pid")) {
			data, _ := os.ReadFile(file)
			pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
			if err != nil {
				continue
			}
			if cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(cmdline), dir) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
}
