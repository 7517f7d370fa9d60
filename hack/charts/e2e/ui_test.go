// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/hack/charts"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fakeoidc"
	"github.com/clusterhub/clusterhub/test/typing"
)

// The issuer that the front of the shared cluster trusts, and its client.
var issuer *fakeoidc.Issuer

const client = "hub"

// trustIssuer starts it. These flags are for the front.
func trustIssuer() []string {
	t := harness.Lasting()
	issuer = fakeoidc.NewIssuer(t)
	config := map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": []any{map[string]any{
		"issuer":        map[string]any{"url": issuer.URL, "audiences": []any{client}, "certificateAuthority": string(issuer.CA())},
		"claimMappings": map[string]any{"username": map[string]any{"claim": "sub", "prefix": "oidc:"}, "groups": map[string]any{"claim": "groups", "prefix": "oidc:"}},
	}}}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "authentication.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--authentication-config=" + file}
}

const pageHost = "hub.example.com"

// pageOf are hub-ui and oauth2-proxy with the flags that the chart gives them, but for addresses and places of files. It returns what they say,
// and where the proxy is.
func pageOf(t *testing.T) (page, proxy *harness.Daemon, address string) {
	t.Helper()
	values := ways(t, charts.Hub)["ui"]
	ui := values["ui"].(map[string]any)
	ui["oidc"] = map[string]any{"issuerURL": issuer.URL, "clientID": client}
	ui["tlsSecretName"] = "hub-ui-tls"
	files := harness.Must(charts.Render(harness.Must(charts.Load(harness.Root, charts.Hub))(t), charts.HubNamespace, values))(t)
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(files["ui/deployment.yaml"]), &d); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	admin := harness.Hub(t).AdminConfig()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(pageHost, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	secret := secretOfPage(t)
	behind, probes, front := harness.FreePort(t), harness.FreePort(t), harness.FreePort(t)
	address = fmt.Sprintf("127.0.0.1:%d", front)
	instead := strings.NewReplacer(
		"--port=8080", fmt.Sprintf("--port=%d", behind), "127.0.0.1:8080", fmt.Sprintf("127.0.0.1:%d", behind), "=:8081", fmt.Sprintf("=127.0.0.1:%d", probes),
		"0.0.0.0:4180", address, "https://kubernetes.default.svc", admin.Host, "/etc/hub-ui/hub/ca.crt", write("hub-ca.crt", admin.CAData),
		"/etc/hub-ui/oidc/client-secret", write("client-secret", secret["client-secret"]),
		"/etc/hub-ui/oidc/cookie-secret", write("cookie-secret", secret["cookie-secret"]),
		"/etc/hub-ui/tls/tls.crt", write("tls.crt", certificate), "/etc/hub-ui/tls/tls.key", write("tls.key", key),
		"/etc/private-ca/ca.crt", write("issuer-ca.crt", issuer.CA()))
	var daemons []*harness.Daemon
	for i, program := range []string{"hub-ui", "oauth2-proxy"} {
		var args []string
		for _, arg := range d.Spec.Template.Spec.Containers[i].Args {
			args = append(args, instead.Replace(arg))
		}
		daemons = append(daemons, harness.StartDaemon(t, harness.Binary(t, program), args...))
	}
	for _, at := range []string{fmt.Sprintf("127.0.0.1:%d", probes), address} {
		harness.Eventually(t, at+" is served", func(context.Context) (bool, error) {
			connection, err := net.Dial("tcp", at)
			if err == nil {
				_ = connection.Close()
			}
			return err == nil, err
		})
	}
	return daemons[0], daemons[1], address
}

// secretOfPage types how docs/ui.md has the Secret of hub-ui made, and returns what is in it.
func secretOfPage(t *testing.T) map[string][]byte {
	t.Helper()
	hub := harness.Hub(t)
	namespace(t, hub, charts.HubNamespace)
	secrets := harness.Kube(t, hub.AdminConfig()).CoreV1().Secrets(charts.HubNamespace)
	r := newReader(t, hub)
	r.Write("FILE", []byte("client-secret"))
	r.Types(typing.RunBy(t, harness.Root, "hack/charts/e2e", t.Name()))
	t.Cleanup(func() { _ = secrets.Delete(context.WithoutCancel(t.Context()), "hub-ui-oidc", metav1.DeleteOptions{}) })
	return harness.Must(secrets.Get(t.Context(), "hub-ui-oidc", metav1.GetOptions{}))(t).Data
}

// visitor is a browser without a page: it keeps cookies and follows redirects.
type visitor struct {
	*testing.T
	http.Client
}

