// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fakeoidc"
)

// trustsIssuers creates requests for OIDC providers, some of which cannot be trusted.
func (l *localClusters) trustsIssuers(t *testing.T) {
	corp, partner, stranger, down := fakeoidc.NewIssuer(t), fakeoidc.NewIssuer(t), fakeoidc.NewIssuer(t), fakeoidc.NewIssuer(t)
	down.Close()

	users := func(names ...string) (subjects []rbacv1.Subject) {
		for _, name := range names {
			subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: name})
		}
		return subjects
	}
	editor := v1alpha1.RoleRef{Kind: "Role", Name: "editor", Namespace: "web"}
	nodes := v1alpha1.RoleRef{Kind: "ClusterRole", Name: "nodes"}
	ofCorp := oidcAccess("corp", corp.URL)
	ofCorp.ExtraScopes, ofCorp.GroupsPrefix = []string{"email", "profile"}, new("group:")
	ofCorp.Roles = []v1alpha1.PermissionsRequest{
		{Name: "editor", Namespace: "web", Rules: rulesOf("get,list,create", "configmaps")}, {Name: "nodes", Rules: rulesOf("list", "nodes")},
	}
	ofCorp.RoleBindings = []v1alpha1.RoleBindings{
		{Subjects: append(users("ann"), rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "devs"}), RoleRefs: []v1alpha1.RoleRef{editor}},
		// Names are literal: eve has the name that the cluster knows, and bob does not.
		{Subjects: users("::corp:eve", "::bob"), RoleRefs: []v1alpha1.RoleRef{nodes}},
	}
	staff := l.askFor(t, "staff", ofCorp)
	secret := l.grantedTo(t, staff)
	owner := metav1.GetControllerOf(secret)
	if keys := slices.Collect(maps.Keys(secret.Data)); secret.Name != "staff.kubeconfig" || owner == nil || owner.UID != staff.UID ||
		!slices.Equal(keys, []string{"kubeconfig"}) {
		t.Errorf("the Secret %s of %v has %v", secret.Name, owner, secret.Data)
	}
	config := harness.Must(clientcmd.Load(secret.Data["kubeconfig"]))(t)
	const name = "teams--blue--corp"
	user := config.AuthInfos["corp"]
	if in := config.Contexts[name]; config.CurrentContext != name || in == nil || in.Cluster != "teams--blue" || in.AuthInfo != "corp" ||
		user == nil || user.Token != "" || user.ClientKeyData != nil || user.Exec == nil {
		t.Fatalf("the kubeconfig is\n%s", secret.Data["kubeconfig"])
	}
	wantArgs := []string{"oidc-login", "get-token", "--grant-type=auto", "--oidc-issuer-url=" + corp.URL, "--oidc-client-id=kubectl",
		"--oidc-extra-scope=email", "--oidc-extra-scope=profile", "--oidc-pkce-method=auto"}
	if user.Exec.Command != "kubectl" || user.Exec.APIVersion != "client.authentication.k8s.io/v1beta1" ||
		!slices.Equal(user.Exec.Args, wantArgs) {
		t.Errorf("%s logs in by %s %q", user.Exec.APIVersion, user.Exec.Command, user.Exec.Args)
	}

	t.Log("kubectl logs in by its plugin, as whom the issuer says, with just the rights that were asked for")
	login := newLogin(t, l, secret.Data["kubeconfig"])
	ann := corp.Token(t, nil)
	who := authenticationv1.SelfSubjectReview{}
	if err := json.Unmarshal([]byte(login.succeeds(t, ann, "auth", "whoami", "-o", "json")), &who); err != nil {
		t.Fatal(err)
	}
	if info := who.Status.UserInfo; info.Username != "corp:ann" || !slices.Equal(info.Groups, []string{"group:devs", "system:authenticated"}) {
		t.Errorf("ann is %q in %q", info.Username, info.Groups)
	}
	if asked := login.asked(t); !slices.Equal(asked, wantArgs[1:]) {
		t.Errorf("the plugin was asked for %q", asked)
	}
	login.succeeds(t, ann, "create", "configmap", "by-ann", "-n", "web")
	login.refused(t, ann, "delete", "configmap", "by-ann", "-n", "web")
	login.refused(t, ann, "get", "configmaps", "-n", "default")
	login.refused(t, ann, "get", "secrets", "-n", "web")
	login.refused(t, ann, "get", "nodes")
	dan := map[string]any{"sub": "dan"} // a member of devs
	login.succeeds(t, corp.Token(t, dan), "get", "configmap", "by-ann", "-n", "web")
	dan["groups"] = []string{"group:devs"}
	login.refused(t, corp.Token(t, dan), "get", "configmaps", "-n", "web")
	login.succeeds(t, corp.Token(t, map[string]any{"sub": "eve", "groups": []string{}}), "get", "nodes")
	login.refused(t, corp.Token(t, map[string]any{"sub": "bob"}), "get", "nodes")
	login.unknown(t, stranger.Token(t, nil))
	login.unknown(t, stranger.Token(t, map[string]any{"iss": corp.URL}))
	login.unknown(t, corp.Token(t, map[string]any{"aud": "other"}))

	t.Log("An issuer that is refused fails its own request only")
	refused := map[*v1alpha1.AccessRequest]string{
		l.askFor(t, "down", oidcAccess("down", down.URL)):                       "it is not reachable",
		l.askFor(t, "plain", oidcAccess("plain", "http://issuer.example.test")): "URL scheme must be https",
	}
	partners := oidcAccess("partner", partner.URL)
	partners.Roles = []v1alpha1.PermissionsRequest{{Name: "auditor", Rules: []rbacv1.PolicyRule{
		harness.RuleIn("", "list", "configmaps"),
		harness.RuleIn(rbacv1.GroupName, "list", "roles"), harness.RuleIn(rbacv1.GroupName, "list", "rolebindings"),
	}}}
	auditor := v1alpha1.RoleRef{Kind: "ClusterRole", Name: "auditor"}
	partners.RoleBindings = []v1alpha1.RoleBindings{{Subjects: users("pat"), RoleRefs: []v1alpha1.RoleRef{auditor}}}
	// Without a prefix, the partner could authenticate a user as corp:ann.
	partners.UsernamePrefix = new("")
	impostor := l.askFor(t, "impostor", partners)
	l.Await(t, "what gives out others' names is refused", impostor, func() error {
		condition := meta.FindStatusCondition(impostor.Status.Conditions, "AccessReady")
		if condition == nil || condition.Reason != "OIDCPrefixRefused" || impostor.Status.Phase != v1alpha1.REQUEST_PENDING {
			return fmt.Errorf("%+v", impostor.Status)
		}
		return nil
	})
	l.delete(t, impostor)
	partners.UsernamePrefix = new("guest:")
	guests := l.askFor(t, "guests", partners)
	l.grantedTo(t, guests)
	for ar, why := range refused {
		l.Await(t, ar.Name+" is refused", ar, func() error {
			condition := meta.FindStatusCondition(ar.Status.Conditions, "AccessReady")
			if condition == nil || condition.Reason != "OIDCIssuerRefused" || ar.Status.Phase != v1alpha1.REQUEST_PENDING ||
				!strings.HasPrefix(condition.Message, "spec.oidc.issuer: the cluster cannot trust "+ar.Spec.OIDC.Issuer) ||
				!strings.Contains(condition.Message, why) {
				return fmt.Errorf("%+v", ar.Status)
			}
			return nil
		})
	}
	pat := partner.Token(t, map[string]any{"sub": "pat"})
	login.succeeds(t, pat, "get", "configmaps", "-A")
	login.refused(t, pat, "get", "secrets", "-A")
	login.succeeds(t, ann, "get", "configmap", "by-ann", "-n", "web")
	login.unknown(t, down.Token(t, nil))

	t.Log("Who is trusted no more is unknown, and leaves no rights; others stay")
	for ar := range refused {
		l.delete(t, ar)
	}
	l.delete(t, staff)
	login.forgotten(t, ann)
	login.succeeds(t, pat, "get", "configmaps", "-A")
	if out := login.succeeds(t, pat, "get", "rolebindings,roles", "-n", "web", "-o", "name"); strings.Contains(out, "rbac") {
		t.Errorf("left: %s", out)
	}
	l.delete(t, guests)
	login.forgotten(t, pat)
}

