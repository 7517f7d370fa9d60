// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// refusedOn makes requests to the hub as the agent of one cluster that only the agent of a different cluster, the hub or an admin may make.
func (m *eksManaged) refusedOn(t *testing.T, config *rest.Config, victim *managed) {
	t.Helper()
	clusters, client := harness.Ours(t, config).ClusterV1().ManagedClusters(), harness.Kube(t, config)
	theirs, own := victim.cluster(t), m.cluster(t)
	theirs.Annotations[registration.AnnotationManagedClusterARN] = m.roles.Managed.String()
	own.Labels[harness.SetLabel] = "of-others"
	as := rest.CopyConfig(config)
	as.Impersonate.UserName = registration.ClusterUser(victim.name, "x")
	asVictim := harness.Must(versioned.NewForConfig(as))(t).ClusterV1().ManagedClusters()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "evil"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: registration.ClusterGroup(m.name)}},
	}
	lease := harness.Must(harness.Kube(t, m.hub.AdminConfig()).CoordinationV1().Leases(victim.name).Get(t.Context(), registration.LeaseName, metav1.GetOptions{}))(t)
	label, status := []byte(`{"metadata":{"labels":{"x":"y"}}}`), []byte(`{"status":{"version":{"kubernetes":"v0"}}}`)
	for what, try := range map[string]func(context.Context) error{
		"get a cluster": func(ctx context.Context) error {
			return harness.ErrorOf(clusters.Get(ctx, victim.name, metav1.GetOptions{}))
		},
		"list clusters":  func(ctx context.Context) error { return harness.ErrorOf(clusters.List(ctx, metav1.ListOptions{})) },
		"watch clusters": func(ctx context.Context) error { return harness.ErrorOf(clusters.Watch(ctx, metav1.ListOptions{})) },
		"update a cluster": func(ctx context.Context) error {
			return harness.ErrorOf(clusters.Update(ctx, theirs, metav1.UpdateOptions{}))
		},
		"write a cluster's status": func(ctx context.Context) error {
			return harness.ErrorOf(clusters.UpdateStatus(ctx, theirs, metav1.UpdateOptions{}))
		},
		"delete a cluster":       func(ctx context.Context) error { return clusters.Delete(ctx, victim.name, metav1.DeleteOptions{}) },
		"delete its own cluster": func(ctx context.Context) error { return clusters.Delete(ctx, m.name, metav1.DeleteOptions{}) },
		"join a set": func(ctx context.Context) error {
			return harness.ErrorOf(clusters.Update(ctx, own, metav1.UpdateOptions{}))
		},
		"be another": func(ctx context.Context) error {
			return harness.ErrorOf(asVictim.Get(ctx, victim.name, metav1.GetOptions{}))
		},
		"read a lease": func(ctx context.Context) error {
			return harness.ErrorOf(client.CoordinationV1().Leases(victim.name).Get(ctx, lease.Name, metav1.GetOptions{}))
		},
		"renew a lease": func(ctx context.Context) error {
			return harness.ErrorOf(client.CoordinationV1().Leases(victim.name).Update(ctx, lease, metav1.UpdateOptions{}))
		},
		"list secrets in a namespace": func(ctx context.Context) error {
			return harness.ErrorOf(client.CoreV1().Secrets(victim.name).List(ctx, metav1.ListOptions{}))
		},
		"list secrets in its own": func(ctx context.Context) error {
			return harness.ErrorOf(client.CoreV1().Secrets(m.name).List(ctx, metav1.ListOptions{}))
		},
		"write in a namespace": func(ctx context.Context) error {
			return harness.ErrorOf(client.CoreV1().ConfigMaps(victim.name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}))
		},
		"label a cluster": func(ctx context.Context) error {
			return harness.ErrorOf(clusters.Patch(ctx, victim.name, types.MergePatchType, label, metav1.PatchOptions{}))
		},
		"patch a cluster's status": func(ctx context.Context) error {
			return harness.ErrorOf(clusters.Patch(ctx, victim.name, types.MergePatchType, status, metav1.PatchOptions{}, "status"))
		},
		"read aws-auth": func(ctx context.Context) error {
			return harness.ErrorOf(client.CoreV1().ConfigMaps("kube-system").Get(ctx, "aws-auth", metav1.GetOptions{}))
		},
		"write aws-auth": func(ctx context.Context) error {
			return harness.ErrorOf(client.CoreV1().ConfigMaps("kube-system").Patch(ctx, "aws-auth", types.MergePatchType, []byte(`{"data":{"mapRoles":""}}`), metav1.PatchOptions{}))
		},
		"get the hub's token": func(ctx context.Context) error {
			return harness.ErrorOf(client.CoreV1().ServiceAccounts("clusterhub-system").CreateToken(ctx, "hub-controller-manager",
				&authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		},
		"become an admin": func(ctx context.Context) error {
			return harness.ErrorOf(client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}))
		},
	} {
		if err := try(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("to %s: %v, want 403", what, err)
		}
	}
}

