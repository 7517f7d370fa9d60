// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"errors"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"slices"
	"time"
)

// Call is one call of the API in the log.
type Call struct {
	Time time.Time
	// Operation is a name such as iam:CreateRole.
	Operation string
	// Account and Caller identify the caller. Both are empty if the signature was rejected.
	Account, Caller string
	// Resource is the ARN that the call is about.
	Resource string
	Params   map[string]any
	// Write reports whether the operation changes something if it succeeds.
	Write bool
	// Error is the code of the error response, or empty.
	Error string
}

// Fault is a failure of calls.
type Fault struct {
	// Operation is a name such as iam:CreateRole, with * as a wildcard. Empty matches all.
	Operation string
	// Call is the number of the failing call, from 1, counted since the injection. 0 is each call.
	Call int
	// Probability is the probability that such a call fails. 0 is always.
	Probability float64
	// Err is the response: Throttled, Internal, Cut or another *Error.
	Err error
	// AfterEffect executes the operation before the failure. With Cut, this is a crash between the effect and the response.
	AfterEffect bool
	// Hook, if set, returns the error instead of Err. If it returns nil, the call continues. It may block.
	Hook func(Call) error
}

type fault struct {
	Fault
	calls int
}

// Inject adds a fault and returns a function that removes it.
func (s *Server) Inject(f Fault) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &fault{Fault: f}
	s.faults = append(s.faults, added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(f *fault) bool { return f == added })
	}
}

// due returns the faults of this call. The caller holds the lock.
func (s *Server) due(operation string) (before, after faults) {
	for _, f := range s.faults {
		if f.Operation != "" && !iampolicy.Like(f.Operation, operation) {
			continue
		}
		f.calls++
		if (f.Call != 0 && f.Call != f.calls) || (f.Probability > 0 && s.random.Float64() >= f.Probability) {
			continue
		}
		if f.AfterEffect {
			after = append(after, f.Fault)
		} else {
			before = append(before, f.Fault)
		}
	}
	return before, after
}

type faults []Fault

func (list faults) strike(c Call) error {
	for _, f := range list {
		err := f.Err
		if f.Hook != nil {
			err = f.Hook(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin prepares the log entry. The caller holds the lock.
func (r *request) begin() {
	r.call = Call{Time: r.now(), Operation: r.op.action(), Write: r.op.write, Params: r.params}
	if r.who.account != nil {
		r.call.Account, r.call.Caller = r.who.account.ID, r.who.arn()
		if r.op.needs != nil {
			r.call.Resource = r.op.needs(r)[0].resource
		}
	}
	if r.op.open {
		r.call.Resource = r.params.Str("RoleArn")
	}
}

func (r *request) finish(err error) {
	var failure *api.Error
	switch {
	case errors.As(err, &failure):
		r.call.Error = failure.Complete(r.service, r.model).Code
	case err != nil:
		r.call.Error = Internal.Code
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, r.call)
}

// Calls returns the log, in the order of the responses, of the operations that match patterns such as iam:CreateRole or eks:*. Without patterns it
// returns all.
func (s *Server) Calls(patterns ...string) []Call {
	return s.callsWhere(func(c Call) bool { return patterns == nil || iampolicy.AnyLike(patterns, c.Operation) })
}

// Writes returns the log of the operations that change something, including rejected ones.
func (s *Server) Writes() []Call { return s.callsWhere(func(c Call) bool { return c.Write }) }

// Count returns the number of calls of the operations that match.
func (s *Server) Count(patterns ...string) int { return len(s.Calls(patterns...)) }

// ResetCalls clears the log.
func (s *Server) ResetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

func (s *Server) callsWhere(keep func(Call) bool) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if keep(c) {
			out = append(out, c)
		}
	}
	return out
}

// Error is an error response of AWS.
type Error = api.Error

// Failures that can be injected, in addition to any *Error.
var (
	// Throttled is the response to too many requests, with each service's own code.
	Throttled = &api.Error{Code: "Throttling", Message: "Rate exceeded"}
	// Internal is an internal failure of the service.
	Internal = &api.Error{Code: "InternalFailure", Message: "The request processing has failed because of an unknown error."}
	// Cut closes the connection without a response.
	Cut = &api.Error{Code: "Cut", Message: "the connection is closed without an answer", Status: 499}
)
