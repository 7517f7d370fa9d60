// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// slow returns a front that takes a while, and handles a few reviews at a time in the order of their arrival.
func slow(atATime int) authorizer.Authorizer {
	seats := make(chan struct{}, atATime)
	return authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		seats <- struct{}{}
		defer func() { <-seats }()
		time.Sleep(time.Second)
		return authorizer.DecisionAllow, "", nil
	})
}

func ask(ctx context.Context, a authorizer.Authorizer, who string) (authorizer.Decision, error) {
	decision, _, err := a.Authorize(ctx, authorizer.AttributesRecord{User: &user.DefaultInfo{Name: who}})
	return decision, err
}

func TestLimitPerUser_OneUserDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := LimitPerUser(slow(perUser + 1))
		for range 500 {
			go func() { _, _ = ask(t.Context(), a, "eve") }()
		}
		synctest.Wait()
		begun := time.Now()
		if decision, err := ask(t.Context(), a, "ann"); decision != authorizer.DecisionAllow || err != nil {
			t.Errorf("got %v, %v", decision, err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("ann's question took %s, want as long as if eve asked nothing", took)
		}
		time.Sleep(time.Hour)
	})
}

func TestLimitPerUser_CancelledWaitIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := LimitPerUser(slow(100))
		for range perUser {
			go func() { _, _ = ask(t.Context(), a, "eve") }()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if decision, err := ask(ctx, a, "eve"); decision != authorizer.DecisionNoOpinion || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", decision, err)
		}
		time.Sleep(time.Hour)
	})
}

func TestLimitPerUser_ForgetsIdleUsers(t *testing.T) {
	turns := &limiter{asks: slow(1), users: map[string]*seatQueue{}}
	synctest.Test(t, func(t *testing.T) {
		turns.asks = slow(1)
		for _, who := range []string{"a", "b", "b", ""} {
			go func() {
				_, _, _ = turns.authorize(t.Context(), authorizer.AttributesRecord{User: &user.DefaultInfo{Name: who}})
			}()
		}
		synctest.Wait()
		turns.mu.Lock()
		if len(turns.users) != 3 {
			t.Errorf("%d users are asked about, want 3", len(turns.users))
		}
		turns.mu.Unlock()
		time.Sleep(time.Hour)
	})
	if len(turns.users) > 0 {
		t.Errorf("remembers %v", turns.users)
	}
}
