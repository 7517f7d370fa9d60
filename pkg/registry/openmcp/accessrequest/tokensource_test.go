// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

func TestTokenSource_RejectsForged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("s3cr3t-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	user := func(fields string) func(*minting) {
		return func(m *minting) { m.secret.Data["kubeconfig"] = []byte(m.kubeconfig("", fields)) }
	}
	cluster := func(fields string) func(*minting) {
		return func(m *minting) {
			m.secret.Data["kubeconfig"] = []byte(m.kubeconfig(", "+fields, "token: "+secretToken))
		}
	}
	data := func(key, value string) func(*minting) {
		return func(m *minting) { m.secret.Data[key] = []byte(value) }
	}
	replace := func(old, with string) func(*minting) {
		return func(m *minting) {
			m.secret.Data["kubeconfig"] = []byte(strings.ReplaceAll(m.kubeconfig("", "token: "+secretToken), old, with))
		}
	}
	marker := filepath.Join(t.TempDir(), "ran")
	for name, c := range map[string]struct {
		forge func(*minting)
		why   string
	}{
		"a token in a file": {user("tokenFile: " + file), "tokenFile"},
		"a key in a file":   {user("token: x, client-certificate: " + file + ", client-key: " + file), "client-certificate, client-key"},
		"a CA in a file":    {cluster("certificate-authority: " + file), "certificate-authority"},
		"a program":         {user("token: x, exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [" + marker + "], interactiveMode: Never}"), "exec"},
		"an auth provider":  {user("token: x, auth-provider: {name: oidc}"), "auth-provider"},
		"impersonation":     {user("token: x, as: admin"), "as"},
		"a password":        {user("token: x, username: a, password: b"), "username, password"},
		"no verification":   {cluster("insecure-skip-tls-verify: true"), "insecure-skip-tls-verify"},
		"a proxy":           {cluster(`proxy-url: "http://127.0.0.1:1"`), "proxy-url"},
		"a CA that is none": {func(m *minting) {
			replace(strings.SplitN(strings.SplitN(m.kubeconfig("", ""), "data: \"", 2)[1], "\"", 2)[0], "eA==")(m)
		}, "in PEM"},
		"no TLS":                {replace("https:", "http:"), "https URL"},
		"a file as a server":    {replace("https:", "file:"), "https URL"},
		"credentials of a URL":  {replace("https://", "https://ann:pw@"), "https URL"},
		"a query":               {replace(`", certificate`, `/?x=1", certificate`), "https URL"},
		"no token":              {user(""), "token must be"},
		"a header in the token": {user(`token: "x\r\nX-Remote-User: admin"`), "token must be"},
		"no context":            {replace("current-context: x", "current-context: z"), "current-context"},
		"no YAML":               {data("kubeconfig", "\x00{["), "cannot be parsed"},
		"another type":          {func(m *minting) { m.secret.Type = corev1.SecretTypeOpaque }, "its type must be"},
		"another request's":     {data("accessRequest", "test/b"), "must be test/a"},
		"a way up":              {data("serviceAccountName", "../../../../secrets"), "name of a ServiceAccount"},
		"a way up by namespace": {data("serviceAccountNamespace", "x/secrets"), "name of a namespace"},
		"nothing in it":         {func(m *minting) { m.secret.Data = nil }, "must be test/a"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMinting(t)
			c.forge(m)
			_, err := m.create(t, openmcp.AccessTokenSpec{})
			if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), c.why) || m.minted.Load() != 0 {
				t.Errorf("got %v, and the cluster was asked %d times", err, m.minted.Load())
			}
			if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "pw@")) {
				t.Errorf("the error tells secrets: %v", err)
			}
		})
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the program was started")
	}
}

func TestMint_RejectsInvalidResponses(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for why, answer := range map[string]http.HandlerFunc{
		"code 307, and not as an API server": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"code 403, and not as an API server": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte("internal page: " + secretToken))
		},
		"without a token": func(w http.ResponseWriter, _ *http.Request) {
			for range 1 << 12 {
				_, _ = w.Write([]byte(strings.Repeat(" ", 1<<10)))
			}
			_, _ = w.Write([]byte(`{"status":{"token":"x","expirationTimestamp":"2100-01-01T00:00:00Z"}}`))
		},
		`serviceaccounts "sa" not found`: func(w http.ResponseWriter, _ *http.Request) {
			writeStatus(w, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), "sa"))
		},
	} {
		t.Run(why, func(t *testing.T) {
			m := newMinting(t)
			m.answer = answer
			_, err := m.create(t, openmcp.AccessTokenSpec{})
			if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), why) {
				t.Errorf("got %v", err)
			}
		})
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
	m := newMinting(t)
	m.cluster.Close()
	if _, err := m.create(t, openmcp.AccessTokenSpec{}); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a cluster that is gone: %v", err)
	}
}
