// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import "errors"

// ErrTerminal is in the chain of an error that another try does not solve: an admin has to change something first, where the
// hub may not see when that is done. So it is tried again, but seldom. All other errors of drivers pass by themselves.
var ErrTerminal = errors.New("an admin has to change something before it works")

// Terminal puts ErrTerminal into the chain of an error, whose text stays what it is.
func Terminal(err error) error { return terminal{err} }

type terminal struct{ error }

func (t terminal) Unwrap() []error { return []error{t.error, ErrTerminal} }

// Warning is what Grant returns when the cluster has all that it needs, and something beside that is not as it should be. It
// is shown with the cluster's acceptance until the next check.
type Warning string

func (w Warning) Error() string { return string(w) }
