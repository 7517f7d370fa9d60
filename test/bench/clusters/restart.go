// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// restartTimes are times from the start of a process.
type restartTimes struct {
	// ready is until hub-apiserver is ready, and served until the front lists members again. stopped is the time that hub-apiserver takes to end.
	ready, served, stopped kit.Samples
	// peer is from the start of etcd and kube-apiserver until the custom resources are listed.
	peer kit.Samples
}

// restarts stops and starts hub-apiserver, and finally everything, to measure the peer.
func restarts(ctx context.Context, e *kit.Env, r *Results) error {
	var times restartTimes
	front, err := kit.NewClient(e.Front())
	if err != nil {
		return err
	}
	listsSet := func(path string) error {
		_, err := front.List(ctx, path)
		return err
	}
	members := kit.MembersPath + "?" + kit.BySetField(kit.SetName(0))
	for i := range e.Options.Restarts {
		e.Steps.Step("Restarting hub-apiserver, %d of %d", i+1, e.Options.Restarts)
		begun := time.Now()
		e.Hub.StopHubAPIServer(0)
		times.stopped = append(times.stopped, time.Since(begun))

		begun = time.Now()
		if err := e.Hub.StartHubAPIServer(ctx, 0); err != nil {
			return err
		}
		times.ready = append(times.ready, time.Since(begun))
		if err := kit.Eventually(ctx, func() error { return listsSet(members) }); err != nil {
			return err
		}
		times.served = append(times.served, time.Since(begun))
	}
	e.Steps.Step("Restarting everything")
	e.Hub.Stop()
	begun := time.Now()
	started := make(chan error, 1)
	go func() { started <- e.StartHub(ctx) }()
	err = kit.Eventually(ctx, func() error { return listsSet(kit.PeerClustersPath + "?" + kit.BySetLabel(kit.SetName(0))) })
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