// mayNotAsk requests a certificate with the label of a different cluster.
func (m *eksManaged) mayNotAsk(t *testing.T, config *rest.Config, other string) {
	t.Helper()
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: other + "-", Labels: map[string]string{registration.ClusterNameLabel: other}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: requestFor(t, other), SignerName: registration.SignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
	_, err := harness.Kube(t, config).CertificatesV1().CertificateSigningRequests().Create(t.Context(), request, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "agents-certificates.clusterhub.dev") {
		t.Errorf("to ask for the certificate of %s: %v, want 403 by the policy", other, err)
	}
}

// requestFor returns a certificate request for the agent of a cluster.
func requestFor(t *testing.T, cluster string) []byte {
	t.Helper()
	key := harness.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	subject := pkix.Name{CommonName: registration.ClusterUser(cluster, "agent"),
		Organization: []string{registration.ClusterGroup(cluster), registration.ManagedClustersGroup}}
	request := harness.Must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
}

// getsNoCertificate requests a certificate of an agent for its own cluster: the hub must not approve the request, and must report this.
func (m *eksManaged) getsNoCertificate(t *testing.T, config *rest.Config, cluster string) {
	t.Helper()
	made := harness.Must(harness.Kube(t, config).CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: m.name + "-", Labels: map[string]string{registration.ClusterNameLabel: m.name}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    requestFor(t, cluster),
			SignerName: registration.SignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{}))(t)
	admin := harness.Kube(t, m.hub.AdminConfig())
	harness.Eventually(t, "the hub says that it leaves the request to an admin", func(ctx context.Context) (bool, error) {
		events, err := admin.EventsV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=ManagedClusterCSRPending"})
		if err != nil {
			return false, err
		}
		for _, event := range events.Items {
			if event.Regarding.Name == made.Name {
				return true, nil
			}
		}
		return false, nil
	})
	got := harness.Must(admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), made.Name, metav1.GetOptions{}))(t)
	if len(got.Status.Conditions) > 0 || len(got.Status.Certificate) > 0 {
		t.Errorf("the request for a certificate of %s: %+v", cluster, got.Status)
	}
	if err := admin.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), made.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// wantRefusal fails the test unless AWS refused the request.
func wantRefusal(t *testing.T, what string, err error) {
	t.Helper()
	var refusal smithy.APIError
	if !errors.As(err, &refusal) || refusal.ErrorCode() != "AccessDenied" && refusal.ErrorCode() != "InvalidIdentityToken" {
		t.Errorf("%s: %v, want a refusal", what, err)
	}
}

