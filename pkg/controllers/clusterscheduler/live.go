// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// reloadInterval is how often the files are read. Reading works for every kind of file, also for those that a kubelet
// changes by links.
const reloadInterval = 5 * time.Second

// LiveConfig is the configuration as its files say. A change that makes it invalid is logged, and does not count.
type LiveConfig struct {
	files    []string
	interval time.Duration
	current  atomic.Pointer[Config]
	// seen are the files as they were read last.
	seen []byte
	// changed is told of every change.
	changed func()
}

var (
	_ manager.Runnable               = &LiveConfig{}
	_ manager.LeaderElectionRunnable = &LiveConfig{}
)

// NewLiveConfig reads the files, of which later ones count more. Start keeps up with them.
func NewLiveConfig(files []string) (*LiveConfig, error) {
	l := &LiveConfig{files: files, interval: reloadInterval, changed: func() {}}
	if _, err := l.reload(); err != nil {
		return nil, fmt.Errorf("--scheduler-config: %w", err)
	}
	return l, nil
}

// Policy is who may ask for what, now. Without a configuration there is none.
func (l *LiveConfig) Policy() *Policy {
	if l == nil {
		return nil
	}
	return l.current.Load().policy
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: those who stand by know the configuration, too.
func (l *LiveConfig) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (l *LiveConfig) Start(ctx context.Context) error {
	ticker := time.NewTicker(l.interval)
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
			ctrl.Log.WithName("clusterscheduler").Error(err, "The configuration stays as it was")
		}
		if changed {
			ctrl.Log.WithName("clusterscheduler").Info("The configuration has changed", "files", l.files)
			l.changed()
		}
	}
}

// reload reads the files. It returns whether the configuration is another one now.
func (l *LiveConfig) reload() (bool, error) {
	var documents [][]byte
	var errs []error
	for _, file := range l.files {
		document, err := os.ReadFile(file)
		documents, errs = append(documents, document), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	all := bytes.Join(documents, []byte{0})
	if bytes.Equal(all, l.seen) && l.current.Load() != nil {
		return false, nil
	}
	config, err := parse(documents...)
	if err != nil {
		return false, fmt.Errorf("%v: %w", l.files, err)
	}
	l.seen = all
	l.current.Store(config)
	return true, nil
}
