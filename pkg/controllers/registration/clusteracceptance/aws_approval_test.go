// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const ofAccount = `arn:aws:eks:us-west-2:210987654321:cluster/`

// newApprovalFixture returns a fixture without clusters whose process approves by patterns.
func newApprovalFixture(t *testing.T, patterns ...string) *awsFixture {
	t.Helper()
	f := newAWSFixture(t, awsirsa.AccessEntry)
	f.patterns, f.autoApproval = patterns, true
	f.restart()
	return f
}

// ask creates a ManagedCluster as a holder of a bootstrap token may, with any name and any ARN, and reconciles it.
func (f *awsFixture) ask(name, arn string) {
	f.Helper()
	cluster := newCluster(name)
	cluster.Annotations = map[string]string{registration.AnnotationManagedClusterARN: arn}
	cluster.Spec.HubAcceptsClient = false
	if err := f.client.Create(f.Context(), cluster); err != nil {
		f.Fatal(err)
	}
	f.look(name)
}

// look reconciles a cluster until nothing is left to do or a delay is requested.
func (f *awsFixture) look(name string) {
	f.Helper()
	for range 5 {
		if _, err := f.reconcile(name); err != nil {
			f.Fatal(err)
		}
	}
}

// isAccepted returns the accepted clusters.
func (f *awsFixture) isAccepted() (accepted []string) {
	f.Helper()
	list := &clusterv1.ManagedClusterList{}
	if err := f.client.List(f.Context(), list); err != nil {
		f.Fatal(err)
	}
	for _, cluster := range list.Items {
		if cluster.Spec.HubAcceptsClient {
			accepted = append(accepted, cluster.Name)
		}
	}
	return accepted
}

// mustTell fails unless an event has the text.
func (f *awsFixture) mustTell(text string) {
	f.Helper()
	if all := f.happened(); !slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, text) }) {
		f.Errorf("no event says %q: %q", text, all)
	}
}

func (f *awsFixture) mustHaveAccepted(want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.isAccepted()); diff != "" {
		f.Errorf("accepted (-want +got):\n%s", diff)
	}
	var granted []string
	for _, name := range want {
		granted = append(granted, f.granted(name)...)
	}
	if diff := cmp.Diff(sorted(granted), f.inAWS()); diff != "" && (len(granted) > 0 || len(f.inAWS()) > 0) {
		f.Errorf("in AWS (-want +got):\n%s", diff)
	}
}

func (f *awsFixture) remove(name string) {
	f.Helper()
	if err := f.client.Delete(f.Context(), f.cluster(name)); err != nil {
		f.Fatal(err)
	}
	f.look(name)
}

// The holder of a bootstrap token may create ManagedClusters with any name and any ARN.
func TestAutoApproval_ForeignARNIsNotApproved(t *testing.T) {
	f := newApprovalFixture(t, ofAccount+".*")
	f.ask("evil", f.arn("c1"))
	f.mustHaveAccepted()
	f.mustTell(`approves it for a cluster with the name "c1"`)
	// The victim comes second. If two clusters claim one ARN, an admin must decide.
	f.ask("c1", f.arn("c1"))
	f.mustHaveAccepted()
	f.mustTell(`Warning ManagedClusterNotAutoApproved The cluster "evil" claims its identity, too`)
	// Other clusters are not blocked.
	f.ask("c2", f.arn("c2"))
	f.mustHaveAccepted("c2")
	f.remove("evil")
	f.look("c1")
	f.mustHaveAccepted("c1", "c2")
	// A cluster that claims the ARN later is not accepted.
	f.ask("late", f.arn("c1"))
	f.mustHaveAccepted("c1", "c2")
}

// A valuable name cannot be claimed with the ARN of another cluster that matches, too.
func TestAutoApproval_ForeignNameIsNotApproved(t *testing.T) {
	f := newApprovalFixture(t, ofAccount+".*")
	f.ask("prod", f.arn("sandbox"))
	f.mustHaveAccepted()
	f.mustTell(`approves it for a cluster with the name "sandbox"`)
}

