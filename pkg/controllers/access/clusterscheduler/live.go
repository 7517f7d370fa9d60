// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/accesspolicy"
)

// reloadInterval is the interval of reads of the files. Reading works for every kind of file, also for those that a kubelet changes by links.
const reloadInterval = 2 * time.Second

// LiveConfig is the current configuration of its files. A change that makes it invalid is logged and ignored.
type LiveConfig struct {
	files   []string
	current atomic.Pointer[Config]
	// loaded is the content of the files that current is from, seen the content of the last read.
	loaded, seen []byte

	lock sync.Mutex
	// listeners receive an event for every change.
	listeners []chan event.GenericEvent
}

var (
	_ manager.Runnable               = &LiveConfig{}
	_ manager.LeaderElectionRunnable = &LiveConfig{}
)

// NewLiveConfig reads the files, of which later ones have precedence. Start follows their changes.
func NewLiveConfig(files []string) (*LiveConfig, error) {
	l := &LiveConfig{files: files}
	if _, err := l.reload(); err != nil {
		return nil, fmt.Errorf("--scheduler-config: %w", err)
	}
	return l, nil
}

// Policy returns the current policy. It is nil without a configuration.
func (l *LiveConfig) Policy() *accesspolicy.Policy {
	if l == nil {
		return nil
	}
	return l.current.Load().policy
}

// Changes returns a channel that receives an event for every change from now on. It is nil without a configuration.
func (l *LiveConfig) Changes() <-chan event.GenericEvent {
	if l == nil {
		return nil
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	listener := make(chan event.GenericEvent, 1)
	l.listeners = append(l.listeners, listener)
	return listener
}

func (l *LiveConfig) notify() {
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, listener := range l.listeners {
		select {
		case listener <- event.GenericEvent{Object: &v1alpha1.Cluster{}}: // an event must have an object
		default: // one pending event is enough
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: processes that do not lead follow the configuration, too.
func (l *LiveConfig) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (l *LiveConfig) Start(ctx context.Context) error {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	var complaint string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		changed, err := l.reload()
		switch {
		case err == nil:
			complaint = ""
		case err.Error() != complaint:
			complaint = err.Error()
			ctrl.Log.WithName("clusterscheduler").Error(err, "The new configuration is not used, since it has errors")
		}
		if changed {
			ctrl.Log.WithName("clusterscheduler").Info("The configuration has changed", "files", l.files)
			l.notify()
		}
	}
}

// reload reads the files. It reports whether the configuration has changed. A change counts once it was read twice: the files may be half written,
// and half a configuration may have no policy.
func (l *LiveConfig) reload() (bool, error) {
	var documents [][]byte
	var errs []error
	for _, file := range l.files {
		document, err := os.ReadFile(file) // whose errors name the file
		if err == nil {
			_, err = block(document)
			if err != nil {
				err = fmt.Errorf("%s: %w", file, err)
			}
		}
		documents, errs = append(documents, document), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	all := bytes.Join(documents, []byte{0})
	again := bytes.Equal(all, l.seen)
	l.seen = all
	if l.current.Load() != nil && (!again || bytes.Equal(all, l.loaded)) {
		return false, nil
	}
	config, err := parse(documents...)
	if err != nil {
		return false, fmt.Errorf("%s: %w", strings.Join(l.files, ", "), err)
	}
	for _, warning := range config.warnings {
		ctrl.Log.WithName("clusterscheduler").Info("Warning: " + warning)
	}
	l.loaded = all
	l.current.Store(config)
	return true, nil
}