// saysThatItRestarts creates a request for an issuer while a different trusted issuer does not respond.
func (l *localClusters) saysThatItRestarts(t *testing.T) {
	up, down := fakeoidc.NewIssuer(t), fakeoidc.NewIssuer(t)
	before := l.askFor(t, "before", oidcAccess("before", down.URL))
	l.grantedTo(t, before)
	down.Close()
	waits := l.askFor(t, "waits", oidcAccess("waits", up.URL))
	if message := l.AwaitCluster(t, "blue", v1alpha1.StatusPhaseProgressing); !strings.HasPrefix(message, "kube-apiserver is being restarted to apply") {
		t.Error(message)
	}
	l.Await(t, "the request says what it waits for", waits, func() error {
		condition := meta.FindStatusCondition(waits.Status.Conditions, "AccessReady")
		if condition == nil || condition.Reason != "ClusterNotReady" || !strings.Contains(condition.Message, "kube-apiserver is being restarted to apply") {
			return fmt.Errorf("%+v", waits.Status)
		}
		return nil
	})
	l.AwaitCluster(t, "blue", v1alpha1.StatusPhaseReady)
	l.grantedTo(t, waits)
	blue := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue"}}
	l.Await(t, "the condition of the Cluster", blue, func() error {
		if !meta.IsStatusConditionTrue(blue.Status.Conditions, "OIDCIssuersLoaded") {
			return fmt.Errorf("%+v", blue.Status)
		}
		return nil
	})
	// More events are possible: on a slow machine, previous subtests cause kube-apiserver to restart, too. A repetition within minutes may not be
	// recorded.
	harness.Eventually(t, "an event", func(ctx context.Context) (bool, error) {
		out, err := l.Hub.Kubectl(ctx, "get", "events", "-n", "teams", "--field-selector=reason=Restarting,involvedObject.kind=Cluster", "-o", "name").Output()
		return len(strings.Fields(string(out))) > 0, err
	})
	for _, ar := range []*v1alpha1.AccessRequest{before, waits} {
		l.delete(t, ar)
	}
}