func newVisitor(t *testing.T, address string) *visitor {
	t.Helper()
	return &visitor{T: t, Client: http.Client{Jar: harness.Must(cookiejar.New(nil))(t), Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // both certificates are of this test
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			if strings.HasPrefix(to, pageHost) {
				to = address
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
	}}}
}

// get returns the status code and the body of a response.
func (v *visitor) get(path string, headers ...string) (int, string) {
	v.Helper()
	r := harness.Must(http.NewRequestWithContext(v.Context(), http.MethodGet, "https://"+pageHost+path, nil))(v.T)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response := harness.Must(v.Do(r))(v.T)
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode, string(harness.Must(io.ReadAll(response.Body))(v.T))
}

// TestUI: users log in at an issuer, by oauth2-proxy and hub-ui with the flags of the chart, and see what kube-apiserver lets them see.
func TestUI(t *testing.T) {
	kube := harness.Kube(t, harness.Hub(t).AdminConfig())
	page, proxy, address := pageOf(t)
	const roles = "/hub/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1"

	nobody := newVisitor(t, address)
	nobody.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	bob := issuer.Token(t, map[string]any{"aud": client, "sub": "bob"})
	for name, headers := range map[string][]string{"without a login": nil, "with a token of one's own": {"Authorization", "Bearer " + bob}, "with a header of the proxy": {"X-Forwarded-Access-Token", bob}} {
		for _, path := range []string{"/session", roles} {
			if code, body := nobody.get(path, headers...); code != http.StatusUnauthorized || strings.Contains(body, `"user"`) {
				t.Errorf("%s, %s: %d %s", name, path, code, body)
			}
		}
	}
	if code, _ := nobody.get("/v/clusters"); code != http.StatusFound {
		t.Errorf("the page without a login: %d", code)
	}

	issuer.LogsIn(map[string]any{"sub": "ann", "email": "ann@example.com", "email_verified": true})
	ann := newVisitor(t, address)
	if code, body := ann.get("/v/clusters"); code != http.StatusOK || !strings.Contains(body, "<title>Clusterhub</title>") {
		t.Fatalf("after the login: %d %s", code, body)
	}
	// The token of the login determines the user, whatever headers ann sends.
	for _, headers := range [][]string{nil, {"Authorization", "Bearer " + bob}, {"Impersonate-User", "admin", "Impersonate-Group", "system:masters", "X-Remote-User", "admin"}} {
		if code, body := ann.get("/session", headers...); code != http.StatusOK || !strings.Contains(body, `"user":"oidc:ann"`) {
			t.Errorf("with %q: %d %s", headers, code, body)
		}
		if code, body := ann.get(roles, headers...); code != http.StatusForbidden || !strings.Contains(body, "oidc:ann") {
			t.Errorf("without the right, with %q: %d %s", headers, code, body)
		}
	}
	name := harness.Unique("page-reader")
	rule := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"list"}}
	harness.Must(kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{}))(t)
	harness.Must(kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "oidc:devs"}}}, metav1.CreateOptions{}))(t)
	harness.Eventually(t, "ann sees what the group may see", func(context.Context) (bool, error) {
		code, body := ann.get(roles)
		return harness.Holds(code == http.StatusOK && strings.Contains(body, "ClusterRoleList"), fmt.Sprintf("%d %.200s", code, body))
	})
	if code, body := ann.get("/hub/api/v1/namespaces/kube-system/secrets"); code != http.StatusForbidden || !strings.Contains(body, "the page does not need this") {
		t.Errorf("Secrets: %d %s", code, body)
	}
	if code, body := ann.get(roles, "Connection", "Upgrade", "Upgrade", "websocket"); code < 400 || strings.Contains(body, "ClusterRoleList") {
		t.Errorf("a WebSocket: %d %s", code, body)
	}
	if code, body := ann.get(roles, "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("another site: %d %s", code, body)
	}

	issuer.LogsIn(nil)
	_, _ = ann.get("/oauth2/sign_out")
	if code, body := ann.get("/session"); code != http.StatusUnauthorized {
		t.Errorf("after the end of the login: %d %s", code, body)
	}
	tokens := append(issuer.Tokens(), bob)
	if len(tokens) < 2 {
		t.Error("nobody has logged in")
	}
	for _, token := range tokens {
		for name, said := range map[string]string{"hub-ui": page.Out.String(), "oauth2-proxy": proxy.Out.String()} {
			if strings.Contains(said, token) {
				t.Errorf("%s logs a token: %s", name, said)
			}
		}
	}
}
