// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/component-base/tracing"

	"github.com/clusterhub/clusterhub/pkg/apiserver"
	"github.com/clusterhub/clusterhub/pkg/apiserver/agents"
	"github.com/clusterhub/clusterhub/pkg/apiserver/reviews"
	"github.com/clusterhub/clusterhub/pkg/command"
)

// reviewing is a server whose filters call a front for authentication and authorization.
type reviewing struct {
	server *httptest.Server
	// front is its address.
	front string
}

// newReviewing returns a server whose front responds to reviews of a kind, tokenreviews or subjectaccessreviews, with a handler. With slow, the
// server's timeouts for it are short.
func newReviewing(t *testing.T, kind string, answer http.HandlerFunc, slow bool) *reviewing {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/"+kind):
			_, _ = io.Copy(io.Discard, r.Body) // reading the body detects that the client leaves
			answer(w, r)
		case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
			_, _ = w.Write([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"u"}}}`))
		default:
			_, _ = w.Write([]byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}`))
		}
	}))
	t.Cleanup(front.Close)
	o := NewOptions()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["front"], kubeconfig.Contexts["front"] = &clientcmdapi.Cluster{Server: front.URL}, &clientcmdapi.Context{Cluster: "front"}
	kubeconfig.CurrentContext = "front"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ok(clientcmd.WriteToFile(*kubeconfig, path))
	authentication, authorization := o.Recommended.Authentication, o.Recommended.Authorization
	authentication.RemoteKubeConfigFile, authorization.RemoteKubeConfigFile = path, path
	authentication.SkipInClusterLookup = true
	authentication.WebhookRetryBackoff = &wait.Backoff{Duration: time.Millisecond, Steps: 2}
	authorization.WebhookRetryBackoff = authentication.WebhookRetryBackoff
	// Only slow reviews have a short timeout. A token whose timeout ends before the review is sent is rejected, which can happen on a busy machine.
	switch {
	case slow && kind == "tokenreviews":
		authentication.TokenRequestTimeout = time.Second
	case slow:
		authorization.ClientTimeout = 100 * time.Millisecond
	}

	c := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	frontConfig, err := command.RESTConfig(path)
	ok(err)
	o.Recommended.Features.EnablePriorityAndFairness = false
	ok(applyRecommended(genericoptions.RecommendedOptions{
		Authentication: authentication, EgressSelector: o.Recommended.EgressSelector, Traces: o.Recommended.Traces,
		Features: o.Recommended.Features, CoreAPI: o.Recommended.CoreAPI, ExtraAdmissionInitializers: o.Recommended.ExtraAdmissionInitializers,
	}, c, frontConfig))
	ofAgents := agents.New(apiserver.Groups(), o.AgentLabels)
	ofAgents.Clusters = accepted{}
	c.Authorization.Authorizer, err = authorizerOf(authorization, reviews.NewRules(0), ofAgents)
	ok(err)
	c.RequestInfoResolver = genericapiserver.NewRequestInfoResolver(&c.Config)
	c.FeatureGate = utilfeature.DefaultFeatureGate
	c.TracerProvider = tracing.NewNoopTracerProvider()
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("served")) })
	r := &reviewing{server: httptest.NewServer(o.handlerChain(served, &c.Config)), front: front.Listener.Addr().String()}
	t.Cleanup(r.server.Close)
	return r
}

// get returns the response to a request of a user with a token.
func (r *reviewing) get(t *testing.T) (code int, retryAfter, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+"/apis/cluster.open-cluster-management.io/v1/managedclusters", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer of-a-user")
	response, err := r.server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Retry-After"), string(data)
}

// TestReviews_FailuresAreUnavailable verifies that a failed review is reported neither as an internal error nor as an error of the client, and that
// the response does not contain the front's address.
func TestReviews_FailuresAreUnavailable(t *testing.T) {
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
	says := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	slow := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	token := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":`
	access := `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":`
	for name, c := range map[string]struct {
		kind   string
		answer http.HandlerFunc
		code   int
	}{
		"tokens: the front is down":           {"tokenreviews", hangUp, 503},
		"tokens: the front is slow":           {"tokenreviews", slow, 504},
		"tokens: the front fails":             {"tokenreviews", status(500), 503},
		"tokens: we may not ask":              {"tokenreviews", status(403), 503},
		"tokens: a wrong one":                 {"tokenreviews", says(token + `{"authenticated":false,"error":"expired"}}`), 401},
		"access: the front is down":           {"subjectaccessreviews", hangUp, 503},
		"access: the front is slow":           {"subjectaccessreviews", slow, 504},
		"access: the front fails":             {"subjectaccessreviews", status(500), 503},
		"access: we may not ask":              {"subjectaccessreviews", status(403), 503},
		"access: a refusal":                   {"subjectaccessreviews", says(access + `{"allowed":false}}`), 403},
		"access: a refusal that has an error": {"subjectaccessreviews", says(access + `{"allowed":false,"evaluationError":"no role"}}`), 403},
		"neither":                             {"none", nil, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReviewing(t, c.kind, c.answer, c.code == http.StatusGatewayTimeout)
			code, retryAfter, body := r.get(t)
			if code != c.code || (retryAfter != "") != (code >= 500) {
				t.Errorf("got %d %s, Retry-After %q, want %d", code, body, retryAfter, c.code)
			}
			var told metav1.Status
			if code >= 500 && (json.Unmarshal([]byte(body), &told) != nil || int(told.Code) != code || told.Details.RetryAfterSeconds != 1) {
				t.Errorf("the answer is no Status: %s", body)
			}
			for _, hidden := range []string{r.front, "127.0.0.1", "dial", "https://", "http://"} {
				if strings.Contains(body, hidden) {
					t.Errorf("the answer has %q: %s", hidden, body)
				}
			}
		})
	}
}
