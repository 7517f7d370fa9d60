// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
)

// calls are calls of each kind that are only rejected because of a limit.
func (c clients) calls() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"list roles": func(ctx context.Context) error { return second(c.iam.ListRoles(ctx, nil)) },
		"tag": func(ctx context.Context) error {
			return second(c.iam.UntagRole(ctx, &iam.UntagRoleInput{RoleName: aws.String("r"), TagKeys: []string{"k"}}))
		},
		"list entries": func(ctx context.Context) error {
			return second(c.eks.ListAccessEntries(ctx, &eks.ListAccessEntriesInput{ClusterName: aws.String("hub")}))
		},
		"who": func(ctx context.Context) error {
			return second(c.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))
		},
	}
}

func TestLimits_AreTokenBucketsByOperationAndAccount(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "r")
	here := clientsOf(w.hub.Config(w.hub.Root()))
	there := clientsOf(w.managed.Config(w.managed.Root()))
	w.SetLimits(Limits{
		Each:   map[string]Limit{"iam:*": {Burst: 3, PerSecond: 1}, "iam:List*": {Burst: 5, PerSecond: 2}, "eks:*": {Burst: 2, PerSecond: 0.5}},
		Shared: map[string]Limit{"sts:*": {Burst: 4, PerSecond: 4}},
	})
	synctest.Test(t, func(t *testing.T) {
		// allowed returns the number of consecutive calls until one is throttled.
		allowed := func(of clients, what string) (n int) {
			for err := error(nil); ; n++ {
				if err = of.calls()[what](t.Context()); err != nil {
					wantCode(t, err, map[string]string{"list entries": "ThrottlingException"}[what]+map[bool]string{true: "Throttling"}[what != "list entries"], "Rate exceeded")
					return n
				}
				if n > 1000 {
					t.Fatalf("%s is not throttled", what)
				}
			}
		}
		want := func(when string, n map[string]int) {
			t.Helper()
			for what, want := range n {
				if got := allowed(here, what); got != want {
					t.Errorf("%s, %s: %d calls, want %d", when, what, got, want)
				}
			}
		}
		want("at first", map[string]int{"list roles": 5, "tag": 3, "list entries": 2, "who": 4})
		want("at once again", map[string]int{"list roles": 0, "tag": 0, "list entries": 0, "who": 0})
		if got := allowed(there, "list roles"); got != 5 {
			t.Errorf("another account has %d calls, want 5", got)
		}
		time.Sleep(2 * time.Second)
		want("two seconds later", map[string]int{"list roles": 4, "tag": 2, "list entries": 1, "who": 4})
		time.Sleep(time.Hour)
		want("an hour later", map[string]int{"list roles": 5, "tag": 3, "list entries": 2, "who": 4})
	})
	w.SetLimits(Limits{})
	for what, call := range here.calls() {
		for range 50 {
			if err := call(t.Context()); err != nil {
				t.Fatalf("without limits, %s: %v", what, err)
			}
		}
	}
}

func TestAWSLimits_ApplyToAllOperations(t *testing.T) {
	limits := AWSLimits()
	for name := range operations {
		n := 0
		for _, list := range []map[string]Limit{limits.Each, limits.Shared} {
			for pattern, l := range list {
				if l.Burst < 1 || l.PerSecond <= 0 {
					t.Errorf("%s: %+v lets nothing pass", pattern, l)
				}
				if iampolicy.Like(pattern, name) {
					n++
				}
			}
		}
		if n == 0 {
			t.Errorf("%s has no limit", name)
		}
	}
}