func oidcAccess(name, issuer string) *v1alpha1.OIDCConfig {
	return &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
		Name: name, Issuer: issuer, ClientID: "kubectl", RoleBindings: []v1alpha1.RoleBindings{{
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "guest"}}, RoleRefs: []v1alpha1.RoleRef{viewer},
		}},
	}}
}

// askFor creates an AccessRequest to blue. The controllers prepare it.
func (l *localClusters) askFor(t *testing.T, name string, oidc *v1alpha1.OIDCConfig) *v1alpha1.AccessRequest {
	t.Helper()
	ar := &v1alpha1.AccessRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name},
		Spec:       v1alpha1.AccessRequestSpec{ClusterRef: &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}, OIDC: oidc},
	}
	if err := l.Client.Create(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	return ar
}

func (l *localClusters) grantedTo(t *testing.T, ar *v1alpha1.AccessRequest) *corev1.Secret {
	t.Helper()
	l.Await(t, ar.Name+" is granted", ar, func() error {
		if !ar.Status.IsGranted() {
			return fmt.Errorf("%+v", ar.Status)
		}
		return nil
	})
	secret := &corev1.Secret{}
	name := types.NamespacedName{Namespace: ar.Namespace, Name: ar.Status.SecretRef.Name}
	if err := l.Client.Get(t.Context(), name, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// delete deletes a request, and waits until it is gone.
func (l *localClusters) delete(t *testing.T, ar *v1alpha1.AccessRequest) {
	t.Helper()
	harness.MustKubectlOf(t, l.Hub, "", "delete", "accessrequest", ar.Name, "-n", ar.Namespace, "--timeout="+harness.Timeout.String())
}

// login is a user with a kubeconfig, and a plugin that provides a token without interaction.
type login struct {
	l                     *localClusters
	dir, kubeconfig, path string
}

func newLogin(t *testing.T, l *localClusters, kubeconfig []byte) *login {
	t.Helper()
	dir := t.TempDir()
	plugin := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\" >%[1]s/asked\ncat %[1]s/credential\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "kubectl-oidc_login"), []byte(plugin), 0o700); err != nil {
		t.Fatal(err)
	}
	u := &login{l: l, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	u.path = strings.Join([]string{dir, filepath.Dir(harness.Binary(t, "kubectl")), os.Getenv("PATH")}, string(os.PathListSeparator))
	if err := os.WriteFile(u.kubeconfig, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return u
}

// asked returns the arguments of the last call of the plugin.
func (u *login) asked(t *testing.T) []string {
	t.Helper()
	return strings.Fields(string(harness.Must(os.ReadFile(filepath.Join(u.dir, "asked")))(t)))
}

func (u *login) kubectl(t *testing.T, token string, args ...string) (string, error) {
	t.Helper()
	credential := fmt.Sprintf(`{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":{"token":%q}}`, token)
	if err := os.WriteFile(filepath.Join(u.dir, "credential"), []byte(credential), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := u.l.Hub.Kubectl(t.Context(), append([]string{"--kubeconfig", u.kubeconfig}, args...)...)
	cmd.Env = append(cmd.Env, "PATH="+u.path)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (u *login) succeeds(t *testing.T, token string, args ...string) string {
	t.Helper()
	out, err := u.kubectl(t, token, args...)
	if err != nil {
		t.Errorf("kubectl %v: %v\n%s", args, err, out)
	}
	return out
}

// refused verifies that the cluster authenticates the user, but does not authorize the request.
func (u *login) refused(t *testing.T, token string, args ...string) {
	t.Helper()
	if out, err := u.kubectl(t, token, args...); err == nil || !strings.Contains(out, "Forbidden") {
		t.Errorf("kubectl %v: %v, want a 403\n%s", args, err, out)
	}
}

// unknown verifies that the cluster does not authenticate the user.
func (u *login) unknown(t *testing.T, token string) {
	t.Helper()
	if out, err := u.kubectl(t, token, "get", "--raw", "/api"); err == nil || !strings.Contains(out, "Unauthorized") {
		t.Errorf("kubectl: %v, want a 401\n%s", err, out)
	}
}

// forgotten waits until the cluster no longer authenticates the user. A kube-apiserver caches a token for ten seconds.
func (u *login) forgotten(t *testing.T, token string) {
	t.Helper()
	harness.Eventually(t, "the token is of no use", func(context.Context) (bool, error) {
		out, err := u.kubectl(t, token, "get", "--raw", "/api")
		return err != nil && strings.Contains(out, "Unauthorized"), nil
	})
}
