// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// LeaderElection configures how one of several processes is elected to act.
type LeaderElection struct {
	Enabled bool
	// Name is the name of the Lease. Processes with other controllers have a different one.
	Name string
	// Namespace is the namespace of the Lease; the pod's own if it is empty.
	Namespace string
	// LeaseDuration is the time for which the others wait for a leader that does not renew, RenewDeadline the time for which a leader
	// continues without a renewal, and RetryPeriod the interval of all attempts: each must be longer than the next.
	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
}

// NewLeaderElection returns the defaults: Kubernetes' own.
func NewLeaderElection(name, namespace string) LeaderElection {
	return LeaderElection{Enabled: true, Name: name, Namespace: namespace,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
}

// AddFlags adds the flags.
func (o *LeaderElection) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Enabled, "leader-elect", o.Enabled,
		"If true, the process acts only while it holds the Lease. Disable it only if a single process ever runs.")
	fs.StringVar(&o.Name, "leader-elect-resource-name", o.Name, "The name of the Lease.")
	fs.StringVar(&o.Namespace, "leader-elect-namespace", o.Namespace, "The namespace of the Lease. It must exist.")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration,
		"The time that the other processes wait after the last renewal of the Lease, before one of them takes over.")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline,
		"The time for which the leader tries to renew the Lease before it gives up and the process exits. It must be less than "+
			"the lease duration.")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod,
		"The time between two attempts to acquire or renew the Lease. It must be less than the renew deadline.")
}

// Validate returns all errors of the flags.
func (o *LeaderElection) Validate() (errs []error) {
	if o.Name == "" || o.Namespace == "" {
		errs = append(errs, errors.New("--leader-elect-resource-name and --leader-elect-namespace must not be empty"))
	}
	if o.RetryPeriod <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period must be above 0, not %s", o.RetryPeriod))
	}
	// Retries have a jitter of up to 1.2 periods.
	if jittered := o.RetryPeriod * 12 / 10; o.RenewDeadline <= jittered {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline must be above %s, 1.2 times the retry period, "+
			"not %s", jittered, o.RenewDeadline))
	}
	if o.LeaseDuration <= o.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration must be above the renew deadline of %s, not %s",
			o.RenewDeadline, o.LeaseDuration))
	}
	return errs
}
