// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/fakeaws"
	"github.com/clusterhub/clusterhub/test/sample"
)

// lives are sequences of events for a cluster, with what AWS has at the end.
var lives = map[string]struct {
	before, do func(f *awsFixture)
	want       func(f *awsFixture) []string
}{
	"accept": {func(*awsFixture) {}, func(*awsFixture) {}, func(f *awsFixture) []string { return f.granted("c1") }},
	"deny":   {func(f *awsFixture) { f.settle("c1") }, func(f *awsFixture) { f.change("c1", deny) }, nil},
	"delete": {func(f *awsFixture) { f.settle("c1") }, func(f *awsFixture) { deleteCluster(f.fixture) }, nil},
	"deny with what others have given it": {
		func(f *awsFixture) {
			f.settle("c1")
			f.giveMore("c1")
		},
		func(f *awsFixture) { f.change("c1", deny) }, nil,
	},
	"take away what others have given it": {
		func(f *awsFixture) {
			f.settle("c1")
			f.giveMore("c1")
		},
		func(f *awsFixture) {
			_, _ = f.reconcile("c1")
			f.clock.SetTime(f.clock.Now().Add(3 * time.Hour))
		}, func(f *awsFixture) []string { return f.granted("c1") },
	},
	"delete while it is accepted": {
		func(f *awsFixture) {
			f.killAfter = 7 // the role has been created, and nothing else
			_, _ = f.reconcile("c1")
			f.restart()
			if got := f.inAWS(); !slices.Equal(got, []string{"role of c1 with 0 policies"}) {
				f.Fatalf("in AWS: %q", got)
			}
		},
		func(f *awsFixture) { deleteCluster(f.fixture) }, nil,
	},
	"an older hub":                  {func(f *awsFixture) { older(f.fixture) }, func(*awsFixture) {}, func(f *awsFixture) []string { return f.granted("c1") }},
	"deny, on a hub that was older": {func(f *awsFixture) { older(f.fixture) }, func(f *awsFixture) { f.change("c1", deny) }, nil},
	"delete by force": {
		func(f *awsFixture) { f.settle("c1") },
		func(f *awsFixture) {
			f.change("c1", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
			deleteCluster(f.fixture)
		}, nil,
	},
	"accept again as another EKS cluster": {
		func(f *awsFixture) {
			f.settle("c1")
			f.change("c1", deny)
			f.killAfter = 1
			_, _ = f.reconcile("c1")
			f.restart()
		},
		func(f *awsFixture) {
			f.change("c1", func(c *clusterv1.ManagedCluster) {
				accept(c)
				c.Annotations[registration.AnnotationManagedClusterARN] = f.arn("c2")
			})
		},
		func(f *awsFixture) []string { return f.granted("c1") },
	},
	"move to another access": {
		func(f *awsFixture) { accessedOtherwise(f) },
		func(f *awsFixture) {
			_, _ = f.reconcile("c1")
			f.clock.SetTime(f.clock.Now().Add(3 * time.Hour))
		}, func(f *awsFixture) []string { return f.granted("c1") },
	},
	"leave the former access": {
		func(f *awsFixture) { accessedOtherwise(f) },
		func(f *awsFixture) {
			f.nextCheck("c1")
			f.clock.SetTime(f.clock.Now().Add(3 * time.Hour))
		}, func(f *awsFixture) []string { return f.granted("c1") },
	},
	"deny while it moves": {
		func(f *awsFixture) {
			accessedOtherwise(f)
			f.restart()
			f.nextCheck("c1")
		},
		func(f *awsFixture) { f.change("c1", deny) }, nil,
	},
	"repair": {
		func(f *awsFixture) {
			f.settle("c1")
			f.aws.Age(time.Hour)
			f.hub.RemoveRole(f.hubRole("c1"))
		},
		func(f *awsFixture) {
			_, _ = f.reconcile("c1")
			f.clock.SetTime(f.clock.Now().Add(3 * time.Hour))
		}, func(f *awsFixture) []string { return f.granted("c1") },
	},
}

// accessedOtherwise accepts a cluster while the hub uses a different access mode than afterwards.
func accessedOtherwise(f *awsFixture) {
	f.Helper()
	if err := f.hub.ChangeRole(irsa.CreatorRole(f.hubCluster), func(r *fakeaws.Role) {
		r.Policies["creator"] = irsa.CreatorPolicy(f.hubCluster, irsa.HubRoles{AccessEntries: true}).JSON()
	}); err != nil {
		f.Fatal(err)
	}
	access := f.access
	f.access = map[awsirsa.Access]awsirsa.Access{awsirsa.AccessEntry: awsirsa.AWSAuth, awsirsa.AWSAuth: awsirsa.AccessEntry}[access]
	f.restart()
	f.settle("c1")
	if diff := cmp.Diff(f.granted("c1"), f.inAWS()); diff != "" {
		f.Fatalf("before it moves (-want +got):\n%s", diff)
	}
	f.access = access
}

// world is the state of AWS: the access mode, the number of reads for which a new role is hidden, and the permissions for tags.
type world struct {
	access  awsirsa.Access
	hidden  int
	tagging fakeaws.Tagging
}

// eachLife runs a test for each sequence of events in each world.
func eachLife(t *testing.T, worlds []world, test func(t *testing.T, newLife func() *awsFixture, do func(f *awsFixture), end func(f *awsFixture))) {
	for name, life := range lives {
		for _, w := range worlds {
			t.Run(fmt.Sprintf("%s, by %s, roles hidden for %d looks, tagging %d", name, w.access, w.hidden, w.tagging), func(t *testing.T) {
				newLife := func() *awsFixture {
					f := newAWSFixture(t, w.access, "c1")
					f.mortal()
					f.aws.DelayVisibility(w.hidden, 0)
					f.aws.SetTagging(w.tagging)
					life.before(f)
					f.restart()
					return f
				}
				test(t, newLife, life.do, func(f *awsFixture) {
					f.Helper()
					f.settle("c1")
					for range 3 { // the attempts of a move
						f.nextCheck("c1")
					}
					var want []string
					if life.want != nil {
						want = life.want(f)
					}
					if diff := cmp.Diff(want, f.inAWS()); diff != "" {
						f.Errorf("after %q, in AWS (-want +got):\n%s", f.effects, diff)
					}
					// All of it can be revoked.
					if f.client.Get(f.Context(), client.ObjectKey{Name: "c1"}, &clusterv1.ManagedCluster{}) == nil {
						if f.cluster("c1").DeletionTimestamp.IsZero() {
							deleteCluster(f.fixture)
						}
						f.settle("c1")
					}
					if left := f.inAWS(); len(left) > 0 {
						f.Errorf("after %q, left in AWS: %q", f.effects, left)
					}
					if diff := cmp.Diff([]string{"Namespace /c1"}, f.has()); diff != "" {
						f.Errorf("after %q, left on the hub (-want +got):\n%s", f.effects, diff)
					}
				})
			})
		}
	}
}

// TestKilled_NothingLeaksInAWS kills the process after an effect on the hub, AWS or aws-auth: the next process reaches the same result, and nothing
// is left that no record names.
func TestKilled_NothingLeaksInAWS(t *testing.T) {
	eachLife(t, []world{
		{awsirsa.AccessEntry, 0, fakeaws.TagsNeedBoth}, {awsirsa.AccessEntry, 2, fakeaws.TagsRefused},
		{awsirsa.AWSAuth, 0, fakeaws.TagsNeedBoth},
	}, func(t *testing.T, newLife func() *awsFixture, do, end func(f *awsFixture)) {
		// run reconciles until the process dies, or does not kill it if killAfter is -1, and returns the number of its effects.
		run := func(killAfter int) int {
			f := newLife()
			do(f)
			f.effects, f.killAfter = nil, killAfter
			for range 30 {
				result, err := f.reconcile("c1")
				if f.dead {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if result.RequeueAfter > 0 {
					f.clock.SetTime(f.clock.Now().Add(min(result.RequeueAfter, time.Minute)))
				}
			}
			if killAfter > 0 && !f.dead {
				t.Fatalf("the process was not killed after %d effects: %q", killAfter, f.effects)
			}
			effects := len(f.effects)
			f.restart()
			end(f)
			return effects
		}
		effects := run(-1)
		if effects < 2 {
			t.Errorf("only %d effects", effects)
		}
		for _, n := range sample.Third(t, effects) {
			run(n + 1)
		}
	})
}

// TestLostResponses_Recover loses a response of AWS: the call has had its effect, and the process does not know.
func TestLostResponses_Recover(t *testing.T) {
	eachLife(t, []world{{awsirsa.AccessEntry, 0, fakeaws.TagsNeedBoth}}, func(t *testing.T, newLife func() *awsFixture, do, end func(f *awsFixture)) {
		// run loses the response to a call, counted from 1, and returns the number of calls.
		run := func(loses int) int {
			f := newLife()
			lost := false
			calls := 0
			f.aws.Inject(fakeaws.Fault{AfterEffect: true, Hook: func(c fakeaws.Call) error {
				// The SDK's retry is lost, too.
				calls++
				if calls == loses || lost && calls == loses+1 {
					lost = true
					return fakeaws.Cut
				}
				return nil
			}})
			do(f)
			end(f)
			if loses > 0 && !lost {
				t.Fatalf("there was no call %d", loses)
			}
			return calls
		}
		for _, n := range sample.Third(t, run(0)) {
			run(n + 1)
		}
	})
}
