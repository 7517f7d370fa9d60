// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	clusterclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/cluster/v1"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// clusters returns a client of the hub's ManagedClusters as its admin.
func (m *managed) clusters(t *testing.T) clusterclient.ManagedClusterInterface {
	t.Helper()
	return harness.Ours(t, m.hub.AdminConfig()).ClusterV1().ManagedClusters()
}

func (m *managed) cluster(t *testing.T) *clusterv1.ManagedCluster {
	t.Helper()
	return harness.Must(m.clusters(t).Get(t.Context(), m.name, metav1.GetOptions{}))(t)
}

func (m *managed) accepted(t *testing.T, accepted bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"hubAcceptsClient":%t}}`, accepted)
	harness.Eventually(t, fmt.Sprintf("hubAcceptsClient of %s is set to %t", m.name, accepted), func(context.Context) (bool, error) {
		_, err := m.clusters(t).Patch(t.Context(), m.name, types.MergePatchType, patch, metav1.PatchOptions{})
		// The namespace of a denied cluster is deleted, and the cluster cannot be accepted again before that has completed.
		if err != nil && !strings.Contains(err.Error(), "accept the cluster once the namespace is gone") {
			t.Fatal(err)
		}
		return err == nil, err
	})
}

// awaitCondition waits until a condition of the cluster has a status, and returns its reason.
func (m *managed) awaitCondition(t *testing.T, conditionType string, status metav1.ConditionStatus) (reason string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%s of %s is %s", conditionType, m.name, status), func(context.Context) (bool, error) {
		cluster := m.cluster(t)
		c := meta.FindStatusCondition(cluster.Status.Conditions, conditionType)
		if c == nil || c.Status != status {
			return false, fmt.Errorf("conditions are %+v", cluster.Status.Conditions)
		}
		reason = c.Reason
		return true, nil
	})
	return reason
}

func (m *managed) requests(t *testing.T) (names []string) {
	t.Helper()
	list := harness.Must(harness.Kube(t, m.hub.AdminConfig()).CertificatesV1().CertificateSigningRequests().List(t.Context(),
		metav1.ListOptions{LabelSelector: registration.ClusterNameLabel + "=" + m.name}))(t)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// TestRegistration_ByCertificate runs the life of a cluster: it joins, is accepted, is denied and accepted again, and leaves.
func TestRegistration_ByCertificate(t *testing.T) {
	m := newManaged(t, harness.Hub(t))
	other := harness.Unique("other")
	harness.Must(m.clusters(t).Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{}))(t)
	hubKube := harness.Kube(t, m.hub.AdminConfig())
	stop := m.agent(t)

	// Before the cluster is accepted, only its name is known, and its request is not approved.
	harness.Eventually(t, "the cluster asks for a certificate", func(context.Context) (bool, error) { return len(m.requests(t)) == 1, nil })
	if c := m.cluster(t); c.Spec.HubAcceptsClient || len(c.Spec.ManagedClusterClientConfigs) != 1 {
		t.Errorf("it begins with %+v", c.Spec)
	}
	if _, err := hubKube.CoreV1().Namespaces().Get(t.Context(), m.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("its namespace: %v, want none", err)
	}

	m.accepted(t, true)
	m.awaitCondition(t, registration.ConditionJoined, metav1.ConditionTrue)
	m.awaitCondition(t, registration.ConditionAvailable, metav1.ConditionTrue)
	if reason := m.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionTrue); reason != registration.ReasonAccepted {
		t.Errorf("accepted for the reason %s", reason)
	}
	if version := m.cluster(t).Status.Version.Kubernetes; !strings.HasPrefix(version, "v1.") {
		t.Errorf("its version is %q", version)
	}
	identity := m.identity(t)
	as := harness.Ours(t, identity).ClusterV1().ManagedClusters()
	who := harness.Must(harness.Kube(t, identity).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))(t)
	if got := who.Status.UserInfo; !strings.HasPrefix(got.Username, registration.ClusterUser(m.name, "")) {
		t.Errorf("the agent is %+v", got)
	}

	// The agent has its rights by the role of all agents, and no role of its own.
	harness.Must(hubKube.RbacV1().ClusterRoleBindings().Get(t.Context(), agentroles.ClusterRole, metav1.GetOptions{}))(t)
	for what, err := range map[string]error{
		"role":    harness.ErrorOf(hubKube.RbacV1().ClusterRoles().Get(t.Context(), registration.ClusterRole(m.name), metav1.GetOptions{})),
		"binding": harness.ErrorOf(hubKube.RbacV1().ClusterRoleBindings().Get(t.Context(), registration.ClusterRole(m.name), metav1.GetOptions{})),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("its own %s: %v, want none", what, err)
		}
	}

	// The agent can access its own cluster and no other.
	harness.Must(as.Get(t.Context(), m.name, metav1.GetOptions{}))(t)
	if _, err := as.Get(t.Context(), other, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get of another cluster: %v, want 403", err)
	}
	if _, err := harness.Kube(t, identity).CoordinationV1().Leases(other).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("leases of another cluster: %v, want 403", err)
	}
	csrs := harness.Kube(t, identity).CertificatesV1().CertificateSigningRequests()
	harness.Must(csrs.Get(t.Context(), m.requests(t)[0], metav1.GetOptions{}))(t)
	own := metav1.ListOptions{LabelSelector: registration.ClusterNameLabel + "=" + m.name, TimeoutSeconds: new(int64(5))}
	if _, err := csrs.List(t.Context(), own); !apierrors.IsForbidden(err) {
		t.Errorf("list of certificate requests: %v, want 403", err)
	}
	if _, err := csrs.Watch(t.Context(), own); !apierrors.IsForbidden(err) {
		t.Errorf("watch of certificate requests: %v, want 403", err)
	}

	// A restarted agent creates no new cluster, and needs no new certificate.
	stop()
	stop = m.agent(t)
	lease := func() string {
		l := harness.Must(hubKube.CoordinationV1().Leases(m.name).Get(t.Context(), registration.LeaseName, metav1.GetOptions{}))(t)
		return l.ResourceVersion
	}
	before := lease()
	harness.Eventually(t, "the new process renews the lease", func(context.Context) (bool, error) { return lease() != before, nil })
	if got := m.requests(t); len(got) != 1 {
		t.Errorf("requests after a restart: %v, want the first only", got)
	}

	// The agent of a denied cluster has no rights, and cannot grant itself any.
	m.accepted(t, false)
	if reason := m.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionFalse); reason != registration.ReasonDenied {
		t.Errorf("denied for the reason %s", reason)
	}
	harness.Eventually(t, "the agent's rights are gone", func(context.Context) (bool, error) {
		_, err := harness.Kube(t, identity).CoordinationV1().Leases(m.name).Get(t.Context(), registration.LeaseName, metav1.GetOptions{})
		return apierrors.IsForbidden(err), nil
	})
	c := m.cluster(t)
	c.Spec.HubAcceptsClient = true
	if _, err := as.Update(t.Context(), c, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("accepting itself: %v, want 403", err)
	}
	m.accepted(t, true)
	m.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionTrue)
	before = ""
	harness.Eventually(t, "the agent goes on", func(context.Context) (bool, error) {
		l, err := hubKube.CoordinationV1().Leases(m.name).Get(t.Context(), registration.LeaseName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		moved := before != "" && l.ResourceVersion != before
		before = l.ResourceVersion
		return moved, nil
	})

	// The agent leaves with its own rights, and the cluster has no objects on the hub afterwards.
	stop()
	out, err := exec.CommandContext(t.Context(), harness.Binary(t, "hub-agent"), "unjoin", "--spoke-kubeconfig="+m.AdminKubeconfig(), "--timeout="+harness.Timeout.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("unjoin: %v: %s", err, out)
	}
	t.Logf("%s", out)
	if m.cluster(t).Spec.HubAcceptsClient {
		t.Error("it is still accepted")
	}
	if m.secret(t) != nil {
		t.Error("its secret is still there")
	}
	if err := m.clusters(t).Delete(t.Context(), m.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "nothing of it is left on the hub", func(ctx context.Context) (bool, error) {
		_, cluster := m.clusters(t).Get(ctx, m.name, metav1.GetOptions{})
		_, role := hubKube.RbacV1().ClusterRoles().Get(ctx, registration.ClusterRole(m.name), metav1.GetOptions{})
		_, binding := hubKube.RbacV1().ClusterRoleBindings().Get(ctx, registration.ClusterRole(m.name), metav1.GetOptions{})
		_, namespace := hubKube.CoreV1().Namespaces().Get(ctx, m.name, metav1.GetOptions{})
		for _, err := range []error{cluster, role, binding, namespace} {
			if !apierrors.IsNotFound(err) {
				return false, fmt.Errorf("cluster: %v, role: %v, binding: %v, namespace: %v", cluster, role, binding, namespace)
			}
		}
		return true, nil
	})
}

// TestRegistration_WithoutAnAdmin runs with only the rights that the components of artifacts/deploy grant.
func TestRegistration_WithoutAnAdmin(t *testing.T) {
	m := newManaged(t, controlled(t, func(c *localhub.Options) {
		c.Components = []string{"auto-approval", "leftovers"}
		c.HubControllerManagerArgs = []string{"--feature-gates=ManagedClusterAutoApproval=true",
			"--auto-approved-csr-identities=" + registration.BootstrapServiceAccount}
	}))
	m.agent(t)
	harness.Eventually(t, "the agent makes the cluster", func(ctx context.Context) (bool, error) {
		_, err := m.clusters(t).Get(ctx, m.name, metav1.GetOptions{})
		return err == nil, nil
	})
	m.awaitCondition(t, registration.ConditionJoined, metav1.ConditionTrue)

	// --leftover-ttl does the same in time.
	as := harness.Ours(t, m.hub.UserConfig("system:serviceaccount:clusterhub-system:hub-controller-manager")).ClusterV1().ManagedClusters()
	if err := as.Delete(t.Context(), m.name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
}
