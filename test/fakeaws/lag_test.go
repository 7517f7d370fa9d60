// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// TestLag_ReadsAreStale verifies that each write is visible to reads only after the delay of its kind, and that delays of other kinds have
// no effect.
func TestLag_ReadsAreStale(t *testing.T) {
	const admin, view = "arn:aws:iam::aws:policy/AdministratorAccess", "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
	r, hub, p := aws.String("r"), aws.String("hub"), aws.String("p")
	for name, test := range map[string]struct {
		lag   func(Delay) Lag
		write func(*testing.T, *world, string) error
		read  func(*testing.T, *world, string) string
	}{
		"an inline policy": {
			func(d Delay) Lag { return Lag{Policies: d} },
			func(t *testing.T, w *world, _ string) error {
				return second(w.root.iam.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: r, PolicyName: p, PolicyDocument: aws.String(AllowAll)}))
			},
			func(t *testing.T, w *world, _ string) string {
				out, err := w.root.iam.GetRolePolicy(t.Context(), &iam.GetRolePolicyInput{RoleName: r, PolicyName: p})
				if err != nil {
					wantType[*types.NoSuchEntityException](t, err)
					return ""
				}
				return *out.PolicyDocument
			},
		},
		"the list of attached policies": {
			func(d Delay) Lag { return Lag{Policies: d} },
			func(t *testing.T, w *world, _ string) error {
				return second(w.root.iam.AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{RoleName: r, PolicyArn: aws.String(admin)}))
			},
			func(t *testing.T, w *world, _ string) string {
				return fmt.Sprint(len(must(w.root.iam.ListAttachedRolePolicies(t.Context(), &iam.ListAttachedRolePoliciesInput{RoleName: r}))(t).AttachedPolicies))
			},
		},
		"the trust policy": {
			func(d Delay) Lag { return Lag{Policies: d} },
			func(t *testing.T, w *world, _ string) error {
				return second(w.root.iam.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: r, PolicyDocument: aws.String(trust(managedID))}))
			},
			func(t *testing.T, w *world, _ string) string {
				return *must(w.root.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: r}))(t).Role.AssumeRolePolicyDocument
			},
		},
		"a tag": {
			func(d Delay) Lag { return Lag{Tags: d} },
			func(t *testing.T, w *world, _ string) error {
				return second(w.root.iam.TagRole(t.Context(), &iam.TagRoleInput{RoleName: r, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}}))
			},
			func(t *testing.T, w *world, _ string) string {
				return fmt.Sprint(len(must(w.root.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: r}))(t).Role.Tags))
			},
		},
		"a new entry": {
			func(d Delay) Lag { return Lag{Entries: d} },
			func(t *testing.T, w *world, _ string) error {
				arn := w.createRole(t, "other")
				return second(w.root.eks.CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{ClusterName: hub, PrincipalArn: &arn}))
			},
			func(t *testing.T, w *world, _ string) string {
				return fmt.Sprint(must(w.root.eks.ListAccessEntries(t.Context(), &eks.ListAccessEntriesInput{ClusterName: hub}))(t).AccessEntries)
			},
		},
		"an entry's groups": {
			func(d Delay) Lag { return Lag{Entries: d} },
			func(t *testing.T, w *world, arn string) error {
				return second(w.root.eks.UpdateAccessEntry(t.Context(), &eks.UpdateAccessEntryInput{ClusterName: hub, PrincipalArn: &arn, KubernetesGroups: []string{"g"}}))
			},
			func(t *testing.T, w *world, arn string) string {
				return fmt.Sprint(must(w.root.eks.DescribeAccessEntry(t.Context(), &eks.DescribeAccessEntryInput{ClusterName: hub, PrincipalArn: &arn}))(t).AccessEntry.KubernetesGroups)
			},
		},
		"an entry's access policies": {
			func(d Delay) Lag { return Lag{Entries: d} },
			func(t *testing.T, w *world, arn string) error {
				return second(w.root.eks.AssociateAccessPolicy(t.Context(), &eks.AssociateAccessPolicyInput{ClusterName: hub, PrincipalArn: &arn,
					PolicyArn: aws.String(view), AccessScope: &ekstypes.AccessScope{Type: ekstypes.AccessScopeTypeCluster}}))
			},
			func(t *testing.T, w *world, arn string) string {
				out := must(w.root.eks.ListAssociatedAccessPolicies(t.Context(), &eks.ListAssociatedAccessPoliciesInput{ClusterName: hub, PrincipalArn: &arn}))(t)
				return fmt.Sprint(len(out.AssociatedAccessPolicies))
			},
		},
		"an entry that goes": {
			func(d Delay) Lag { return Lag{Entries: d} },
			func(t *testing.T, w *world, arn string) error {
				return second(w.root.eks.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: hub, PrincipalArn: &arn}))
			},
			func(t *testing.T, w *world, arn string) string {
				out, err := w.root.eks.DescribeAccessEntry(t.Context(), &eks.DescribeAccessEntryInput{ClusterName: hub, PrincipalArn: &arn})
				if err != nil {
					wantType[*ekstypes.ResourceNotFoundException](t, err)
					return ""
				}
				return *out.AccessEntry.PrincipalArn
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []Delay{{Reads: 2}, {For: time.Minute}, {}} {
				w := newWorld(t)
				now := time.Now()
				w.SetClock(func() time.Time { return now })
				arn := w.createRole(t, "r")
				noError(t, nil, second(w.entry(t, w.root, arn, nil)))
				before := test.read(t, w, arn)
				w.SetLag(test.lag(kind))
				noError(t, nil, test.write(t, w, arn))
				shows := func() bool { return test.read(t, w, arn) != before }
				switch {
				case kind.Reads > 0:
					for n := range kind.Reads {
						if shows() {
							t.Errorf("read %d tells it already", n+1)
						}
					}
				case kind.For > 0:
					for _, d := range []time.Duration{0, kind.For - time.Second} {
						w.SetClock(func() time.Time { return now.Add(d) })
						if shows() {
							t.Errorf("it is told after %s", d)
						}
					}
					w.SetClock(func() time.Time { return now.Add(kind.For) })
				}
				if !shows() {
					t.Errorf("with the delay %+v it is not told at the end", kind)
				}
				// The delay of a different kind has no effect.
				if kind.For > 0 {
					w = newWorld(t)
					arn = w.createRole(t, "r")
					noError(t, nil, second(w.entry(t, w.root, arn, nil)))
					other := Lag{Policies: kind, Tags: kind, Entries: kind}
					switch test.lag(kind) {
					case Lag{Policies: kind}:
						other.Policies = Delay{}
					case Lag{Tags: kind}:
						other.Tags = Delay{}
					default:
						other.Entries = Delay{}
					}
					w.SetLag(other)
					before = test.read(t, w, arn)
					noError(t, nil, test.write(t, w, arn))
					if !shows() {
						t.Error("it is delayed by the delay of others")
					}
				}
			}
		})
	}
}

// TestLag_TwoWrites verifies that after two writes within the delay, reads return the value before both.
func TestLag_TwoWrites(t *testing.T) {
	w := newWorld(t)
	w.createRole(t, "r")
	w.SetLag(Lag{Tags: Delay{Reads: 1}})
	for _, key := range []string{"a", "b"} {
		noError(t, nil, second(w.root.iam.TagRole(t.Context(), &iam.TagRoleInput{
			RoleName: aws.String("r"), Tags: []types.Tag{{Key: &key, Value: aws.String("v")}}})))
	}
	for _, want := range []int{0, 2} {
		if got := len(must(w.root.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("r")}))(t).Role.Tags); got != want {
			t.Errorf("%d tags, want %d", got, want)
		}
	}
}
