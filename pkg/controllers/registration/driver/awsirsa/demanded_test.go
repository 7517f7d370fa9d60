// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// demanded are requirements that a platform team may have for roles.
var demanded = irsa.HubRoles{AccessEntries: true, Path: "/platform/clusterhub/", Boundary: "arn:aws:iam::" + hubAccount + ":policy/" + boundaryPolicy}

// boundaryDrifts are changes of the boundary of a role by others.
var boundaryDrifts = map[string]func(*world, irsa.Identity) error{
	"no boundary": func(w *world, i irsa.Identity) error {
		iamRoot, _ := w.root()
		_, err := iamRoot.DeleteRolePermissionsBoundary(w.Context(), &iam.DeleteRolePermissionsBoundaryInput{RoleName: aws.String(i.HubRole())})
		return err
	},
	"another boundary": func(w *world, i irsa.Identity) error {
		iamRoot, _ := w.root()
		_, err := iamRoot.PutRolePermissionsBoundary(w.Context(), &iam.PutRolePermissionsBoundaryInput{RoleName: aws.String(i.HubRole()), PermissionsBoundary: aws.String(adminPolicy)})
		return err
	},
}

// role returns the role of a cluster in AWS.
func (w *world) role(of irsa.Identity) fakeaws.Role { return w.hub.Roles()[of.HubRole()] }

func TestPathAndBoundary_ClusterLifecycle(t *testing.T) {
	for _, access := range []Access{AccessEntry, AWSAuth} {
		t.Run(string(access), func(t *testing.T) {
			roles := demanded
			roles.AccessEntries = access == AccessEntry
			w := newWorldOf(t, "us-west-2", roles, nil)
			a, record := w.join("a")
			mustGrant(t, w.Driver, "a", record)
			arn := "arn:aws:iam::" + hubAccount + ":role/platform/clusterhub/" + a.HubRole()
			if role := w.role(a); role.ARN != arn || role.Boundary != demanded.Boundary || a.HubRoleARN() != arn {
				t.Errorf("the role is %+v, want %s", role, arn)
			}
			switch _, entry := w.hub.AccessEntries(w.cluster.String())[arn]; access {
			case AccessEntry:
				if !entry {
					t.Errorf("the entries are %v", w.hub.AccessEntries(w.cluster.String()))
				}
				w.mustEnter(a)
			default:
				// aws-iam-authenticator identifies roles without their path.
				if data := awsAuthOf(t, w.kube).Data["mapRoles"]; !strings.Contains(data, "- rolearn: arn:aws:iam::"+hubAccount+":role/"+a.HubRole()+"\n") {
					t.Errorf("mapRoles: %s", data)
				}
			}
			w.ResetCalls()
			w.anHour()
			mustGrant(t, w.Driver, "a", record)
			mustEqual(t, "writes of a check", len(w.Writes()), 0)
			mustRevoke(t, w.Driver, "a", record)
			mustEqual(t, "left", w.leaks(), []string(nil))
		})
	}
}

