// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fakeoidc"
)

// TestAccessProvider_ChangeBetweenTokenAndOIDC verifies that a request that changes its kind of access retains no objects of the previous one.
func TestAccessProvider_ChangeBetweenTokenAndOIDC(t *testing.T) {
	p := newProviding(t)
	issuer, ca := fakeoidc.NewIssuer(t), filepath.Join(t.TempDir(), "issuer.crt")
	if err := os.WriteFile(ca, issuer.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := harness.BinDir(t)
	p.runKind("local", "here", "--dir="+t.TempDir(), "--bin-dir="+bin, "--issuer-ca-file="+ca, "--end-with-provider", "--unsafe-no-fsync")
	c := p.newCluster("test.here.default", "blue")
	p.awaitPhase(c, v1alpha1.StatusPhaseReady)

	// lists checks whether a client can list pods.
	lists := func(what string, config *rest.Config, refused func(error) bool) {
		t.Helper()
		user := harness.Kube(t, config)
		harness.Eventually(t, what, func(ctx context.Context) (bool, error) {
			_, err := user.CoreV1().Pods("default").List(ctx, listOptions())
			if refused != nil {
				return refused(err), nil
			}
			return err == nil, err
		})
	}
	keys := func(secret *corev1.Secret, want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(secret.Data)); !slices.Equal(got, want) {
			t.Errorf("the Secret has %v, want %v", got, want)
		}
	}
	ar := p.request(t, "ann", c, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.TokenSourceNamespace, Name: string(ar.UID)}}
	secret := p.granted(t, ar)
	keys(secret, "creationTimestamp", "expirationTimestamp", "kubeconfig")
	byToken := harness.Must(clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"]))(t)
	lists("the token is of use", byToken, nil)
	p.get(t, source)

	ar.Spec.Token, ar.Spec.OIDC = nil, oidcAccess("corp", issuer.URL)
	ar.Spec.OIDC.RoleBindings = []v1alpha1.RoleBindings{{
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "ann"}}, RoleRefs: []v1alpha1.RoleRef{viewer},
	}}
	if err := p.client.Update(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	p.pending(t, ar)
	keys(p.granted(t, ar), "kubeconfig")
	byOIDC := rest.AnonymousClientConfig(byToken)
	byOIDC.BearerToken = issuer.Token(t, nil)
	lists("ann logs in", byOIDC, nil)
	lists("the token is of no use", byToken, apierrors.IsUnauthorized)
	p.awaitGone(t, source)

	ar.Spec.Token, ar.Spec.OIDC = &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}}, nil
	if err := p.client.Update(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	p.pending(t, ar)
	secret = p.granted(t, ar)
	keys(secret, "creationTimestamp", "expirationTimestamp", "kubeconfig")
	lists("the new token is of use", harness.Must(clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"]))(t), nil)
	lists("the issuer is not trusted any more", byOIDC, apierrors.IsUnauthorized)
	p.delete(t, ar)
	p.awaitGone(t, ar)
}
