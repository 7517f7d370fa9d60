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

// fuse kills a process after a write, each time after another one, of those that this run of the tests tries.
type fuse struct {
	*harness.Daemon
	t *testing.T
	// agent is the start of the process's User-Agent.
	agent string

	lock sync.Mutex
	// burnt is what is done when it has been killed; nil while it is not to be.
	burnt func()
	// writes counts the writes since it was armed. done has those after which it was killed before, or which this run does not try, and last is
	// the one after which it was killed most recently.
	writes map[string]int
	done   sets.Set[string]
	last   string
	kills  int
}

// mostKills is how often a process is killed in a run that does not try all combinations: TestCrash_AtEachWrite of pkg/clusterprovider/kubeconfig
// has the controllers of a provider end after each of their writes.
const mostKills = 3

// arm has the process killed after the next write that is not done, unless burnt is nil. It returns whether it was not killed since it was armed
// before.
func (f *fuse) arm(burnt func()) (unused bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	unused = f.burnt != nil
	f.burnt, f.writes = burnt, map[string]int{}
	return unused
}

var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// burn handles a write, and reports whether it killed the process, which does not get the answer.
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
	if !sample.Picks(f.t, write) && f.done.Len() != 3 || !sample.All() && f.kills == mostKills { // one is tried for sure
		return false
	}
	f.last = write
	f.kills++
	f.Kill()
	f.burnt()
	f.burnt = nil
	return true
}

// noWrite are questions and records that are asked by POST, or written for people only.
var noWrite = regexp.MustCompile(`/(selfsubject|subjectaccess|tokenreview|events)`)

// tap returns a kubeconfig like another one, of which each write that succeeds counts for a fuse.
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
