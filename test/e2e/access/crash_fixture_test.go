// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

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

	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/sample"
)

// fuse kills a process after a write, each time after a different one, of the writes that this run of the tests tries.
type fuse struct {
	*harness.Daemon
	t *testing.T
	// agent is the prefix of the process's User-Agent.
	agent string

	lock sync.Mutex
	// burnt is called after the process is killed. It is nil while the process must not be killed.
	burnt func()
	// writes counts the writes since the fuse was armed. done has the writes after which the process was killed before, or which this run does not
	// try, and last is the write after which it was killed most recently.
	writes map[string]int
	done   sets.Set[string]
	last   string
	kills  int
}

// maxKills is the maximum number of kills in a run that does not try all combinations: TestCrash_AtEachWrite of pkg/clusterprovider/kubeconfig stops
// the controllers of a provider after each of their writes.
const maxKills = 3

// arm arms the fuse: the process is killed after the next write that is not done, unless burnt is nil. It reports whether the process was not killed
// since the fuse was last armed.
func (f *fuse) arm(burnt func()) (unused bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	unused = f.burnt != nil
	f.burnt, f.writes = burnt, map[string]int{}
	return unused
}

var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// burn handles a write, and reports whether it killed the process, which then does not receive the response.
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
	if !sample.Picks(f.t, write) && f.done.Len() != 3 || !sample.All() && f.kills == maxKills { // one is always tried
		return false
	}
	f.last = write
	f.kills++
	f.Kill()
	f.burnt()
	f.burnt = nil
	return true
}

// noWrite matches reviews, which are created by POST without a stored object, and events.
var noWrite = regexp.MustCompile(`/(selfsubject|subjectaccess|tokenreview|events)`)

// tap returns a kubeconfig of a proxy to the same server, which counts each successful write for a fuse.
func (h *accessHub) tap(t *testing.T, kubeconfigFile string, f *fuse) (kubeconfig string) {
	t.Helper()
	f.t = t
	config := harness.Must(clientcmd.BuildConfigFromFlags("", kubeconfigFile))(t)
	proxy := httputil.NewSingleHostReverseProxy(harness.Must(url.Parse(config.Host))(t))
	proxy.Transport = harness.Must(rest.TransportFor(rest.AnonymousClientConfig(config)))(t) // each request has its token
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
	loaded := harness.Must(clientcmd.LoadFromFile(kubeconfigFile))(t)
	cluster := loaded.Clusters[loaded.Contexts[loaded.CurrentContext].Cluster]
	cluster.Server = server.URL
	cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return writeKubeconfig(t, string(harness.Must(clientcmd.Write(*loaded))(t)))
}

// endLeftovers stops the processes of a provider of the kind local that still run when the test ends.
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
