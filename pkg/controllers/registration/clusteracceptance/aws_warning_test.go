// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/awsirsa"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

const accepted = "True HubClusterAdminAccepted Accepted by hub cluster admin"

// A cluster that works is accepted, and its condition has the warning for as long as its cause lasts.
func TestWarning_PersistsWhileCauseLasts(t *testing.T) {
	f := newAWSFixture(t, awsirsa.AccessEntry, "c1")
	f.aws.SetTagging(fakeaws.TagsRefused)
	f.settle("c1")
	mustSay := func() {
		t.Helper()
		const want = accepted + ". Its EKS access entry does not have the tags of the hub, and works without them: EKS "
		if got := f.accepted("c1"); !strings.HasPrefix(got, want) || !strings.Contains(got, "is not authorized to perform: eks:TagResource") {
			t.Errorf("condition %q, want %q", got, want)
		}
	}
	mustSay()
	if diff := cmp.Diff(f.granted("c1"), f.inAWS()); diff != "" {
		t.Errorf("in AWS (-want +got):\n%s", diff)
	}
	// The warning costs nothing, and a new process repeats it.
	f.effects = nil
	f.look("c1")
	f.restart()
	f.look("c1")
	mustSay()
	if len(f.effects) > 0 {
		t.Errorf("written: %q", f.effects)
	}
	f.nextCheck("c1")
	mustSay()
	f.aws.SetTagging(fakeaws.TagsNeedBoth)
	f.nextCheck("c1")
	if got := f.accepted("c1"); got != accepted {
		t.Errorf("condition %q", got)
	}
}

func TestWarning_OfGrantsByOthers(t *testing.T) {
	f := newAWSFixture(t, awsirsa.AccessEntry, "c1")
	f.settle("c1")
	f.giveMore("c1")
	f.nextCheck("c1")
	if diff := cmp.Diff(f.granted("c1"), f.inAWS()); diff != "" {
		t.Errorf("in AWS (-want +got):\n%s", diff)
	}
	for _, what := range []string{"the inline policy more", "the policy arn:aws:iam::aws:policy/AdministratorAccess",
		"the EKS access policy arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"} {
		if got := f.accepted("c1"); !strings.HasPrefix(got, accepted+". ") || !strings.Contains(got, "Others had given it "+what+", which is removed") {
			t.Errorf("condition %q, want %q", got, what)
		}
	}
	f.mustTell("Warning ManagedClusterRegistrationChanged Accepted by hub cluster admin. Others had given it the inline policy more")
	f.nextCheck("c1")
	if got := f.accepted("c1"); got != accepted {
		t.Errorf("condition %q", got)
	}
}

// If the path of roles changes, existing roles keep theirs, and a warning says so.
func TestWarning_OfRoleThatRetainsPath(t *testing.T) {
	f := newAWSFixture(t, awsirsa.AccessEntry, "c1")
	f.settle("c1")
	f.path = "/clusterhub/"
	f.restart()
	f.look("c1")
	f.nextCheck("c1")
	if diff := cmp.Diff(f.granted("c1"), f.inAWS()); diff != "" {
		t.Errorf("in AWS (-want +got):\n%s", diff)
	}
	const want = accepted + ". Its IAM role keeps the path / that it was created with, and new ones get /clusterhub/: to change it, deny the cluster"
	if got := f.accepted("c1"); !strings.HasPrefix(got, want) {
		t.Errorf("condition %q, want %q", got, want)
	}
	f.mustTell("Warning ManagedClusterRegistrationChanged Accepted by hub cluster admin. Its IAM role keeps the path / ")
}
