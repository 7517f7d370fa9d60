// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// restartTimes are times from the start of a process.
type restartTimes struct {
	// ready is until hub-apiserver is ready, and served until the front lists members again. stopped is the time that hub-apiserver takes to end.
	ready, served, stopped samples
	// peer is from the start of etcd and kube-apiserver until the custom resources are listed.
	peer samples
}

// restarts stops and starts hub-apiserver, and finally everything, to measure the peer.
func restarts(ctx context.Context, e *env, r *clustersResults) error {
	var times restartTimes
	front, err := newClient(e.front())
	if err != nil {
		return err
	}
	listsSet := func(path string) error {
		_, err := front.list(ctx, path)
		return err
	}
	members := ourMembers + "?" + bySetField(setName(0))
	for i := range e.options.restarts {
		e.steps.step("Restarting hub-apiserver, %d of %d", i+1, e.options.restarts)
		begun := time.Now()
		e.hub.StopHubAPIServer(0)
		times.stopped = append(times.stopped, time.Since(begun))

		begun = time.Now()
		if err := e.hub.StartHubAPIServer(ctx, 0); err != nil {
			return err
		}
		times.ready = append(times.ready, time.Since(begun))
		if err := eventually(ctx, func() error { return listsSet(members) }); err != nil {
			return err
		}
		times.served = append(times.served, time.Since(begun))
	}
	e.steps.step("Restarting everything")
	e.hub.Stop()
	begun := time.Now()
	started := make(chan error, 1)
	go func() { started <- e.startHub(ctx) }()
	err = eventually(ctx, func() error { return listsSet(peerClusters + "?" + bySetLabel(setName(0))) })
	times.peer = append(times.peer, time.Since(begun))
	if startErr := <-started; startErr != nil {
		return startErr
	}
	if err != nil {
		return err
	}
	r.addRestarts(times)
	return nil
}
