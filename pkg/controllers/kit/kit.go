// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kit has what the controllers share: how often is tried again, patches that overwrite no other writer, when an
// object counts as gone, errors that become conditions, and which objects are reconciled because of a change.
//
// What only one controller needs is not here.
package kit

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// FirstBackoff is after how long a reconciliation that has failed is tried again. It doubles with each failure.
	FirstBackoff = 100 * time.Millisecond
	// LongestBackoff bounds how late a controller is after the server was away.
	LongestBackoff = 30 * time.Second
)

// Options are those of a controller with so many workers.
func Options(workers int) controller.Options { return OptionsFrom(workers, FirstBackoff) }

// OptionsFrom are those of a controller that waits longer than others after the first failure.
func OptionsFrom(workers int, first time.Duration) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, LongestBackoff),
	}
}
