// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// drifts are changes by others of what the hub has created. The hub reverts them.
var drifts = map[string]func(*world, irsa.Identity) error{
	"the trust policy": func(w *world, i irsa.Identity) error {
		trust := i.HubTrustPolicy()
		trust.Statement[0].Condition = nil
		iamRoot, _ := w.root()
		_, err := iamRoot.UpdateAssumeRolePolicy(w.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String(i.HubRole()), PolicyDocument: aws.String(trust.JSON())})
		return err
	},
	"no inline policy": func(w *world, i irsa.Identity) error {
		iamRoot, _ := w.root()
		_, err := iamRoot.DeleteRolePolicy(w.Context(), &iam.DeleteRolePolicyInput{RoleName: aws.String(i.HubRole()), PolicyName: aws.String(i.HubRole())})
		return err
	},
	"the inline policy": func(w *world, i irsa.Identity) error {
		iamRoot, _ := w.root()
		_, err := iamRoot.PutRolePolicy(w.Context(), &iam.PutRolePolicyInput{RoleName: aws.String(i.HubRole()), PolicyName: aws.String(i.HubRole()), PolicyDocument: aws.String(fakeaws.AllowAll)})
		return err
	},
	"a tag of the role": func(w *world, i irsa.Identity) error {
		iamRoot, _ := w.root()
		_, err := iamRoot.UntagRole(w.Context(), &iam.UntagRoleInput{RoleName: aws.String(i.HubRole()), TagKeys: []string{irsa.TagHubCluster}})
		return err
	},
	"no role": func(w *world, i irsa.Identity) error {
		w.hub.RemoveRole(i.HubRole())
		return nil
	},
}

// entryDrifts are changes of access entries.
var entryDrifts = map[string]func(*world, irsa.Identity) error{
	"no entry": func(w *world, i irsa.Identity) error {
		_, eksRoot := w.root()
		_, err := eksRoot.DeleteAccessEntry(w.Context(), &eks.DeleteAccessEntryInput{ClusterName: &w.cluster.Name, PrincipalArn: aws.String(i.HubRoleARN())})
		return err
	},
	"the groups": func(w *world, i irsa.Identity) error {
		_, eksRoot := w.root()
		_, err := eksRoot.UpdateAccessEntry(w.Context(), &eks.UpdateAccessEntryInput{ClusterName: &w.cluster.Name, PrincipalArn: aws.String(i.HubRoleARN()), KubernetesGroups: []string{"admins"}})
		return err
	},
	"the user name": func(w *world, i irsa.Identity) error {
		_, eksRoot := w.root()
		_, err := eksRoot.UpdateAccessEntry(w.Context(), &eks.UpdateAccessEntryInput{ClusterName: &w.cluster.Name, PrincipalArn: aws.String(i.HubRoleARN()), Username: aws.String("admin")})
		return err
	},
	"a tag of the entry": func(w *world, i irsa.Identity) error {
		_, eksRoot := w.root()
		entry := w.hub.AccessEntries(w.cluster.String())[i.HubRoleARN()]
		_, err := eksRoot.UntagResource(w.Context(), &eks.UntagResourceInput{ResourceArn: &entry.ARN, TagKeys: []string{irsa.TagHubCluster}})
		return err
	},
}

const (
	adminPolicy  = "arn:aws:iam::aws:policy/AdministratorAccess"
	clusterAdmin = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
)

// extras are additional rights that others may give the role, and entryExtras those that they may give its entry.
var (
	extras = map[string]func(*world, irsa.Identity) error{
		"the inline policy more": func(w *world, i irsa.Identity) error {
			iamRoot, _ := w.root()
			_, err := iamRoot.PutRolePolicy(w.Context(), &iam.PutRolePolicyInput{RoleName: aws.String(i.HubRole()), PolicyName: aws.String("more"), PolicyDocument: aws.String(fakeaws.AllowAll)})
			return err
		},
		"the policy " + adminPolicy: func(w *world, i irsa.Identity) error {
			iamRoot, _ := w.root()
			_, err := iamRoot.AttachRolePolicy(w.Context(), &iam.AttachRolePolicyInput{RoleName: aws.String(i.HubRole()), PolicyArn: aws.String(adminPolicy)})
			return err
		},
	}
	entryExtras = map[string]func(*world, irsa.Identity) error{
		"the EKS access policy " + clusterAdmin: func(w *world, i irsa.Identity) error {
			_, eksRoot := w.root()
			_, err := eksRoot.AssociateAccessPolicy(w.Context(), &eks.AssociateAccessPolicyInput{ClusterName: &w.cluster.Name, PrincipalArn: aws.String(i.HubRoleARN()),
				PolicyArn: aws.String(clusterAdmin), AccessScope: &ekstypes.AccessScope{Type: ekstypes.AccessScopeTypeCluster}})
			return err
		},
	}
)

