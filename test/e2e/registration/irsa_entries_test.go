// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/irsa"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// TestRegistration_ByAccessEntries runs the life of two clusters that EKS authorizes by access entries, with roles as a platform team may require
// them: with a path and a permissions boundary.
func TestRegistration_ByAccessEntries(t *testing.T) {
	t.Parallel()
	e := newEKS(t, irsa.HubRoles{AccessEntries: true, Path: "/platform/clusterhub/", Boundary: "arn:aws:iam::111111111111:policy/platform/limits"})
	plain := plains.Lend(t, 2)
	a, b := e.newManaged(t, plain[0]), e.newManaged(t, plain[1])
	for _, m := range []*eksManaged{a, b} {
		m.start()
		m.awaitMade(t)
		m.accepted(t, true)
	}
	for _, m := range []*eksManaged{a, b} {
		m.awaitCondition(t, registration.ConditionJoined, metav1.ConditionTrue)
		m.awaitCondition(t, registration.ConditionAvailable, metav1.ConditionTrue)
		role := e.account.Roles()[m.roles.HubRole()]
		if role.ARN != m.roles.HubRoleARN() || role.Path != "/platform/clusterhub/" || role.Boundary != e.roles.Boundary {
			t.Errorf("the role is %+v", role)
		}
	}

	t.Run("its agent is the cluster", func(t *testing.T) {
		a.isItself(t)
		b.isItself(t)
		if got := e.mapRoles(t); got != nodesOnly {
			t.Errorf("aws-auth has become %s", got)
		}
	})
	t.Run("the hub asks AWS for little", func(t *testing.T) { e.askedForLittle(t, a, b) })
	t.Run("nobody else's agent is", func(t *testing.T) {
		config := b.identity(t)
		b.refusedOn(t, config, a.managed)
		b.mayNotAsk(t, config, a.name)
		a.unassumable(t, b)
	})
	t.Run("denied and accepted again", func(t *testing.T) {
		config := a.deniedAtOnce(t, func() { a.accepted(t, false) })
		a.tokenDies(t, config)
		a.hasNothingInAWS(t)
		b.awaitRenewal(t)
		a.accepted(t, true)
		a.awaitRenewal(t) // its role changes, and so does its entry
		a.isItself(t)
	})
	t.Run("it leaves", func(t *testing.T) {
		b.stop()
		harness.Must(b.run(t, "unjoin", "--spoke-kubeconfig="+b.AdminKubeconfig(), "--timeout="+harness.Timeout.String()))(t)
		b.hasNothingInAWS(t)
	})
	for name, said := range map[string]string{"a": a.said.String(), "b": b.said.String(), "the hub": e.said(t)} {
		if strings.Contains(said, "k8s-aws-v1.") || strings.Contains(said, "X-Amz-Signature") {
			t.Errorf("%s has logged a token", name)
		}
	}
}

// movesToAccessEntries restarts the hub's controllers with access entries, and checks a cluster whose agent runs, and that aws-auth has authorized.
func (e *eks) movesToAccessEntries(t *testing.T, m *eksManaged) {
	admin := iam.NewFromConfig(e.account.Config(e.account.Root()))
	e.roles.AccessEntries = true
	harness.Must(admin.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: aws.String(roleName(e.creator)), PolicyName: aws.String("creator"),
		PolicyDocument: aws.String(irsa.CreatorPolicy(e.self, e.roles).JSON())}))(t)
	before := *meta.FindStatusCondition(m.cluster(t).Status.Conditions, registration.ConditionAvailable)
	e.relaunch(m.whole, e.Instance, func(c *localhub.Options) {
		c.HubControllerManagerArgs = append(c.HubControllerManagerArgs, "--eks-access=access-entry", "--drift-check-interval=3s")
	})

	harness.Eventually(t, "EKS lets it in by an access entry", func(context.Context) (bool, error) {
		_, there := e.account.AccessEntries(e.self.String())[m.roles.HubRoleARN()]
		return there, nil
	})
	if !strings.Contains(e.mapRoles(t), m.name) {
		t.Error("aws-auth lets it in no more, before EKS need have seen the entry")
	}
	m.isItself(t) // as a different user
	m.awaitRenewal(t)
	// The driver revokes the previous access a minute later.
	for began := time.Now(); strings.Contains(e.mapRoles(t), m.name); m.awaitRenewal(t) {
		if time.Since(began) > harness.Timeout {
			t.Fatalf("after %s aws-auth is %s", time.Since(began), e.mapRoles(t))
		}
	}
	m.awaitRenewal(t)
	m.isItself(t)
	if now := *meta.FindStatusCondition(m.cluster(t).Status.Conditions, registration.ConditionAvailable); now != before {
		t.Errorf("meanwhile it was not available: %+v, before %+v", now, before)
	}
}

// withoutAgents continues with clusters whose agents do not run.
func (e *eks) withoutAgents(t *testing.T) {
	// A trust policy cannot name a role that does not exist.
	early, _ := e.clusterWithoutAgent(t)
	if reason := early.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionFalse); reason != registration.ReasonError {
		t.Errorf("without its agent's role it is not accepted for the reason %s", reason)
	}
	if message := conditionMessage(early.cluster(t), registration.ConditionHubAccepted); !strings.Contains(message, "ocm-managed-cluster-") {
		t.Errorf("the condition says %q", message)
	}

	m, roles := e.clusterWithoutAgent(t, e.members)
	m.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionTrue)
	entry, there := e.account.AccessEntries(e.self.String())[roles.HubRoleARN()]
	if !there || entry.Type != "STANDARD" || !slices.Equal(entry.KubernetesGroups, []string{registration.AWSGroup(m.name), registration.AWSManagedClustersGroup}) || strings.Contains(e.mapRoles(t), m.name) {
		t.Errorf("the access entry is %+v", entry)
	}
	as := harness.Ours(t, e.UserConfig(entry.Username, entry.KubernetesGroups...)).ClusterV1().ManagedClusters()
	harness.Must(as.Get(t.Context(), m.name, metav1.GetOptions{}))(t)
	if _, err := as.Get(t.Context(), early.name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get of another cluster: %v, want 403", err)
	}
	if err := m.clusters(t).Delete(t.Context(), m.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	m.gone(t)
	_, role := e.account.Roles()[roles.HubRole()]
	if _, entry := e.account.AccessEntries(e.self.String())[roles.HubRoleARN()]; role || entry {
		t.Errorf("the role is left: %t, and the entry: %t", role, entry)
	}
}

// clusterWithoutAgent creates and accepts a cluster in EKS. The role of its agent exists only if an account is given.
func (e *eks) clusterWithoutAgent(t *testing.T, with ...*fakeaws.Account) (*managed, irsa.Identity) {
	t.Helper()
	m := &managed{hub: e.Instance, name: harness.Unique("entry")}
	roles := harness.Must(irsa.NewIdentity(e.self, irsa.ClusterARN{Partition: "aws", Region: e.members.Region, Account: e.members.ID, Name: m.name}))(t)
	for _, account := range with {
		e.addRole(t, account, fakeaws.Role{Name: roles.ManagedRole(), Tags: roles.Tags(), Trust: e.account.Roles()[roleName(e.creator)].Trust})
	}
	made := harness.ManagedCluster(m.name, nil)
	made.Annotations = map[string]string{registration.AnnotationManagedClusterARNOfSeed: roles.Managed.String()}
	harness.Must(m.clusters(t).Create(t.Context(), made, metav1.CreateOptions{}))(t)
	m.accepted(t, true)
	return m, roles
}
