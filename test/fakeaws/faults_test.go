// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
)

func TestFault_ThrottlingCodes(t *testing.T) {
	w := newWorld(t)
	remove := w.Inject(Fault{Err: Throttled})
	_, err := w.root.iam.ListRoles(t.Context(), nil)
	wantCode(t, err, "Throttling", "Rate exceeded")
	_, err = w.root.sts.GetCallerIdentity(t.Context(), nil)
	wantCode(t, err, "Throttling", "Rate exceeded")
	_, err = w.root.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("hub")})
	wantCode(t, err, "ThrottlingException", "Rate exceeded")
	if !retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err).Bool() {
		t.Errorf("the SDK does not take %v for throttling", err)
	}
	remove()
	noError(t, nil, second(w.root.iam.ListRoles(t.Context(), nil)))
}

func TestFault_AffectsMatchingCall(t *testing.T) {
	w := newWorld(t)
	w.Inject(Fault{Operation: "iam:List*", Call: 2, Err: Internal})
	var codes []string
	for range 3 {
		_, err := w.root.iam.ListRoles(t.Context(), nil)
		var api smithy.APIError
		if errors.As(err, &api) {
			codes = append(codes, api.ErrorCode())
		} else {
			codes = append(codes, "")
		}
		noError(t, nil, second(w.root.sts.GetCallerIdentity(t.Context(), nil)))
	}
	if want := []string{"", "InternalFailure", ""}; !reflect.DeepEqual(codes, want) {
		t.Errorf("errors %q, want %q", codes, want)
	}
}

func TestFault_ProbabilityIsReproducible(t *testing.T) {
	run := func() (outcome string) {
		w := newWorld(t)
		w.Inject(Fault{Operation: "iam:*", Probability: 0.3, Err: Throttled})
		for range 40 {
			if _, err := w.root.iam.ListRoles(t.Context(), nil); err != nil {
				outcome += "x"
			} else {
				outcome += "."
			}
		}
		return outcome
	}
	first, again := run(), run()
	if first != again {
		t.Errorf("%s and then %s", first, again)
	}
	if n := strings.Count(first, "x"); n < 4 || n > 22 {
		t.Errorf("%d of 40 calls failed, at a probability of 0.3", n)
	}
}

func TestFault_AfterEffectIsACrash(t *testing.T) {
	w := newWorld(t)
	w.Inject(Fault{Operation: "iam:CreateRole", Call: 1, Err: Cut})
	w.Inject(Fault{Operation: "iam:CreateRole", Call: 2, Err: Cut, AfterEffect: true})
	create := func() error {
		return second(w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String(trust(hubID))}))
	}
	for call, roles := range []int{0, 1} {
		err := create()
		var api smithy.APIError
		if err == nil || errors.As(err, &api) {
			t.Errorf("call %d: error %v, want none of AWS's", call+1, err)
		}
		if n := len(w.hub.Roles()); n != roles {
			t.Errorf("call %d: %d roles, want %d", call+1, n, roles)
		}
	}
	wantType[*types.EntityAlreadyExistsException](t, create())
	if calls := w.Calls(); len(calls) != 3 || calls[0].Error != "Cut" || calls[1].Error != "Cut" || calls[2].Error != "EntityAlreadyExists" {
		t.Errorf("log %+v", calls)
	}
}

func TestFault_HookMayDecideAndBlock(t *testing.T) {
	w := newWorld(t)
	entered, leave := make(chan Call), make(chan error)
	w.Inject(Fault{Operation: "iam:GetRole", Hook: func(c Call) error { entered <- c; return <-leave }})
	done := make(chan error)
	go func() {
		done <- second(w.root.iam.GetRole(context.Background(), &iam.GetRoleInput{RoleName: aws.String("r")}))
	}()
	if c := <-entered; c.Params["RoleName"] != "r" || c.Resource != "arn:aws:iam::"+hubID+":role/r" {
		t.Errorf("call %+v", c)
	}
	noError(t, nil, second(w.root.sts.GetCallerIdentity(t.Context(), nil))) // other calls continue
	leave <- &api.Error{Code: "ServiceFailure", Message: "out of order"}
	wantType[*types.ServiceFailureException](t, <-done)
}

