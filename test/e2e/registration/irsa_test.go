// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestRegistration_ByAWSIAM runs the life of two clusters in EKS, beside a cluster with a certificate on the same hub. Its parts depend on one
// another.
func TestRegistration_ByAWSIAM(t *testing.T) {
	t.Parallel()
	e := newEKS(t, irsa.HubRoles{})
	plain := plains.Lend(t, 3)
	a, b, other := e.newManaged(t, plain[0]), e.newManaged(t, plain[1]), managedOn(t, e.Instance, plain[2])
	a.start()
	b.start()
	other.agent(t)
	all := []*managed{a.managed, b.managed, other}
	for _, m := range all {
		m.awaitMade(t)
		m.accepted(t, true)
	}
	for _, m := range all {
		m.awaitCondition(t, registration.ConditionJoined, metav1.ConditionTrue)
		m.awaitCondition(t, registration.ConditionAvailable, metav1.ConditionTrue)
	}

	t.Run("its agent is the cluster", func(t *testing.T) {
		a.isItself(t)
		b.isItself(t)
		if len(other.requests(t)) != 1 || other.secret(t).Data[registration.KeyTLSCert] == nil {
			t.Error("the cluster beside them has no certificate")
		}
	})
	t.Run("the hub asks AWS for little", func(t *testing.T) { e.askedForLittle(t, a, b) })
	t.Run("nobody else's agent is", func(t *testing.T) {
		config := b.identity(t)
		b.refusedOn(t, config, a.managed)
		b.refusedOn(t, config, other)
		b.mayNotAsk(t, config, a.name)
		b.getsNoCertificate(t, config, a.name)
		b.getsNoCertificate(t, config, b.name)
		a.unassumable(t, b)
		a.stolenARN(t)
	})
	t.Run("a restart is no new cluster", func(t *testing.T) {
		before, roles := a.cluster(t), e.account.Roles()
		a.start("--eks-token-command=aws")
		a.awaitRenewal(t)
		if a.cluster(t).UID != before.UID || len(a.requests(t)) > 0 || !sameRoles(e.account.Roles(), roles) {
			t.Error("it is another cluster")
		}
		a.getsTokensByTheAWSCLI(t)
	})
	t.Run("denied and accepted again", func(t *testing.T) {
		config := a.deniedAtOnce(t, func() { a.accepted(t, false) })
		a.tokenDies(t, config)
		if reason := a.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionFalse); reason != registration.ReasonDenied {
			t.Errorf("denied for the reason %s", reason)
		}
		a.hasNothingInAWS(t)
		a.accepted(t, true)
		a.awaitRenewal(t) // its role changes
	})
	t.Run("it leaves", func(t *testing.T) {
		a.stop()
		out := harness.Must(a.run(t, "unjoin", "--spoke-kubeconfig="+a.AdminKubeconfig(), "--timeout="+harness.Timeout.String()))(t)
		t.Log(out)
		if a.secret(t) != nil || a.cluster(t).Spec.HubAcceptsClient {
			t.Error("it has not left")
		}
		a.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionFalse)
		a.hasNothingInAWS(t)
		if err := a.clusters(t).Delete(t.Context(), a.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		a.gone(t)
	})
	t.Run("deleted, it comes back with a restart", func(t *testing.T) {
		b.deniedAtOnce(t, func() {
			if err := b.clusters(t).Delete(t.Context(), b.name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
		b.gone(t)
		b.hasNothingInAWS(t)
		if got := e.mapRoles(t); got != nodesOnly {
			t.Errorf("what is left in aws-auth: %s", got)
		}
		if got := slices.Collect(maps.Keys(e.account.Roles())); len(got) != 1 {
			t.Errorf("what is left in IAM: %s", got)
		}
		b.start()
		b.awaitMade(t)
		b.accepted(t, true)
		b.awaitCondition(t, registration.ConditionAvailable, metav1.ConditionTrue)
		b.isItself(t)
	})
	t.Run("moved to access entries", func(t *testing.T) { e.movesToAccessEntries(t, b) })
	t.Run("by access entries", e.withoutAgents)

	for name, said := range map[string]string{"a": a.said.String(), "b": b.said.String(), "the hub": e.said(t)} {
		if strings.Contains(said, "k8s-aws-v1.") || strings.Contains(said, "X-Amz-Signature") {
			t.Errorf("%s has logged a token", name)
		}
	}
}

// said returns the logs of the hub's processes.
func (e *eks) said(t *testing.T) string {
	t.Helper()
	all := &strings.Builder{}
	for _, log := range harness.Must(filepath.Glob(filepath.Join(e.Dir(), "logs", "*.log*")))(t) {
		all.Write(harness.Must(os.ReadFile(log))(t))
	}
	return all.String()
}

func (m *managed) awaitMade(t *testing.T) {
	t.Helper()
	harness.Eventually(t, m.name+" is made", func(ctx context.Context) (bool, error) {
		_, err := m.clusters(t).Get(ctx, m.name, metav1.GetOptions{})
		return err == nil, err
	})
}

// gone waits until the hub has no objects of a cluster.
func (m *managed) gone(t *testing.T) {
	t.Helper()
	client := harness.Kube(t, m.hub.AdminConfig())
	harness.Eventually(t, "nothing of "+m.name+" is left on the hub", func(context.Context) (bool, error) {
		ctx := t.Context()
		found, cluster := m.clusters(t).Get(ctx, m.name, metav1.GetOptions{})
		_, role := client.RbacV1().ClusterRoles().Get(ctx, registration.ClusterRole(m.name), metav1.GetOptions{})
		_, binding := client.RbacV1().ClusterRoleBindings().Get(ctx, registration.ClusterRole(m.name), metav1.GetOptions{})
		_, namespace := client.CoreV1().Namespaces().Get(ctx, m.name, metav1.GetOptions{})
		for _, err := range []error{cluster, role, binding, namespace} {
			if !apierrors.IsNotFound(err) {
				return false, fmt.Errorf("cluster: %v, role: %v, binding: %v, namespace: %v; it says %q", cluster, role, binding, namespace,
					conditionMessage(found, registration.ConditionHubAccepted))
			}
		}
		return true, nil
	})
}

func conditionMessage(cluster *clusterv1.ManagedCluster, conditionType string) string {
	if c := meta.FindStatusCondition(cluster.Status.Conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

// isItself checks the user that the hub authenticates with the kubeconfig in the agent's Secret.
func (m *eksManaged) isItself(t *testing.T) {
	t.Helper()
	config := m.identity(t)
	user, all := registration.ClusterGroup(m.name), registration.ManagedClustersGroup
	if m.eks.roles.AccessEntries {
		user, all = registration.AWSGroup(m.name), registration.AWSManagedClustersGroup
	}
	harness.Eventually(t, "the hub knows the agent", func(ctx context.Context) (bool, error) {
		// client-go may still have the token of a deleted role, and requests a new one from the plugin when the hub rejects it. kube-apiserver caches
		// the user of a token for ten seconds.
		review, err := harness.Kube(t, config).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		who := review.Status.UserInfo
		if who.Username != user || !slices.Equal(who.Groups, []string{user, all, "system:authenticated"}) {
			return false, fmt.Errorf("the agent is %s in %s", who.Username, who.Groups)
		}
		return true, nil
	})
	seen := harness.Must(harness.Ours(t, config).ClusterV1().ManagedClusters().Get(t.Context(), m.name, metav1.GetOptions{}))(t)
	if !strings.HasPrefix(seen.Status.Version.Kubernetes, "v1.") {
		t.Errorf("its status is %+v", seen.Status)
	}
	if m.secret(t).Data[registration.KeyTLSKey] != nil || len(m.requests(t)) > 0 {
		t.Error("it has asked for a certificate")
	}
	// EKS accepts a token for 15 minutes, and client-go requests a new one from the plugin before that.
	life := time.Until(m.credential(t, "--cluster-name="+m.roles.Hub.Name, "--role-arn="+m.roles.HubRoleARN()).ExpirationTimestamp.Time)
	if life > 14*time.Minute || life < 13*time.Minute {
		t.Errorf("the token is used for %s", life)
	}
}

// askedForLittle counts the requests of the hub to AWS for two clusters.
func (e *eks) askedForLittle(t *testing.T, clusters ...*eksManaged) {
	t.Helper()
	counts := map[string]int{}
	for _, call := range e.aws.Calls() {
		if strings.Contains(call.Caller, roleName(e.creator)) {
			counts[roleName(call.Resource)]++
			if call.Error != "" && call.Error != "NoSuchEntity" {
				t.Errorf("%s of the hub: %s", call.Operation, call.Error)
			}
		}
	}
	for _, m := range clusters {
		if n := counts[m.roles.HubRole()]; n == 0 || n > 6 {
			t.Errorf("%d calls for %s, want at most 6", n, m.name)
		}
	}
}

// getsTokensByTheAWSCLI checks the kubeconfig in the specification's form, and uses it if the AWS CLI is installed.
func (m *eksManaged) getsTokensByTheAWSCLI(t *testing.T) {
	t.Helper()
	want := "aws --region us-west-2 eks get-token --cluster-name hub --output json --role-arn " + m.roles.HubRoleARN()
	harness.Eventually(t, "the kubeconfig names the AWS CLI", func(context.Context) (bool, error) {
		file := harness.Must(clientcmd.Load(m.secret(t).Data[registration.KeyKubeconfig]))(t)
		for _, user := range file.AuthInfos {
			if got := user.Exec.Command + " " + strings.Join(user.Exec.Args, " "); got != want {
				return false, fmt.Errorf("it runs %s", got)
			}
		}
		return true, nil
	})
	if _, err := exec.LookPath("aws"); err != nil {
		t.Log("there is no AWS CLI to try it with")
		return
	}
	harness.Must(harness.Ours(t, m.identity(t)).ClusterV1().ManagedClusters().Get(t.Context(), m.name, metav1.GetOptions{}))(t)
}

// deniedAtOnce denies a cluster, and checks how long its token remains useful. It returns a client configuration with the token.
func (m *eksManaged) deniedAtOnce(t *testing.T, shut func()) *rest.Config {
	t.Helper()
	config := m.eks.withToken(m.token(t))
	leases := harness.Kube(t, config).CoordinationV1().Leases(m.name)
	harness.Must(leases.Get(t.Context(), registration.LeaseName, metav1.GetOptions{}))(t)
	began := time.Now()
	shut()
	harness.Eventually(t, "the rights of its token are gone", func(ctx context.Context) (bool, error) {
		_, err := leases.Get(ctx, registration.LeaseName, metav1.GetOptions{})
		return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err), ignoreRefusal(err)
	})
	took := time.Since(began)
	t.Logf("the rights of its token were gone after %s", took.Round(time.Millisecond))
	if took > 5*time.Second {
		t.Error("that is not at once")
	}
	return config
}

// tokenDies waits until the token of a denied cluster is rejected, and checks that the cluster cannot obtain a different one.
func (m *eksManaged) tokenDies(t *testing.T, config *rest.Config) {
	t.Helper()
	clusters := harness.Ours(t, config).ClusterV1().ManagedClusters()
	own := m.cluster(t)
	own.Spec.HubAcceptsClient = true
	if _, err := clusters.Update(t.Context(), own, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("accepting itself: %v, want a refusal", err)
	}
	began := time.Now()
	harness.Eventually(t, "the token is dead", func(ctx context.Context) (bool, error) {
		_, err := clusters.Get(ctx, m.name, metav1.GetOptions{})
		return apierrors.IsUnauthorized(err), ignoreRefusal(err)
	})
	t.Logf("the token was dead after another %s", time.Since(began).Round(time.Second))
	if out, err := m.run(t, "eks-token", "--cluster-name="+m.roles.Hub.Name, "--region="+m.roles.Hub.Region, "--role-arn="+m.roles.HubRoleARN()); err == nil {
		t.Errorf("there is another token: %s", out)
	} else if !strings.Contains(err.Error(), "AccessDenied") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the refusal is not one clear line: %v", err)
	}
}

func ignoreRefusal(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return nil
	}
	return err
}

// hasNothingInAWS waits until the cluster's role and access are gone, and checks that those of other clusters remain.
func (m *eksManaged) hasNothingInAWS(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "its role and its access are gone", func(context.Context) (bool, error) {
		roles, access := m.eks.account.Roles(), m.eks.mapRoles(t)
		_, there := roles[m.roles.HubRole()]
		entries := m.eks.account.AccessEntries(m.eks.self.String())
		if _, entered := entries[m.roles.HubRoleARN()]; there || entered || strings.Contains(access, m.name) {
			return false, fmt.Errorf("roles %v, access entries %v, aws-auth %s", slices.Collect(maps.Keys(roles)), slices.Collect(maps.Keys(entries)), access)
		}
		return true, nil
	})
	if !strings.HasPrefix(m.eks.mapRoles(t), nodesOnly) {
		t.Errorf("aws-auth has become %s", m.eks.mapRoles(t))
	}
}
