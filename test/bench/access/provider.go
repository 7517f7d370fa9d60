// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

const (
	providerName        = "existing"
	providerEnvironment = "bench"
	procProvider        = "cluster-provider"
)

// provider is a cluster-provider of the kind kubeconfig.
type provider struct {
	bin, kubeconfig, log, metrics string

	kit.Child
}

func newProvider(bin, dir, kubeconfig string) (*provider, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	return &provider{bin: bin, kubeconfig: kubeconfig, log: filepath.Join(dir, "logs", procProvider+".log"), metrics: address}, free.Close()
}

// start starts the provider, and waits until it serves its metrics.
func (p *provider) start(ctx context.Context) error {
	if err := p.StartProcess(exec.Command(p.bin, "kubeconfig", "run", "--provider-name="+providerName, "--environment="+providerEnvironment,
		"--kubeconfig="+p.kubeconfig, "--metrics-bind-address="+p.metrics, "--metrics-secure=false"), p.log); err != nil {
		return err
	}
	return kit.Eventually(ctx, func() error {
		if p.Exited() {
			return fmt.Errorf("the provider has ended; its log is %s", p.log)
		}
		_, err := p.read(ctx)
		return err
	})
}

// reconciles has the counts of the controller of AccessRequests: done, failed, queued and active.
type reconciles struct{ done, failed, queued, active int }

// read reads the provider's metrics.
func (p *provider) read(ctx context.Context) (w reconciles, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metrics+"/metrics", nil)
	if err != nil {
		return w, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return w, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		series, text, _ := strings.Cut(lines.Text(), "} ")
		if !strings.Contains(series, `controller="accessrequest"`) && !strings.Contains(series, `name="accessrequest"`) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return w, err
		}
		switch name, _, _ := strings.Cut(series, "{"); name {
		case "controller_runtime_reconcile_total":
			w.done += int(value)
			if strings.Contains(series, `result="error"`) {
				w.failed += int(value)
			}
		case "workqueue_depth":
			w.queued += int(value)
		case "controller_runtime_active_workers":
			w.active += int(value)
		}
	}
	return w, lines.Err()
}

// awaitWork waits until the controller of AccessRequests has synced n of them, and is idle.
func (p *provider) awaitWork(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		w, err := p.read(ctx)
		if err != nil {
			return err
		}
		if w.done >= n && w.queued == 0 && w.active == 0 {
			return nil
		}
		if err := kit.Sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("the provider has looked at %d of %d AccessRequests: %w", w.done, n, err)
		}
	}
}
