// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader has the lock by which managers of controller-runtime elect a leader.
package leader

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/clusterhub/clusterhub/pkg/command"
)

// Lock returns the lock of an election for ctrl.Options.LeaderElectionResourceLockInterface; it is nil if the election is not enabled. It is that of
// controller-runtime, but releases the Lease only if this process holds it.
func Lock(config *rest.Config, election command.LeaderElection) (resourcelock.Interface, error) {
	if !election.Enabled {
		return nil, nil
	}
	client, err := corev1client.NewForConfig(rest.AddUserAgent(config, "leader-election"))
	if err != nil {
		return nil, err
	}
	// The broadcaster lasts as long as the process: the last event is of the end of its leadership.
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.Events("")})
	lock, err := leaderelection.NewResourceLock(rest.CopyConfig(config), recorders{broadcaster: events}, leaderelection.Options{LeaderElection: true,
		LeaderElectionID: election.Name, LeaderElectionNamespace: election.Namespace, RenewDeadline: election.RenewDeadline})
	if err != nil {
		return nil, err
	}
	return &heldLock{Interface: lock}, nil
}

// recorders gives controller-runtime the recorder of a lock.
type recorders struct {
	recorder.Provider
	broadcaster record.EventBroadcaster
}

// GetEventRecorderFor implements recorder.Provider.
func (r recorders) GetEventRecorderFor(name string) record.EventRecorder {
	return r.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: name})
}

// heldLock is a lock that does not release the Lease of another process. client-go's elector reads the Lease before it releases it, but decides by
// what it knew before. A process that was suspended, or did not reach the API until its renew deadline, would so release the Lease of the
// process that leads by then: a third process would take it at once, and act beside the second one.
//
// An elector calls a lock from one goroutine at a time.
type heldLock struct {
	resourcelock.Interface
	// holder is the identity in the Lease when it was last read or written.
	holder string
}

// Get implements resourcelock.Interface.
func (l *heldLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *heldLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return err
}

// Update implements resourcelock.Interface. The Lease of another process has nothing that this one could release.
func (l *heldLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.holder != l.Identity() {
		return nil
	}
	err := l.Interface.Update(ctx, record)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return err
}