func TestDelayVisibility_NewRolesAreHidden(t *testing.T) {
	get := func(w *world) error {
		return second(w.root.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("r")}))
	}
	for name, look := range map[string]func(*world, string) error{
		"GetRole":           func(w *world, _ string) error { return get(w) },
		"CreateAccessEntry": func(w *world, arn string) error { return second(w.entry(t, w.root, arn, nil)) },
		"AssumeRole": func(w *world, arn string) error {
			return second(w.user(t, w.hub, newID(""), AllowAll).sts.AssumeRole(t.Context(), assume(arn, "s1")))
		},
		"trust policy": func(w *world, arn string) error {
			return second(w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String(newID("r")), AssumeRolePolicyDocument: aws.String(trust(arn))}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.DelayVisibility(2, 0)
			arn := w.createRole(t, "r")
			for i := range 2 {
				if look(w, arn) == nil {
					t.Errorf("look %d finds the role", i+1)
				}
			}
			noError(t, nil, look(w, arn))
		})
	}
	t.Run("for a time", func(t *testing.T) {
		w := newWorld(t)
		now := time.Now()
		w.SetClock(func() time.Time { return now })
		w.DelayVisibility(0, time.Minute)
		w.createRole(t, "r")
		wantType[*types.NoSuchEntityException](t, get(w))
		now2 := now.Add(time.Minute)
		w.SetClock(func() time.Time { return now2 })
		noError(t, nil, get(w))
	})
	t.Run("not from writes", func(t *testing.T) {
		w := newWorld(t)
		w.DelayVisibility(100, 0)
		w.createRole(t, "r")
		_, err := w.root.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String(trust(hubID))})
		wantType[*types.EntityAlreadyExistsException](t, err)
		noError(t, nil, second(w.root.iam.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("r")})))
	})
}

func TestCalls_RecordCallers(t *testing.T) {
	w := newWorld(t)
	user := w.user(t, w.hub, "u", allow("iam:*", "*"))
	arn := "arn:aws:iam::" + hubID + ":role/r"
	noError(t, nil, second(user.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String(trust(hubID))})))
	noError(t, nil, second(user.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("r")})))
	_ = second(w.entry(t, user, arn, nil))
	bad := w.hub.Config(Credentials{"AKIAX", "x", ""})
	_ = second(clientsOf(bad).iam.ListRoles(t.Context(), nil))
	caller := "arn:aws:iam::" + hubID + ":user/u"
	want := []Call{
		{Operation: "iam:CreateRole", Account: hubID, Caller: caller, Resource: arn, Write: true},
		{Operation: "iam:GetRole", Account: hubID, Caller: caller, Resource: arn},
		{Operation: "eks:CreateAccessEntry", Account: hubID, Caller: caller, Resource: w.clusterARN, Write: true, Error: "AccessDeniedException"},
		{Operation: "iam:ListRoles", Error: "InvalidClientTokenId"},
	}
	got := w.Calls()
	for i := range got {
		got[i].Time, got[i].Params = time.Time{}, nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("log\n%+v\nwant\n%+v", got, want)
	}
	if len(w.Writes()) != 2 || w.Count("iam:*") != 3 || w.Count("iam:GetRole", "eks:*") != 2 || w.Count() != 4 {
		t.Errorf("%d writes, %d of IAM, %d in all", len(w.Writes()), w.Count("iam:*"), w.Count())
	}
	w.ResetCalls()
	if w.Count() != 0 {
		t.Errorf("%d calls after the reset", w.Count())
	}
}

// TestServer_Concurrently verifies that clusters can be created and deleted concurrently in spite of failures, with the SDK's own retries.
func TestServer_Concurrently(t *testing.T) {
	w := newWorld(t)
	w.Inject(Fault{Probability: 0.1, Err: Throttled})
	w.Inject(Fault{Probability: 0.05, Err: Internal})
	config := w.hub.Config(w.hub.Root())
	config.HTTPClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.RateLimiter = 20, noLimit{}
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	}
	c := clientsOf(config)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			name := fmt.Sprint("r", i)
			out, err := c.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trust(hubID))})
			if err != nil {
				t.Error(err)
				return
			}
			if err := second(w.entry(t, c, *out.Role.Arn, nil)); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				return
			}
			err = second(c.eks.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: aws.String("hub"), PrincipalArn: out.Role.Arn}))
			if err := errors.Join(err, second(c.iam.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: &name}))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if roles, entries := len(w.hub.Roles()), len(w.hub.AccessEntries(w.clusterARN)); roles != 25 || entries != 25 {
		t.Errorf("%d roles and %d entries, want 25", roles, entries)
	}
}

type noLimit struct{}

func (noLimit) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}
func (noLimit) AddTokens(uint) error { return nil }