// Two patterns may map one ARN to two names. Then an admin must decide, whichever cluster comes first.
func TestAutoApproval_OneClusterPerARN(t *testing.T) {
	patterns := []string{ofAccount + ".*", ofAccount + "(?P<name>c1)-blue"}
	f := newApprovalFixture(t, patterns...)
	f.autoApproval = false
	f.restart()
	f.ask("c1", f.arn("c1-blue"))
	f.ask("c1-blue", f.arn("c1-blue"))
	f.autoApproval = true
	f.restart()
	for range 3 {
		f.look("c1")
		f.mustTell(`The cluster "c1-blue" claims its identity, too`)
		f.look("c1-blue")
		f.mustTell(`The cluster "c1" claims its identity, too`)
		f.mustHaveAccepted()
	}
	// In another region it is a different cluster, but the role is the same.
	f.ask("elsewhere", strings.Replace(f.arn("c1-blue"), "us-west-2", "eu-west-1", 1))
	f.remove("c1-blue")
	f.look("c1")
	f.mustHaveAccepted()
	f.mustTell(`The cluster "elsewhere" claims its identity, too`)
	f.remove("elsewhere")
	f.look("c1")
	f.mustHaveAccepted("c1")
	f.ask("c1-blue", f.arn("c1-blue"))
	f.mustHaveAccepted("c1")
	f.mustTell(`Its identity belongs to the cluster "c1"`)
}

// An admin has accepted the cluster by a name that does not follow from its ARN. Later changes by its agent neither free the ARN nor claim that of
// another cluster.
func TestAutoApproval_UsesAcceptedIdentity(t *testing.T) {
	f := newApprovalFixture(t, ofAccount+".*")
	f.join("team", f.arn("c1"))
	f.settle("team")
	f.change("team", func(c *clusterv1.ManagedCluster) {
		c.Annotations[registration.AnnotationManagedClusterARN] = f.arn("c2")
	})
	f.settle("team")
	f.ask("c1", f.arn("c1"))
	f.mustTell(`Its identity belongs to the cluster "team"`)
	f.ask("c2", f.arn("c2"))
	if diff := cmp.Diff([]string{"c2", "team"}, f.isAccepted()); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	// A denied cluster claims nothing: an admin has decided.
	f.change("team", deny)
	f.settle("team")
	f.look("c1")
	f.mustHaveAccepted("c1", "c2")
}

// An admin may be deceived. A cluster keeps its identity, also while AWS has lost what was created for it.
func TestAccept_RejectsIdentityOfOtherCluster(t *testing.T) {
	f := newAWSFixture(t, awsirsa.AccessEntry, "c1")
	f.settle("c1")
	f.join("evil", f.arn("c1"))
	f.hub.RemoveRole(f.hubRole("c1"))
	f.aws.ResetCalls()
	result, err := f.reconcile("evil")
	want := fmt.Sprintf("False Error the IAM role %s, of the EKS cluster c1 of the AWS account 210987654321, belongs to the cluster %q",
		f.hubRole("c1"), "c1")
	if got := f.accepted("evil"); err != nil || !strings.HasPrefix(got, want) || result.RequeueAfter != lastRetry {
		t.Errorf("%v, %v, condition %q, want %q", result, err, got, want)
	}
	if n := f.aws.Count(); n > 0 {
		t.Errorf("%d calls", n)
	}
	// The cluster is accepted when the other one is gone, without a change by a user.
	if err := f.client.Delete(t.Context(), f.cluster("c1")); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	f.settle("c1")
	f.settle("evil")
	if diff := cmp.Diff(f.granted("evil"), f.inAWS()); diff != "" {
		t.Errorf("in AWS (-want +got):\n%s", diff)
	}
}