func TestPathAndBoundary_BoundaryIsRepaired(t *testing.T) {
	for name, drift := range boundaryDrifts {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, "us-west-2", demanded, nil)
			a, record := w.join("a")
			mustGrant(t, w.Driver, "a", record)
			w.anHour()
			if err := drift(w, a); err != nil {
				t.Fatal(err)
			}
			w.ResetCalls()
			mustGrant(t, w.Driver, "a", record)
			mustEqual(t, "boundary", w.role(a).Boundary, demanded.Boundary)
			mustEqual(t, "writes", w.Count("iam:PutRolePermissionsBoundary"), len(w.Writes()))
		})
		t.Run(name+", and the hub may not", func(t *testing.T) {
			w := newWorldOf(t, "us-west-2", demanded, nil)
			a, record := w.join("a")
			mustGrant(t, w.Driver, "a", record)
			w.anHour()
			if err := drift(w, a); err != nil {
				t.Fatal(err)
			}
			w.setCreatorPolicy(irsa.CreatorPolicy(w.cluster, irsa.HubRoles{Path: demanded.Path, AccessEntries: true}))
			if err := w.Grant(t.Context(), "a", record); !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "perform: iam:PutRolePermissionsBoundary") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A hub that gets a boundary later adds it to existing roles. A hub whose boundary is removed leaves existing roles as they are.
func TestPathAndBoundary_AddedToExistingRoles(t *testing.T) {
	w := newWorldOf(t, "us-west-2", irsa.HubRoles{AccessEntries: true}, nil)
	a, record := w.join("a")
	mustGrant(t, w.Driver, "a", record)
	id := w.role(a).ID
	w.roles.Boundary = demanded.Boundary
	w.setCreatorPolicy(irsa.CreatorPolicy(w.cluster, w.roles))
	w.begin()
	mustEqual(t, "record", w.Move("a", record), record)
	mustGrant(t, w.Driver, "a", record)
	mustEqual(t, "boundary", w.role(a).Boundary, demanded.Boundary)
	w.roles.Boundary = ""
	w.begin()
	w.ResetCalls()
	mustGrant(t, w.Driver, "a", record)
	mustEqual(t, "boundary without the flag", w.role(a).Boundary, demanded.Boundary)
	mustEqual(t, "writes", len(w.Writes()), 0)
	mustEqual(t, "role", w.role(a).ID, id)
	w.mustEnter(a)
}

// With a boundary, the hub cannot grant rights to a role without it, even if another program acts as the hub.
func TestPathAndBoundary_HubCannotExceedBoundary(t *testing.T) {
	w := newWorldOf(t, "us-west-2", demanded, nil)
	a, record := w.join("a")
	mustGrant(t, w.Driver, "a", record)
	name, trust := aws.String("ocm-hub-x"), aws.String(a.HubTrustPolicy().JSON())
	path, admin := aws.String(demanded.Path.String()), aws.String(adminPolicy)
	must(w.hub.AddRole(fakeaws.Role{Name: "ocm-hub-free", Path: *path, Trust: *trust}))(t)
	for what, err := range map[string]error{
		"a role without a boundary":    second(w.Driver.roles.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: name, Path: path, AssumeRolePolicyDocument: trust})),
		"a role with another boundary": second(w.Driver.roles.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: name, Path: path, AssumeRolePolicyDocument: trust, PermissionsBoundary: admin})),
		"a role without the path":      second(w.Driver.roles.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: trust, PermissionsBoundary: &w.roles.Boundary})),
		"another boundary":             second(w.Driver.roles.iam.PutRolePermissionsBoundary(t.Context(), &iam.PutRolePermissionsBoundaryInput{RoleName: aws.String(a.HubRole()), PermissionsBoundary: admin})),
		"no boundary":                  second(w.Driver.roles.iam.DeleteRolePermissionsBoundary(t.Context(), &iam.DeleteRolePermissionsBoundaryInput{RoleName: aws.String(a.HubRole())})),
		"rights of a role without it":  second(w.Driver.roles.iam.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: aws.String("ocm-hub-free"), PolicyName: name, PolicyDocument: aws.String(fakeaws.AllowAll)})),
	} {
		if err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("it may make %s: %v", what, err)
		}
	}
}

func TestPathAndBoundary_MissingBoundaryIsReported(t *testing.T) {
	roles := demanded
	roles.Boundary = "arn:aws:iam::" + hubAccount + ":policy/missing"
	w := newWorldOf(t, "us-west-2", roles, nil)
	_, record := w.join("a")
	err := w.Grant(t.Context(), "a", record)
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "(the policy of --hub-role-permissions-boundary, "+roles.Boundary+", must exist first)") {
		t.Errorf("got %v", err)
	}
	mustEqual(t, "left", w.leaks(), []string(nil))
}

