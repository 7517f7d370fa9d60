// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentrate

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentlimit"
)

var limit = agentlimit.Limit{PerSecond: 0.5, Burst: 10}

func limited() http.Handler {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	return WithLimit(ok, limit, serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion())
}

// do sends a request and returns its response.
func do(t *testing.T, h http.Handler, verb string, who *user.DefaultInfo) *httptest.ResponseRecorder {
	t.Helper()
	ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: verb, APIVersion: "v1"})
	ctx = request.WithUser(ctx, who)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPut, "/", nil))
	return w
}

func agentOf(cluster, agent string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: registration.ClusterUser(cluster, agent),
		Groups: []string{registration.ManagedClustersGroup, registration.ClusterGroup(cluster), "system:authenticated"}}
}

func awsAgentOf(cluster string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: registration.AWSGroup(cluster),
		Groups: []string{registration.AWSGroup(cluster), registration.AWSManagedClustersGroup, "system:authenticated"}}
}

func TestWithLimit_RateIsPerAgent(t *testing.T) {
	for what, who := range map[string]func(i int) *user.DefaultInfo{
		"one agent":     func(int) *user.DefaultInfo { return agentOf("c1", "a") },
		"an AWS agent":  func(int) *user.DefaultInfo { return awsAgentOf("c1") },
		"by other ways": func(i int) *user.DefaultInfo { return []*user.DefaultInfo{agentOf("c1", "a"), awsAgentOf("c1")}[i%2] },
		// A cluster can request a certificate under any name of an agent.
		"under many names": func(i int) *user.DefaultInfo { return agentOf("c1", string(rune('a'+i%26))) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := limited()
				passed := 0
				for i := range 1000 {
					switch w := do(t, h, writes[i%len(writes)], who(i)); w.Code {
					case http.StatusOK:
						passed++
					case http.StatusTooManyRequests:
						if after := w.Header().Get("Retry-After"); after != "2" {
							t.Fatalf("Retry-After is %q, want the 2 s after which one write is allowed", after)
						}
					default:
						t.Fatalf("%d: %s", w.Code, w.Body)
					}
					time.Sleep(100 * time.Millisecond)
				}
				// This is 100 seconds.
				if want := limit.Burst + 50; passed < want-1 || passed > want+1 {
					t.Errorf("%d writes passed, want %d", passed, want)
				}
				if w := do(t, h, "update", agentOf("c2", "a")); w.Code != http.StatusOK {
					t.Errorf("another cluster's agent: %d", w.Code)
				}
			})
		})
	}
}

func TestWithLimit_ReadsAndOtherUsersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := limited()
		for range 100 {
			for verb, who := range map[string]*user.DefaultInfo{
				"get": agentOf("c1", "a"), "list": agentOf("c1", "a"), "watch": agentOf("c1", "a"),
				"update": {Name: "ann", Groups: []string{"team"}},
				"delete": {Name: "ann", Groups: []string{registration.AWSGroup("admins"), "system:authenticated"}},
				"patch":  {Name: "system:serviceaccount:clusterhub-system:hub-controller-manager", Groups: []string{"system:serviceaccounts"}},
				// Many clusters join with one token.
				"create": {Name: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", "system:bootstrappers:managedcluster"}},
			} {
				if w := do(t, h, verb, who); w.Code != http.StatusOK {
					t.Fatalf("%s by %s: %d", verb, who.Name, w.Code)
				}
			}
		}
	})
}