// unassumable tries to assume the roles of a cluster in every way other than the intended one.
func (m *eksManaged) unassumable(t *testing.T, thief *eksManaged) {
	t.Helper()
	e, ctx := m.eks, t.Context()
	token := func(of *eksManaged, account, audience string) string {
		return requestToken(t, of.Instance, registration.AgentNamespace, account, audience)
	}
	agentOf := func(of *eksManaged) fakeaws.Credentials {
		return harness.Must(e.byToken(ctx, of.roles.ManagedRoleARN(), token(of, registration.AgentServiceAccount, stsAudience)))(t)
	}

	// The role in the cluster's own account accepts tokens of its agent only.
	for what, of := range map[string]string{
		"another cluster's agent":        token(thief, registration.AgentServiceAccount, stsAudience),
		"another of its ServiceAccounts": token(m, "default", stsAudience),
		"a token for its API server":     token(m, registration.AgentServiceAccount, "https://kubernetes.default.svc"),
	} {
		wantRefusal(t, what, harness.ErrorOf(e.byToken(ctx, m.roles.ManagedRoleARN(), of)))
	}

	// The role in the hub's account accepts that role only, with all of its tags.
	own := agentOf(m)
	stolen := harness.Must(e.byRole(ctx, m.roles.HubRoleARN(), own))(t) // the intended way works
	everybody := map[string]string{"all": fakeaws.AllowAll}
	trust := func(user fakeaws.Credentials, account *fakeaws.Account, role fakeaws.Role) fakeaws.Credentials {
		role.Policies, role.Trust = everybody, strings.ReplaceAll(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"ID"},"Action":"sts:AssumeRole"}]}`, "ID", account.ID)
		return harness.Must(e.byRole(ctx, e.addRole(t, account, role), user))(t)
	}
	inside := harness.Must(e.members.AddUser("insider", fakeaws.AllowAll))(t)
	outside := harness.Must(e.other.AddUser("outsider", fakeaws.AllowAll))(t)
	for what, who := range map[string]fakeaws.Credentials{
		"another cluster's agent":                    agentOf(thief),
		"another cluster's role on the hub":          harness.Must(e.byRole(ctx, thief.roles.HubRoleARN(), agentOf(thief)))(t),
		"the role itself":                            stolen,
		"an admin of its account":                    inside,
		"a role of its account with all tags":        trust(inside, e.members, fakeaws.Role{Name: "forged", Tags: m.roles.Tags()}),
		"a stranger's role with its name and tags":   trust(outside, e.other, fakeaws.Role{Name: m.roles.ManagedRole(), Tags: m.roles.Tags()}),
		"an admin of the account of another cluster": outside,
	} {
		wantRefusal(t, what, harness.ErrorOf(e.byRole(ctx, m.roles.HubRoleARN(), who)))
	}
	admin := iam.NewFromConfig(e.members.Config(e.members.Root()))
	set := func(key, value string) {
		t.Helper()
		harness.Must(admin.TagRole(ctx, &iam.TagRoleInput{RoleName: aws.String(m.roles.ManagedRole()), Tags: []iamtypes.Tag{{Key: &key, Value: &value}}}))(t)
	}
	for key, value := range maps.All(m.roles.Tags()) {
		set(key, thief.roles.Tags()[key]+"x")
		wantRefusal(t, "its role with another tag "+key, harness.ErrorOf(e.byRole(ctx, m.roles.HubRoleARN(), own)))
		set(key, value)
	}
	harness.Must(e.byRole(ctx, m.roles.HubRoleARN(), own))(t)

	// A token is valid for one cluster of EKS, and for identities that aws-auth lists.
	for what, args := range map[string][]string{
		"a token for another cluster":         {"--cluster-name=" + m.roles.Managed.Name, "--role-arn=" + m.roles.HubRoleARN()},
		"a token of the role that is its own": {"--cluster-name=" + m.roles.Hub.Name},
	} {
		as := harness.Ours(t, e.withToken(m.credential(t, args...).Token)).ClusterV1().ManagedClusters()
		if _, err := as.Get(ctx, m.name, metav1.GetOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %v, want 401", what, err)
		}
	}
}

// stolenARN creates and accepts a cluster that claims the EKS cluster of a different one.
func (m *eksManaged) stolenARN(t *testing.T) {
	t.Helper()
	thief := &managed{hub: m.hub, name: harness.Unique("thief")}
	made := harness.ManagedCluster(thief.name, nil)
	made.Annotations = map[string]string{registration.AnnotationManagedClusterARN: m.roles.Managed.String()}
	harness.Must(thief.clusters(t).Create(t.Context(), made, metav1.CreateOptions{}))(t)
	before, roles := m.eks.mapRoles(t), m.eks.account.Roles()
	thief.accepted(t, true)
	reason := thief.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionFalse)
	message := conditionMessage(thief.cluster(t), registration.ConditionHubAccepted)
	if reason != registration.ReasonError || !strings.Contains(message, m.name) || strings.Contains(message, "\n") {
		t.Errorf("the thief is told %s: %s", reason, message)
	}
	if err := thief.clusters(t).Delete(t.Context(), thief.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the thief is gone", func(ctx context.Context) (bool, error) {
		_, err := thief.clusters(t).Get(ctx, thief.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if got := m.eks.mapRoles(t); got != before {
		t.Errorf("aws-auth was changed to %s", got)
	}
	if got := m.eks.account.Roles(); !sameRoles(got, roles) {
		t.Errorf("the roles were changed to %v", got)
	}
}

func sameRoles(a, b map[string]fakeaws.Role) bool {
	return maps.EqualFunc(a, b, func(x, y fakeaws.Role) bool {
		return x.ID == y.ID && x.Trust == y.Trust && maps.Equal(x.Policies, y.Policies) && maps.Equal(x.Tags, y.Tags)
	})
}
