// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kit is the library of the controllers of the hub and of hub-operator: retries with backoff, patches that do not overwrite other writers,
// when an object counts as gone, errors that become conditions, and watches that map a change to the objects to reconcile.
//
// Code that only one controller needs belongs to that controller.
package kit

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// FirstBackoff is the delay of the first retry of a reconciliation. It doubles with each failure.
	FirstBackoff = 100 * time.Millisecond
	// MaxBackoff is the longest delay of a retry: it limits the lag of a controller after the server was away.
	MaxBackoff = 30 * time.Second
)

// Options returns the options of a controller with so many workers.
func Options(workers int) controller.Options { return OptionsFrom(workers, FirstBackoff) }

// OptionsFrom returns the options of a controller with another delay after the first failure.
func OptionsFrom(workers int, first time.Duration) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, MaxBackoff),
	}
}
