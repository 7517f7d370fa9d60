// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/kubeconfig"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// lend sets which namespaces may use the cluster of a Secret, and triggers a reconciliation of the Cluster. It patches, as the provider may write
// concurrently.
func lend(ctx context.Context, hub client.Client, secret *corev1.Secret, c *v1alpha1.Cluster, namespaces string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kubeconfig.NamespacesAnnotation, namespaces))
	if err := hub.Patch(ctx, secret, patch); err != nil {
		return err
	}
	now := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`))
	return hub.Patch(ctx, c, now)
}

// takesClustersBack removes a namespace from a Secret, and adds a different one for its cluster.
func (p *providing) takesClustersBack(t *testing.T) {
	secret := p.admit("existing", "lent", harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t))
	c := p.newCluster("test.existing.lent", "lent")
	p.awaitPhase(c, v1alpha1.StatusPhaseReady)
	token := &v1alpha1.TokenConfig{
		Permissions: []v1alpha1.PermissionsRequest{{Name: "of-lent", Rules: rulesOf("list", "nodes")}}, RoleRefs: []v1alpha1.RoleRef{viewer},
	}
	ar := p.request(t, "borrower", c, token)
	answer := p.granted(t, ar)
	user := p.as(t, answer)
	harness.Must(user.CoreV1().Nodes().List(t.Context(), listOptions()))(t)
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.TokenSourceNamespace, Name: string(ar.UID)}}

	if err := lend(t.Context(), p.client, secret, c, "web"); err != nil {
		t.Fatal(err)
	}
	message := p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "ClusterNotHeld")
	if !strings.Contains(message, `the Cluster 'teams/lent': its namespace may no longer use the cluster of the configuration "lent"`) {
		t.Error(message)
	}
	if ar.Status.SecretRef != nil {
		t.Errorf("%+v", ar.Status)
	}
	p.awaitGone(t, answer)
	if p.client.Get(t.Context(), client.ObjectKeyFromObject(source), source) == nil {
		t.Error("the token source is left")
	}
	if left := p.left(t, "existing", ar.Name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := user.CoreV1().Nodes().List(t.Context(), listOptions()); !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		t.Errorf("the kubeconfig is of use: %v", err)
	}
	harness.Eventually(t, "others may have it", func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return err == nil && secret.Annotations[kubeconfig.HolderAnnotation] == "", err
	})
	p.get(t, c)
	for about, want := range map[string]string{"Ready": "Withdrawn", "Held": "Withdrawn"} {
		condition := meta.FindStatusCondition(c.Status.Conditions, about)
		if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != want ||
			!strings.Contains(condition.Message, `the namespace "teams" may no longer use the cluster of the configuration "lent"`) {
			t.Errorf("%s: %+v", about, condition)
		}
	}
	late := p.request(t, "too-late", c, token)
	p.awaitAccess(t, late, v1alpha1.REQUEST_PENDING, "ClusterNotHeld")
	p.delete(t, late)
	p.awaitGone(t, late)

	if err := lend(t.Context(), p.client, secret, c, "web,teams"); err != nil {
		t.Fatal(err)
	}
	p.awaitPhase(c, v1alpha1.StatusPhaseReady)
	harness.Must(p.as(t, p.granted(t, ar)).CoreV1().Nodes().List(t.Context(), listOptions()))(t)

	t.Log("Another one has it")
	if err := lend(t.Context(), p.client, secret, c, "web"); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "others may have it", func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return err == nil && secret.Annotations[kubeconfig.HolderAnnotation] == "", err
	})
	if left := p.left(t, "existing", ar.Name); len(left) > 0 {
		t.Errorf("others may have it, and this is left: %v", left)
	}
	p.create(&corev1.Namespace{ObjectMeta: harness.Named("web")})
	next := harness.OpenMCPCluster("web", "test.existing.lent")
	next.Name = "next"
	p.create(next)
	p.awaitPhase(next, v1alpha1.StatusPhaseReady)
	p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "ClusterNotHeld")

	t.Log("Nobody keeps it by having it ignored")
	ignored := p.request(t, "ignored", next, token)
	p.granted(t, ignored)
	for _, object := range []client.Object{ignored, next} {
		p.patch(t, object, `{"metadata":{"annotations":{"openmcp.cloud/operation":"ignore"}}}`)
	}
	p.patch(t, secret, `{"metadata":{"annotations":{"`+kubeconfig.NamespacesAnnotation+`":""}}}`)
	p.patch(t, next, `{"metadata":{"annotations":{"looked":"at"}}}`)
	harness.Eventually(t, "others may have it", func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return err == nil && secret.Annotations[kubeconfig.HolderAnnotation] == "", err
	})
	if left := p.left(t, "existing", ignored.Name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, object := range []client.Object{ignored, next} {
		p.patch(t, object, `{"metadata":{"annotations":{"openmcp.cloud/operation":null}}}`)
	}
	for _, object := range []client.Object{ignored, ar, c, next, secret} {
		p.delete(t, object)
		p.awaitGone(t, object)
	}
}

// TestAccessCrash_DuringWithdrawal kills the provider with SIGKILL after each write by which it withdraws a cluster.
func TestAccessCrash_DuringWithdrawal(t *testing.T) {
	h := newAccessHub(t, crashConfig)
	startControllers(t, h.hub, "--scheduler-config="+h.schedulerConfig)
	h.namespace(t, "teams")
	plain := harness.LendCluster(t)
	target := harness.Kube(t, plain.AdminConfig())
	provider := &fuse{agent: "cluster-provider", done: sets.New[string]()}
	tapped := h.tap(t, adminWithToken(t, plain), provider)
	h.admit(t, harness.ProvidersNamespace, "existing", []string{"lent"}, harness.Must(os.ReadFile(tapped))(t))
	provider.Daemon = h.providerAs(t, "kubeconfig", "existing", h.tap(t, h.providerAccount(t, "existing"), provider))
	c := h.newCluster(t, "teams", "lent", "test.existing.lent")
	h.awaitReady(t, c)
	ar := h.create(t, "teams", "borrower", c, permissions(append(readNodes, v1alpha1.PermissionsRequest{Namespace: "web", Rules: rulesOf("list", "configmaps")})...))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: harness.ProvidersNamespace, Name: "lent"}}
	for finished := false; !finished; {
		user := clientOf(t, h.granted(t, ar))
		harness.Must(user.CoreV1().Nodes().List(t.Context(), listOptions()))(t)
		provider.arm(provider.Restart)
		if err := lend(t.Context(), h.client, secret, c, "others"); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "others may have the cluster", func(ctx context.Context) (bool, error) {
			err := h.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
			return err == nil && secret.Annotations[kubeconfig.HolderAnnotation] == "", err
		})
		for _, object := range made(t, target) {
			t.Errorf("others may have the cluster, and %s is left", object)
		}
		h.refusal(t, ar, "ClusterNotHeld")
		h.nothingLeft(t, target)
		finished = provider.arm(nil)
		if t.Failed() {
			t.Fatalf("killed after %s", provider.last)
		}
		if err := lend(t.Context(), h.client, secret, c, "teams"); err != nil {
			t.Fatal(err)
		}
		h.awaitReady(t, c)
	}
	t.Logf("the provider was killed after %d writes", provider.done.Len())
}

// adminWithToken returns a kubeconfig of an admin of a cluster that needs no client certificate.
func adminWithToken(t *testing.T, plain *localhub.Instance) (kubeconfigFile string) {
	t.Helper()
	target, ctx := harness.Kube(t, plain.AdminConfig()), t.Context()
	harness.Must(target.CoreV1().ServiceAccounts("kube-system").Create(ctx, &corev1.ServiceAccount{ObjectMeta: harness.Named("lender")}, metav1.CreateOptions{}))(t)
	harness.Must(target.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: harness.Named("lender"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "lender"}},
	}, metav1.CreateOptions{}))(t)
	token := harness.Must(target.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "lender", tokenRequest(), metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		_ = target.CoreV1().ServiceAccounts("kube-system").Delete(context.WithoutCancel(ctx), "lender", metav1.DeleteOptions{})
	})
	config := harness.Must(clientcmd.LoadFromFile(plain.AdminKubeconfig()))(t)
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{"lender": {Token: token.Status.Token}}
	config.Contexts[config.CurrentContext].AuthInfo = "lender"
	return writeKubeconfig(t, string(harness.Must(clientcmd.Write(*config))(t)))
}