// taggings are the ways in which EKS may require the permission to tag, and whether the hub has it.
var taggings = map[string]struct {
	tagging fakeaws.Tagging
	tagged  bool
}{
	"of cluster and entry": {fakeaws.TagsNeedBoth, true}, "of the cluster": {fakeaws.TagsNeedCluster, true},
	"of the entry": {fakeaws.TagsNeedEntry, true}, "refused": {fakeaws.TagsRefused, false},
}

const untagged = "Its EKS access entry does not have the tags of the hub, and works without them: "

func TestFakeAWS_DriftIsRepaired(t *testing.T) {
	for asked, tags := range taggings {
		for _, list := range []map[string]func(*world, irsa.Identity) error{drifts, extras, entryDrifts, entryExtras} {
			for name, drift := range list {
				if !tags.tagged && name == "the user name" {
					continue // see TestFakeAWS_ForeignEntryIsRetained
				}
				t.Run(fmt.Sprintf("%s, tags %s", name, asked), func(t *testing.T) {
					w := newWorld(t, "us-west-2", AccessEntry, nil)
					w.SetTagging(tags.tagging)
					a, record := w.join("a")
					w.mustGrantWith("a", record)
					before := w.hub.Roles()[a.HubRole()]
					w.anHour()
					if err := drift(w, a); err != nil {
						t.Fatal(err)
					}
					said := w.mustGrantWith("a", record)
					if extras[name] != nil || entryExtras[name] != nil {
						if want := "Others had given it " + name + ", which is removed"; !strings.Contains(said, want) {
							t.Errorf("it says %q, want %q", said, want)
						}
					} else if tags.tagged && said != "" {
						t.Errorf("it says %q", said)
					}
					w.mustEnter(a)
					after := w.hub.Roles()[a.HubRole()]
					after.ID = before.ID
					mustEqual(t, "role", after, before)
					entry := w.hub.AccessEntries(w.cluster.String())[before.ARN]
					mustEqual(t, "access policies", len(entry.AccessPolicies), 0)
					want := before.Tags
					if !tags.tagged {
						want = map[string]string{}
					}
					mustEqual(t, "tags of the entry", entry.Tags, want)
					w.ResetCalls()
					said = w.mustGrantWith("a", record)
					if tags.tagged {
						mustEqual(t, "writes of the next", len(w.Writes()), 0)
						mustEqual(t, "the next says", said, "")
					} else {
						mustEqual(t, "writes of the next", w.Count("eks:TagResource"), len(w.Writes()))
						if !strings.HasPrefix(said, untagged) || !strings.Contains(said, "eks:TagResource") {
							t.Errorf("it says %q", said)
						}
					}
					mustRevoke(t, w.Driver, "a", record)
					mustEqual(t, "left", w.leaks(), []string(nil))
				})
			}
		}
	}
}

// It is not known on which ARN EKS requires the permission to tag, and the policy of the hub's role may be older than the permissions that it needs
// today.
func TestFakeAWS_EntriesWithoutTagPermission(t *testing.T) {
	for asked, tags := range taggings {
		for allowed, change := range map[string]func(*world, *irsa.Statement){
			"all":           func(*world, *irsa.Statement) {},
			"the cluster's": func(w *world, s *irsa.Statement) { s.Resource = irsa.Values{w.cluster.String()} },
			"the entry's":   func(_ *world, s *irsa.Statement) { s.Resource = s.Resource[1:] },
			"without a key": func(_ *world, s *irsa.Statement) {
				s.Condition["ForAllValues:StringEquals"]["aws:TagKeys"] = irsa.Values{"x"}
			},
			"another action": func(_ *world, s *irsa.Statement) { s.Action = irsa.Values{"eks:ListTagsForResource"} },
		} {
			t.Run(fmt.Sprintf("asked %s, allowed %s", asked, allowed), func(t *testing.T) {
				var cluster irsa.ClusterARN
				w := newWorld(t, "us-west-2", AccessEntry, func(p irsa.PolicyDocument) irsa.PolicyDocument {
					last := &p.Statement[len(p.Statement)-1]
					cluster = must(irsa.ParseClusterARN(last.Resource[0]))(t)
					change(&world{cluster: cluster}, last)
					return p
				})
				w.SetTagging(tags.tagging)
				a, record := w.join("a")
				said := w.mustGrantWith("a", record)
				tagged := len(w.hub.AccessEntries(w.cluster.String())[a.HubRoleARN()].Tags) > 0
				if tagged != (said == "") || !tagged && !strings.HasPrefix(said, untagged) {
					t.Errorf("tagged: %t, it says %q", tagged, said)
				}
				if allowed == "all" && tagged != tags.tagged {
					t.Errorf("tagged: %t", tagged)
				}
				w.mustEnter(a)
				mustRevoke(t, w.Driver, "a", record)
				mustEqual(t, "left", w.leaks(), []string(nil))
			})
		}
	}
}

