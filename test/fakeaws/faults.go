// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"errors"
	"slices"
	"time"
)

// Call is one call of the API as the log has it.
type Call struct {
	Time time.Time
	// Operation is such as iam:CreateRole.
	Operation string
	// Account and Caller are who called. Both are empty when the signature was refused.
	Account, Caller string
	// Resource is the ARN that the call is about.
	Resource string
	Params   map[string]any
	// Write says that the operation changes something, if it succeeds.
	Write bool
	// Error is the code of what was answered, or empty.
	Error string
}

// Fault goes wrong in calls.
type Fault struct {
	// Operation is such as iam:CreateRole, with * as a wildcard. Empty is all.
	Operation string
	// Call is which call of these it is, from 1, counted from the injection. With 0 it is each.
	Call int
	// Probability is that of the fault in such a call. 0 is always.
	Probability float64
	// Err is the answer: Throttled, Internal, Cut or another *Error.
	Err error
	// AfterEffect lets the operation be done before. With Cut, that is a crash between effect and answer.
	AfterEffect bool
	// Hook, if set, gives the answer instead of Err; nil lets the call go on. It may block.
	Hook func(Call) error
}

type fault struct {
	Fault
	calls int
}

// Inject adds a fault and returns what takes it away again.
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

// due finds the faults of this call. The caller holds the lock.
func (s *Server) due(operation string) (before, after faults) {
	for _, f := range s.faults {
		if f.Operation != "" && !like(f.Operation, operation) {
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

// begin prepares the log's entry. The caller holds the lock.
func (r *request) begin() {
	r.call = Call{Time: r.now(), Operation: r.op.action(), Write: r.op.write, Params: r.params}
	if r.who.account != nil {
		r.call.Account, r.call.Caller = r.who.account.ID, r.who.arn()
		if r.op.needs != nil {
			r.call.Resource = r.op.needs(r)[0].resource
		}
	}
	if r.op.open {
		r.call.Resource = r.params.str("RoleArn")
	}
}

func (r *request) finish(err error) {
	var failure *Error
	switch {
	case errors.As(err, &failure):
		r.call.Error = failure.complete(r.service, r.model).Code
	case err != nil:
		r.call.Error = Internal.Code
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, r.call)
}

// Calls is the log, in the order of the answers, of the operations that match: such as iam:CreateRole or eks:*. Without
// patterns it is all.
func (s *Server) Calls(patterns ...string) []Call {
	return s.callsWhere(func(c Call) bool { return patterns == nil || anyLike(patterns, c.Operation) })
}

// Writes is the log of the operations that change something, refused ones among them.
func (s *Server) Writes() []Call { return s.callsWhere(func(c Call) bool { return c.Write }) }

// Count is the number of calls of the operations that match.
func (s *Server) Count(patterns ...string) int { return len(s.Calls(patterns...)) }

// ResetCalls empties the log.
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
