// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// tokenAuditPolicy audits everything at the highest level, except Secrets, which no policy should audit so.
const tokenAuditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: Metadata, resources: [{resources: [secrets]}]}
- {level: RequestResponse}
`

// tokenAccess is a hub, and a cluster for which it issues tokens.
type tokenAccess struct {
	hub, cluster *localhub.Instance
	client       client.Client
	// secrets must not appear in any log.
	secrets []string
}

// newTokenAccess starts a hub and a cluster. All logs and audit logs of the hub's servers are in its directory.
func newTokenAccess(t *testing.T) *tokenAccess {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(tokenAuditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	hub := harness.OwnHub(t, func(c *localhub.Options) {
		audited := func(name string) []string {
			return []string{"--v=10", "--audit-policy-file=" + policy, "--audit-log-mode=blocking",
				"--audit-log-path=" + filepath.Join(c.Dir, "logs", name+".audit")}
		}
		c.WithoutHubControllerManager, c.WithoutKubeControllerManager = true, true
		c.HubAPIServerArgs, c.FrontArgs = audited("hub-apiserver"), audited("kube-apiserver")
	})
	return provideTokens(t, hub, harness.OwnHub(t, func(c *localhub.Options) { c.Plain, c.WithoutKubeControllerManager = true, true }))
}

// provideTokens prepares the hub and the cluster.
func provideTokens(t *testing.T, hub, cluster *localhub.Instance) *tokenAccess {
	t.Helper()
	a := &tokenAccess{hub: hub, cluster: cluster}
	a.client = harness.Must(client.New(a.hub.AdminConfig(), client.Options{Scheme: scheme.Scheme}))(t)
	a.kubectl(t, a.cluster, `
{apiVersion: v1, kind: Namespace, metadata: {name: accessrequests}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: web}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: accessrequests, name: clusterhub-token-minter}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: accessrequests, name: granted}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: accessrequests, name: clusterhub-token-minter}
rules: [{apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: accessrequests, name: clusterhub-token-minter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: clusterhub-token-minter}
subjects: [{kind: ServiceAccount, namespace: accessrequests, name: clusterhub-token-minter}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: web, name: granted}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: web, name: granted}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: granted}
subjects: [{kind: ServiceAccount, namespace: accessrequests, name: granted}]
`, "apply", "-f", "-")
	a.kubectl(t, a.hub, "", "create", "namespace", "teams")
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: "any"}, Spec: v1alpha1.ClusterProfileSpec{
		ProviderRef: v1alpha1.LocalObjectReference{Name: "test"}, ProviderConfigRef: v1alpha1.LocalObjectReference{Name: "any"},
		SupportedVersions: []v1alpha1.SupportedK8sVersion{},
	}}
	blue := harness.OpenMCPCluster("teams", "any")
	blue.Name = "blue"
	for _, o := range []client.Object{profile, blue} {
		if err := a.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func (a *tokenAccess) kubectl(t *testing.T, h *localhub.Instance, stdin string, args ...string) string {
	t.Helper()
	out, err := a.tryKubectl(t, h, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (a *tokenAccess) tryKubectl(t *testing.T, h *localhub.Instance, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := h.Kubectl(t.Context(), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// grant creates a request and grants it as a provider does.
func (a *tokenAccess) grant(t *testing.T, name string, ttl time.Duration) *v1alpha1.AccessRequest {
	t.Helper()
	ar := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name}, Spec: v1alpha1.AccessRequestSpec{
		ClusterRef: &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}, Token: &v1alpha1.TokenConfig{},
	}}
	if ttl > 0 {
		ar.Spec.TTL = &duration.Duration{Duration: ttl}
	}
	if err := a.client.Create(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	a.provide(t, ar)
	return ar
}

func (a *tokenAccess) provide(t *testing.T, ar *v1alpha1.AccessRequest) {
	t.Helper()
	minter := harness.Must(harness.Kube(t, a.cluster.AdminConfig()).CoreV1().ServiceAccounts(v1alpha1.TokenMinterNamespace).CreateToken(t.Context(),
		v1alpha1.TokenMinterServiceAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t).Status.Token
	a.secrets = append(a.secrets, minter)
	admin := a.cluster.AdminConfig()
	if err := rest.LoadTLSFiles(admin); err != nil {
		t.Fatal(err)
	}
	kubeconfig := harness.Must(clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: admin.Host, CertificateAuthorityData: admin.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {Token: minter}}, CurrentContext: "c",
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
	}))(t)
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.TokenSourceNamespace, Name: string(ar.UID)},
		Type:       v1alpha1.TokenSourceSecretType,
		Data: map[string][]byte{
			v1alpha1.TokenSourceKubeconfigKey:              kubeconfig,
			v1alpha1.TokenSourceServiceAccountNamespaceKey: []byte(v1alpha1.TokenMinterNamespace),
			v1alpha1.TokenSourceServiceAccountNameKey:      []byte("granted"),
			v1alpha1.TokenSourceAccessRequestKey:           []byte(ar.Namespace + "/" + ar.Name),
		},
	}
	harness.Must(harness.Kube(t, a.hub.AdminConfig()).CoreV1().Secrets(source.Namespace).Create(t.Context(), source, metav1.CreateOptions{}))(t)
	ar.Status.Phase, ar.Status.ObservedGeneration = v1alpha1.REQUEST_GRANTED, ar.Generation
	if err := a.client.Status().Update(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
}

func (a *tokenAccess) token(t *testing.T, config *rest.Config, name string, options metav1.CreateOptions) (*v1alpha1.AccessToken, error) {
	t.Helper()
	token, err := harness.Ours(t, config).OpenMCPV1alpha1().AccessRequests("teams").CreateToken(t.Context(), name, &v1alpha1.AccessToken{}, options)
	if err == nil && token.Status.Token != "" {
		a.secrets = append(a.secrets, token.Status.Token)
	}
	return token, err
}
