// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import "time"

// How often tokens are asked for, for one Secret, whatever the cluster and the writers of the Secret do.
const (
	// allAtOnce is how many tokens may be asked for one after the other, and oneMoreEach how long it takes until one more may be.
	allAtOnce   = 5
	oneMoreEach = time.Minute
	// firstRetry is how long it takes after a failure, and lastRetry after many.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// pace is what is remembered of the tokens that were asked for.
type pace struct{}
