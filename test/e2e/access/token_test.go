// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestAccessToken(t *testing.T) {
	a := newTokenAccess(t)
	ann := a.grant(t, "ann", time.Hour)
	path := "/apis/" + harness.OpenMCPGroup + "/v1alpha1/namespaces/teams/accessrequests/ann/token"

	t.Run("works on the cluster with just the rights of the ServiceAccount", func(t *testing.T) {
		sent := `{"apiVersion":"clusters.openmcp.cloud/v1alpha1","kind":"AccessToken","spec":{"expirationSeconds":60}}`
		cmd := a.hub.Kubectl(t.Context(), "create", "--raw", path, "-f", "-")
		cmd.Stdin = strings.NewReader(sent)
		out := harness.Must(cmd.Output())(t)
		token := v1alpha1.AccessToken{}
		if err := json.Unmarshal(out, &token); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		a.secrets = append(a.secrets, token.Status.Token)
		if token.Name != "ann" || len(token.ManagedFields) > 0 || *token.Spec.ExpirationSeconds != 600 {
			t.Errorf("got %+v %+v", token.ObjectMeta, token.Spec)
		}
		claims := struct{ Exp int64 }{}
		payload := harness.Must(base64.RawURLEncoding.DecodeString(strings.Split(token.Status.Token, ".")[1]))(t)
		if err := json.Unmarshal(payload, &claims); err != nil || claims.Exp != token.Status.ExpirationTimestamp.Unix() {
			t.Errorf("it expires at %d, and %s is said: %v", claims.Exp, token.Status.ExpirationTimestamp, err)
		}
		if left := time.Until(time.Unix(claims.Exp, 0)); left > 10*time.Minute+5*time.Second {
			t.Errorf("it is valid for %s", left)
		}
		config := harness.Must(clientcmd.RESTConfigFromKubeConfig([]byte(token.Status.Kubeconfig)))(t)
		client := harness.Kube(t, config)
		harness.Must(client.CoreV1().ConfigMaps("web").List(t.Context(), metav1.ListOptions{}))(t)
		if _, err := client.CoreV1().Secrets("web").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("Secrets: %v", err)
		}
		if _, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("another namespace: %v", err)
		}
	})
	t.Run("warns of what differs from the wish", func(t *testing.T) {
		cmd := a.hub.Kubectl(t.Context(), "create", "--raw", path, "-f", "-", "-v=6")
		cmd.Stdin = strings.NewReader(`{"apiVersion":"clusters.openmcp.cloud/v1alpha1","kind":"AccessToken","spec":{"expirationSeconds":86401}}`)
		var warnings strings.Builder
		cmd.Stderr = &warnings
		harness.Must(cmd.Output())(t)
		harness.Contains(t, warnings.String(), "86401 is not between 600 and 86400", ": then the ttl of the AccessRequest expires")
	})
	t.Run("a dry run", func(t *testing.T) {
		token, err := a.token(t, a.hub.AdminConfig(), "ann", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || token.Status.Token != "" || token.Status.Server != a.cluster.AdminConfig().Host || token.Status.ExpirationTimestamp.IsZero() {
			t.Errorf("got %+v, %v", token, err)
		}
	})
	t.Run("only who may create the subresource", func(t *testing.T) {
		harness.Grant(t, a.hub, "reader", "reader", harness.RuleIn(harness.OpenMCPGroup, "get,list,watch,create,update,patch,delete", "accessrequests"))
		harness.Grant(t, a.hub, "getter", "getter", harness.RuleIn(harness.OpenMCPGroup, "get,update,patch", "accessrequests/token"))
		harness.Grant(t, a.hub, "minter", "minter", harness.RuleIn(harness.OpenMCPGroup, "create", "accessrequests/token", "ann"))
		for _, user := range []string{"reader", "getter"} {
			_, err := a.token(t, a.hub.UserConfig(user), "ann", metav1.CreateOptions{})
			harness.WantForbidden(t, err, `cannot create resource "accessrequests/token"`)
		}
		if _, err := a.token(t, a.hub.UserConfig("minter"), "ann", metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := a.token(t, a.hub.UserConfig("minter"), "bob", metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("another request: %v", err)
		}
	})
	t.Run("refuses", func(t *testing.T) { a.refuses(t) })
	t.Run("forged sources", func(t *testing.T) { a.forged(t) })
	t.Run("is stored nowhere and ends with the access", func(t *testing.T) {
		token := harness.Must(a.token(t, a.hub.AdminConfig(), "ann", metav1.CreateOptions{}))(t)
		stored := a.kubectl(t, a.hub, "", "get", "accessrequests,events,secrets,configmaps", "-A", "-o", "yaml")
		if strings.Contains(stored, token.Status.Token) || strings.Contains(stored, "AccessToken") {
			t.Error("it is stored on the hub")
		}
		client := harness.Kube(t, harness.Must(clientcmd.RESTConfigFromKubeConfig([]byte(token.Status.Kubeconfig)))(t))
		a.kubectl(t, a.cluster, "", "delete", "serviceaccount", "-n", "accessrequests", "granted")
		harness.Eventually(t, "the token to end with its ServiceAccount", func(ctx context.Context) (bool, error) {
			_, err := client.CoreV1().ConfigMaps("web").List(ctx, metav1.ListOptions{})
			return apierrors.IsUnauthorized(err), nil
		})
		_, err := a.token(t, a.hub.AdminConfig(), "ann", metav1.CreateOptions{})
		if !apierrors.IsServiceUnavailable(err) {
			t.Errorf("got %v", err)
		}
		harness.Contains(t, fmt.Sprint(err), `serviceaccounts "granted" not found`)
		a.cluster.Stop()
		_, err = a.token(t, a.hub.AdminConfig(), "ann", metav1.CreateOptions{})
		harness.Contains(t, fmt.Sprint(err), "cannot be reached")
	})
	t.Run("is in no log", func(t *testing.T) { a.notLogged(t, string(ann.UID)) })
}

func (a *tokenAccess) refuses(t *testing.T) {
	refused := func(name string, is func(error) bool, why string) {
		t.Helper()
		if _, err := a.token(t, a.hub.AdminConfig(), name, metav1.CreateOptions{}); err == nil || !is(err) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	refused("nobody", apierrors.IsNotFound, "nobody")
	changed := a.grant(t, "changed", 0)
	changed.Spec.Token.RoleRefs = []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "cluster-admin"}}
	if err := a.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	refused("changed", apierrors.IsConflict, "changed since it was granted")
	changed.Status.Phase = v1alpha1.REQUEST_DENIED
	if err := a.client.Status().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	refused("changed", apierrors.IsForbidden, "it is denied")
	a.grant(t, "short", 9*time.Minute)
	refused("short", apierrors.IsForbidden, "its ttl expires at")
	going := a.grant(t, "going", 0)
	if err := a.client.Patch(t.Context(), going, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/stay"]}}`))); err != nil {
		t.Fatal(err)
	}
	if err := a.client.Delete(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	refused("going", apierrors.IsConflict, "being deleted")
	bare := a.grant(t, "bare", 0)
	a.kubectl(t, a.hub, "", "delete", "secret", "-n", v1alpha1.TokenSourceNamespace, string(bare.UID))
	refused("bare", apierrors.IsForbidden, "offers no short-lived tokens")
}

// forged tries as a provider to use hub-apiserver for more than tokens of its clusters.
func (a *tokenAccess) forged(t *testing.T) {
	ar := a.grant(t, "forged", 0)
	file := filepath.Join(a.hub.Dir(), "hub-apiserver.kubeconfig")
	for name, kubeconfig := range map[string]string{
		"a file of ours": `{current-context: c, contexts: [{name: c, context: {cluster: c, user: c}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: c, user: {tokenFile: ` + file + `}}]}`,
		"a program": `{current-context: c, contexts: [{name: c, context: {cluster: c, user: c}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}],
users: [{name: c, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [` + file + `.ran], interactiveMode: Never}}}]}`,
	} {
		admin := a.cluster.AdminConfig()
		if err := rest.LoadTLSFiles(admin); err != nil {
			t.Fatal(err)
		}
		ca := base64.StdEncoding.EncodeToString(admin.CAData)
		patch := harness.Must(json.Marshal(map[string]any{"data": map[string][]byte{"kubeconfig": fmt.Appendf(nil, kubeconfig, admin.Host, ca)}}))(t)
		harness.Must(harness.Kube(t, a.hub.AdminConfig()).CoreV1().Secrets(v1alpha1.TokenSourceNamespace).Patch(t.Context(), string(ar.UID),
			types.MergePatchType, patch, metav1.PatchOptions{}))(t)
		_, err := a.token(t, a.hub.AdminConfig(), "forged", metav1.CreateOptions{})
		if !strings.Contains(fmt.Sprint(err), "the user may only have token") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := os.Stat(file + ".ran"); err == nil {
		t.Error("the program was started")
	}
	// hub-apiserver reads token sources, one at a time, and no other Secrets.
	account := a.hub.UserConfig("system:serviceaccount:clusterhub-system:hub-apiserver")
	if _, err := harness.Kube(t, account).CoreV1().Secrets(v1alpha1.TokenSourceNamespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it lists token sources: %v", err)
	}
	if _, err := harness.Kube(t, account).CoreV1().Secrets("teams").Get(t.Context(), "any", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it gets other Secrets: %v", err)
	}
}

// notLogged searches all logs of the hub's servers for secrets.
func (a *tokenAccess) notLogged(t *testing.T, uid string) {
	logged, read := map[string]bool{}, 0
	err := filepath.WalkDir(filepath.Join(a.hub.Dir(), "logs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data := string(harness.Must(os.ReadFile(path))(t))
		read += len(data)
		for _, s := range a.secrets {
			if part := leaked(data, s); part != "" {
				t.Errorf("%s has %q of a token", path, part)
			}
		}
		name := filepath.Base(path)
		logged[name+" request"] = strings.Contains(data, "accessrequests/ann/token")
		logged[name+" source"] = strings.Contains(data, uid)
		logged[name+" requests"] = strings.Contains(data, `"Request" verb=`)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Empty logs would show nothing.
	for _, want := range []string{"hub-apiserver.log request", "hub-apiserver.log source", "hub-apiserver.log requests",
		"hub-apiserver.audit request", "kube-apiserver.audit request"} {
		if !logged[want] {
			t.Errorf("no %s is logged", want)
		}
	}
	t.Logf("looked for %d tokens in %d bytes", len(a.secrets), read)
}

// leaked returns a part of the signature of a token that appears in a log: plain, in a dump with 16 bytes per line, or in base64.
func leaked(log, token string) string {
	signature := token[strings.LastIndex(token, ".")+1:]
	for i := range 16 {
		if part := signature[i : i+8]; strings.Contains(log, part) {
			return part
		}
	}
	for i := range 3 {
		if part := base64.StdEncoding.EncodeToString([]byte(signature[i : i+24])); strings.Contains(log, part) {
			return part
		}
	}
	return ""
}
