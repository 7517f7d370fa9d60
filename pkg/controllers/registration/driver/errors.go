// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import "errors"

// ErrTerminal is in the chain of an error that a retry does not fix: an admin must change something first, and the hub may not see when that is
// done. So it is retried, but seldom. All other errors of drivers are temporary.
var ErrTerminal = errors.New("an admin must change something before it works")

// Terminal adds ErrTerminal to the chain of an error, without changing its text.
func Terminal(err error) error { return terminal{err} }

type terminal struct{ error }

func (t terminal) Unwrap() []error { return []error{t.error, ErrTerminal} }

// Warning is an error of Grant for a cluster that has all that it needs, if something else is wrong. It is shown with the cluster's acceptance
// until the next check.
type Warning string

func (w Warning) Error() string { return string(w) }