// A role keeps its path, and its agent continues to work. Clusters that are accepted later get the new path.
func TestPathAndBoundary_ChangedPathAppliesToNewRoles(t *testing.T) {
	for from, to := range map[irsa.RolePath]irsa.RolePath{"": "/new/", "/old/": "/new/", "/new/": ""} {
		t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
			w := newWorldOf(t, "us-west-2", irsa.HubRoles{AccessEntries: true, Path: from}, nil)
			a, record := w.join("a")
			mustGrant(t, w.Driver, "a", record)
			before := w.role(a)

			// While there are roles of both paths, the hub needs the permissions for both.
			w.roles.Path = to
			both := irsa.CreatorPolicy(w.cluster, w.roles)
			both.Statement = append(both.Statement, irsa.CreatorPolicy(w.cluster, irsa.HubRoles{AccessEntries: true, Path: from, TagKeys: w.roles.TagKeys}).Statement...)
			w.setCreatorPolicy(both)
			w.begin()
			planned := must(w.Plan(newCluster("a", annotation, a.Managed.String())))(t)
			if planned == record || !w.Same(planned, record) || w.Identity(planned) != w.Identity(record) {
				t.Errorf("planned %s, accepted with %s", planned, record)
			}
			mustEqual(t, "moved", w.Move("a", record), record)
			w.ResetCalls()
			said := w.mustGrantWith("a", record)
			want := "Its IAM role keeps the path " + from.String() + " that it was created with, and new ones get " + to.String()
			if !strings.HasPrefix(said, want) || !strings.Contains(said, "--hub-role-path="+to.String()) {
				t.Errorf("it says %q, want %q", said, want)
			}
			mustEqual(t, "writes", len(w.Writes()), 0)
			mustEqual(t, "role", w.role(a), before)
			w.mustEnter(a)

			b, recordB := w.join("b")
			mustGrant(t, w.Driver, "b", recordB)
			mustEqual(t, "role of a new cluster", w.role(b).ARN, b.HubRoleARN())
			mustEqual(t, "its path", w.role(b).Path, to.String())
			w.mustEnter(b)

			// When it is denied and accepted again, it gets the new path.
			mustRevoke(t, w.Driver, "a", record)
			w.anHour()
			mustGrant(t, w.Driver, "a", planned)
			a.HubPath = to
			mustEqual(t, "role of the cluster that was accepted again", w.role(a).ARN, a.HubRoleARN())
			mustRevoke(t, w.Driver, "a", planned)
			mustRevoke(t, w.Driver, "b", recordB)
			mustEqual(t, "left", w.leaks(), []string(nil))
		})
	}
}

// The name of a role is unique in its account: if it exists with another path, the hub neither creates a second role nor adopts the existing one.
func TestPathAndBoundary_RejectsOtherPath(t *testing.T) {
	w := newWorldOf(t, "us-west-2", irsa.HubRoles{AccessEntries: true}, nil)
	a, record := w.join("a")
	mustGrant(t, w.Driver, "a", record)
	was := w.role(a)
	w.hub.RemoveRole(a.HubRole())
	was.Path, was.ID = "/elsewhere/", ""
	must(w.hub.AddRole(was))(t)
	w.setCreatorPolicy(irsa.PolicyDocument{Version: "2012-10-17", Statement: []irsa.Statement{{Effect: "Allow", Action: irsa.Values{"*"}, Resource: irsa.Values{"*"}}}})
	w.anHour()
	w.ResetCalls()
	err := w.Grant(t.Context(), "a", record)
	if !errors.Is(err, driver.ErrTerminal) || !strings.Contains(err.Error(), "already exists with the path /elsewhere/ instead of /, and the path of a role cannot be changed: delete it") {
		t.Errorf("got %v", err)
	}
	mustEqual(t, "writes", len(w.Writes()), 0)
	mustRevoke(t, w.Driver, "a", record)
	mustEqual(t, "left", w.leaks(), []string(nil))
}