// An entry that others have created for the role is theirs, whatever the hub may tag. It is reported, and not changed.
func TestFakeAWS_ForeignEntryIsRetained(t *testing.T) {
	for asked, tags := range taggings {
		t.Run(asked, func(t *testing.T) {
			w := newWorld(t, "us-west-2", AccessEntry, nil)
			w.SetTagging(tags.tagging)
			a, record := w.join("a")
			w.mustGrantWith("a", record)
			_, eksRoot := w.root()
			name, principal := &w.cluster.Name, aws.String(a.HubRoleARN())
			must(eksRoot.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: name, PrincipalArn: principal}))(t)
			must(eksRoot.CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{ClusterName: name, PrincipalArn: principal,
				Username: aws.String("admin"), KubernetesGroups: []string{"admins"}}))(t)
			foreign := w.hub.AccessEntries(w.cluster.String())
			w.anHour()
			w.ResetCalls()
			err := w.Grant(t.Context(), "a", record)
			if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), `already exists, with the user name "admin", and was not created by this hub`) {
				t.Errorf("got %v", err)
			}
			mustEqual(t, "writes", len(w.Writes()), 0)
			// Deleting the role ends the access of its users.
			mustRevoke(t, w.Driver, "a", record)
			left := w.hub.AccessEntries(w.cluster.String())
			mustEqual(t, "entries", len(left), len(foreign))
			mustEqual(t, "groups", left[*principal].KubernetesGroups, []string{"admins"})
			mustEqual(t, "left", w.leaks(), []string{"access entry " + *principal})
		})
	}
}

// A permission that the hub's own role does not have prevents no grant.
func TestFakeAWS_UnremovableExtrasAreReported(t *testing.T) {
	for _, action := range []string{"iam:ListRolePolicies", "iam:ListAttachedRolePolicies", "iam:DetachRolePolicy",
		"eks:ListAssociatedAccessPolicies", "eks:DisassociateAccessPolicy"} {
		t.Run(action, func(t *testing.T) {
			w := newWorld(t, "us-west-2", AccessEntry, func(p irsa.PolicyDocument) irsa.PolicyDocument {
				for i := range p.Statement {
					s := &p.Statement[i]
					for n, a := range s.Action {
						if a == action {
							s.Action[n] = "eks:DescribeUpdate"
						}
					}
				}
				return p
			})
			a, record := w.join("a")
			mustGrant(t, w.Driver, "a", record)
			w.anHour()
			for _, list := range []map[string]func(*world, irsa.Identity) error{extras, entryExtras} {
				for _, extra := range list {
					if err := extra(w, a); err != nil {
						t.Fatal(err)
					}
				}
			}
			said := w.mustGrantWith("a", record)
			if !strings.Contains(said, "is not authorized to perform: "+action+" ") || strings.Contains(said, "\n") {
				t.Errorf("it says %q", said)
			}
			// It removes what it may.
			if n := strings.Count(said, "Others had given it"); n != 2 {
				t.Errorf("%d of three are removed: %q", n, said)
			}
			w.mustEnter(a)
		})
	}
}

// A deletion that ends half-way leaves a role that cannot be assumed.
func TestFakeAWS_PartiallyDeletedRoleDeniesAccess(t *testing.T) {
	w := newWorld(t, "us-west-2", AWSAuth, nil)
	a, record := w.join("a")
	mustGrant(t, w.Driver, "a", record)
	if _, err := w.enter(a, a); err != nil && strings.Contains(err.Error(), "sts:AssumeRole") {
		t.Fatal(err)
	}
	remove := w.Inject(fakeaws.Fault{Operation: "iam:DeleteRole", Err: fakeaws.Internal})
	if err := w.Revoke(t.Context(), "a", record); err == nil {
		t.Error("no error")
	}
	if role := w.hub.Roles()[a.HubRole()]; !irsa.Equivalent(role.Trust, irsa.NoTrustPolicy().JSON()) || len(role.Policies) > 0 {
		t.Errorf("trust %s, policies %v", role.Trust, role.Policies)
	}
	if _, err := w.enter(a, a); err == nil || !strings.Contains(err.Error(), "not authorized to perform: sts:AssumeRole") {
		t.Errorf("the agent becomes the role: %v", err)
	}
	remove()
	mustRevoke(t, w.Driver, "a", record)
	mustEqual(t, "left", w.leaks(), []string(nil))
}
