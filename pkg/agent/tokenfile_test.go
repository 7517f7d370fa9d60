// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

// TestDetached_UsesTokenOfRecreatedServiceAccount: the tokens of a deleted ServiceAccount become invalid, and once the file has a
// valid token, the agent does not use the old one any more.
func TestDetached_UsesTokenOfRecreatedServiceAccount(t *testing.T) {
	namespace, dir := worktest.Namespace(t), t.TempDir()
	admin := worktest.Config(t)
	kube := kubernetes.NewForConfigOrDie(admin)
	mint := func() string {
		t.Helper()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
		if _, err := kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		request, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "agent", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		good := rest.AnonymousClientConfig(admin)
		good.BearerToken = request.Status.Token
		worktest.Eventually(t, "the server takes the new token", func() bool {
			_, err := kubernetes.NewForConfigOrDie(good).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
		return request.Status.Token
	}
	put := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bind(t, kube, namespace, []rbacv1.PolicyRule{rights.Rule("", "configmaps", "list", "watch")},
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "agent"})
	put("token", mint())
	way, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: admin.Host, CertificateAuthorityData: admin.CAData, TLSServerName: admin.ServerName}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {TokenFile: "token"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	})
	if err != nil {
		t.Fatal(err)
	}
	put("kubeconfig", string(way))
	o := spoke.NewOptions()
	o.Detached, o.Kubeconfig = true, filepath.Join(dir, "kubeconfig")
	managed, err := o.Managed()
	if err != nil {
		t.Fatal(err)
	}
	own, err := spoke.New(managed.Config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := own.Client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(own.Watching, 0, informers.WithNamespace(namespace))
	seen := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(namespace)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())

	if err := kube.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), "agent", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "the token is worth nothing", func() bool { return apierrors.IsUnauthorized(ask()) })
	put("token", mint())
	began, refused := time.Now(), 0
	for err = ask(); err != nil && refused < 3; err = ask() {
		refused++
	}
	if err != nil {
		t.Errorf("the new token was not sent in %d requests: %v", refused, err)
	}
	t.Logf("the new token was sent after %d refusals, %s after it was in the file", refused, time.Since(began))
	if _, err := kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "later"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "what was watched before is watched", func() bool {
		_, err := seen.Get("later")
		return err == nil
	})
}
