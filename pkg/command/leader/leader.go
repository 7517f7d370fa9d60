// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader provides the lock with which managers of controller-runtime elect a leader.
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

// Lock returns the lock of an election for ctrl.Options.LeaderElectionResourceLockInterface, or nil if the election is not enabled. It is
// controller-runtime's lock, but releases the Lease only if this process holds it. It does not change the config.
func Lock(config *rest.Config, election command.LeaderElection) (resourcelock.Interface, error) {
	if !election.Enabled {
		return nil, nil
	}
	client, err := corev1client.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "leader-election"))
	if err != nil {
		return nil, err
	}
	// The broadcaster is never shut down: the last event reports the end of the leadership.
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

// heldLock is a lock that does not release the Lease of another process. Before client-go's elector releases the Lease it reads it, but it decides
// by its last observed record, which may be stale. A process that was suspended, or could not reach the API until its renew deadline, would
// release the Lease of the current leader: a third process would acquire it at once, and both would act.
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

// Update implements resourcelock.Interface. It does not release the Lease of another process.
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
