// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
)

// serves makes the hub serve objects at some paths, and reject all other requests.
func (f *fakeHub) serves(objects map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/clusters/a")
		if object, ok := objects[path]; ok {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(object))
			return
		}
		writeJSON(w, http.StatusForbidden, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no"})
	}
}

const (
	groupPath   = "/apis/cluster.open-cluster-management.io/v1"
	clusterPath = groupPath + "/managedclusters/c1"
	served      = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cluster.open-cluster-management.io/v1","resources":[{"name":"managedclusters","kind":"ManagedCluster"}]}`
	waits       = `{"kind":"ManagedCluster","apiVersion":"cluster.open-cluster-management.io/v1","metadata":{"name":"c1"},"spec":{"hubAcceptsClient":false}}`
)

// TestAnswers_WhyCluster verifies that the page gives the same answer as the command, with the permissions of the user, and that its commands are for
// the same hub.
func TestAnswers_WhyCluster(t *testing.T) {
	type answered struct {
		diagnosis.Answer
		Link string `json:"link"`
	}
	check := func(f *fixture, r *http.Request, authorization, fix string) {
		t.Helper()
		f.hub.serves(map[string]string{groupPath: served, clusterPath: waits})
		a := f.do(r)
		var got answered
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.code != http.StatusOK || got.Finding == nil || got.Finding.ID != diagnosis.ClusterNotAccepted ||
			got.Link != "docs/findings.md#clusternotaccepted" || len(got.Steps) == 0 {
			t.Fatalf("got %d %s: %v", a.code, a.body, err)
		}
		if !slices.ContainsFunc(got.Finding.Fix, func(line string) bool { return strings.HasPrefix(line, fix) }) {
			t.Errorf("it is mended by %q", got.Finding.Fix)
		}
		if len(got.Unseen) == 0 {
			t.Error("it does not say what the user may not see")
		}
		asked, _ := f.hub.requests()
		for _, r := range asked {
			if r.Method != http.MethodGet || r.Header.Get("Authorization") != authorization || r.Header.Get("Cookie") != "" {
				t.Errorf("the hub is asked %s %s with %q", r.Method, r.RequestURI, r.Header)
			}
		}
	}
	local := start(t, func(c *Options) { c.Where = []string{"--context=hub"} })
	check(local, local.request("GET", "/answers/why/cluster/c1", "", "Cookie", local.letIn()), "Bearer "+userToken, "kubectl hub --context=hub accept")
	if asked, _ := local.hub.requests(); asked[0].Header.Get("Impersonate-User") != "dana" {
		t.Errorf("the hub is asked with %v", asked[0].Header)
	}
	all := startProxied(t)
	check(all, all.proxied("GET", "/answers/why/cluster/c1", "", "Impersonate-User", "admin"), "Bearer "+idToken, "kubectl hub accept")
	if asked, _ := all.hub.requests(); asked[0].Header.Get("Impersonate-User") != "" {
		t.Errorf("the hub is asked with %v", asked[0].Header)
	}
}

// TestAnswers_DoctorIsReadOnly verifies that the doctor of the page only reads, and sends no dry run.
func TestAnswers_DoctorIsReadOnly(t *testing.T) {
	f := startProxied(t)
	f.hub.serves(map[string]string{"/version": `{"gitVersion":"v1.37.1"}`,
		"/apis/apiregistration.k8s.io/v1/apiservices/v1.cluster.open-cluster-management.io": `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"name":"v1.cluster.open-cluster-management.io"}}`,
		groupPath: served})
	a := f.do(f.proxied("GET", "/answers/doctor", ""))
	var got doctor.Report
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.code != http.StatusOK || len(got.Checked) == 0 || len(got.Unseen) == 0 || got.Findings == nil {
		t.Fatalf("got %d %s: %v", a.code, a.body, err)
	}
	asked, _ := f.hub.requests()
	for _, r := range asked {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer "+idToken || strings.HasSuffix(r.URL.Path, "/secrets") || strings.Contains(r.URL.Path, "/secrets/") {
			t.Errorf("the hub is asked %s %s", r.Method, r.RequestURI)
		}
	}
	f.hub.serves(map[string]string{"/version": `{"gitVersion":"v1.37.1"}`, "/apis": `{"kind":"APIGroupList","groups":[]}`})
	if a := f.do(f.proxied("GET", "/answers/doctor", "")); a.code != http.StatusNotFound || !strings.Contains(a.body, "is not a hub") {
		t.Errorf("a server that is no hub: %d %s", a.code, a.body)
	}
}

func TestAnswers_HubComponents(t *testing.T) {
	f := startProxied(t)
	const deployments = "/apis/apps/v1/namespaces/clusterhub-system/deployments"
	f.hub.serves(map[string]string{"/version": `{}`, "/metrics": "apiserver_storage_size_bytes{storage_cluster_id=\"a\"} 1.5e+06\napiserver_storage_size_bytes{storage_cluster_id=\"b\"} 7\n",
		deployments: `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[{"metadata":{"name":"hub-apiserver","generation":2},"spec":{"replicas":3,"template":{"spec":{"containers":[` +
			`{"name":"hub-apiserver","image":"images.example.com/hub-apiserver:v1.2.3"}]}}},"status":{"observedGeneration":1,"readyReplicas":2,"updatedReplicas":1}}]}`})
	const want = `{"components":[{"name":"hub-apiserver","version":"v1.2.3","state":{"text":"2 of 3 ready","tone":"bad"}}],"etcdBytes":1500000`
	if a := f.do(f.proxied("GET", "/answers/hub", "")); a.code != http.StatusOK || !strings.HasPrefix(a.body, want) {
		t.Errorf("got %d %s", a.code, a.body)
	}
	f.hub.serves(map[string]string{"/version": `{}`})
	if a := f.do(f.proxied("GET", "/answers/hub", "")); a.code != http.StatusOK || !strings.Contains(a.body, "deployments: you may not read them") || !strings.Contains(a.body, "may not get /metrics") {
		t.Errorf("who may see nothing gets %d %s", a.code, a.body)
	}
}

func TestAnswers_WhoCan(t *testing.T) {
	f := startProxied(t)
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	empty := `{"items":[]}`
	f.hub.serves(map[string]string{
		"/apis/view.clusterhub.dev/v1alpha1/clustersetmembers": empty, rbac + "namespaces/c1/roles": empty, rbac + "namespaces/c1/rolebindings": empty,
		rbac + "clusterroles": `{"items":[{"metadata":{"name":"r"},"rules":[{"verbs":["update"],"apiGroups":["cluster.open-cluster-management.io"],"resources":["managedclusters"]},` +
			`{"verbs":["update"],"apiGroups":["cluster.open-cluster-management.io"],"resources":["managedclusters/accept"],"resourceNames":["c1"]}]}]}`,
		rbac + "clusterrolebindings": `{"items":[{"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"ann"}]}]}`,
	})
	ask := func() map[string][]string {
		t.Helper()
		a := f.do(f.proxied("GET", "/answers/who/cluster/c1", ""))
		var got struct {
			Who []struct {
				Verb, By, Unseen string
				Holders          []string
			}
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.code != http.StatusOK {
			t.Fatalf("got %d %s: %v", a.code, a.body, err)
		}
		all := map[string][]string{}
		for _, w := range got.Who {
			if w.Unseen != "" {
				all[w.Verb] = append(all[w.Verb], w.Unseen)
			}
			all[w.Verb] = append(all[w.Verb], w.Holders...)
		}
		return all
	}
	if got := ask(); !slices.Equal(got["accept"], []string{"user ann"}) || len(got["delete"]) != 0 || !slices.Contains(got["update"], "user ann") {
		t.Errorf("got %v", got)
	}
	f.hub.serves(map[string]string{"/apis/view.clusterhub.dev/v1alpha1/clustersetmembers": empty})
	if got := ask(); len(got["accept"]) != 1 || got["accept"][0] != "you may not list clusterroles" {
		t.Errorf("to who may read no roles it says %v", got)
	}
}

func TestAnswers_Attack_OtherQuestions(t *testing.T) {
	f := startProxied(t)
	for name, test := range map[string]struct {
		method, path string
		code         int
		headers      []string
	}{
		"nothing":                    {"GET", "/answers/", 400, nil},
		"an unknown question":        {"GET", "/answers/why/secret/a", 404, nil},
		"a name too few":             {"GET", "/answers/why/member/c1", 404, nil},
		"a name too many":            {"GET", "/answers/why/cluster/c1/c2", 404, nil},
		"the way around":             {"GET", "/answers/why/cluster/../../hub", 400, nil},
		"the way around, encoded":    {"GET", "/answers/why/cluster/%2e%2e", 400, nil},
		"a slash in a name":          {"GET", "/answers/why/cluster/a%2Fb", 400, nil},
		"parameters":                 {"GET", "/answers/why/cluster/c1?dryRun=All", 400, nil},
		"another's rights, half":     {"GET", "/answers/why/access?user=ann", 400, nil},
		"a parameter twice":          {"GET", "/answers/why/access?user=ann&user=bob&verb=get&what=set/a", 400, nil},
		"a long name":                {"GET", "/answers/why/access?verb=get&what=set/a&user=" + strings.Repeat("a", maxName+1), 400, nil},
		"posting":                    {"POST", "/answers/doctor", 405, nil},
		"deleting":                   {"DELETE", "/answers/doctor", 405, nil},
		"without a login":            {"GET", "/answers/doctor", 401, []string{"Authorization", ""}},
		"another site":               {"GET", "/answers/doctor", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		"a link to it":               {"GET", "/answers/doctor", 403, []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		"a name that leads here":     {"GET", "/answers/doctor", 403, []string{"Host", "evil.example"}},
		"an upgrade":                 {"GET", "/answers/doctor", 400, []string{"Connection", "Upgrade", "Upgrade", "websocket"}},
		"a verb that there is not":   {"GET", "/answers/why/access?user=ann&verb=eat&what=set/a", 400, nil},
		"what neither is nor can be": {"GET", "/answers/why/access?user=ann&verb=get&what=node/a", 400, nil},
	} {
		f.refused(name, f.proxied(test.method, test.path, "", test.headers...), test.code)
	}
	f.answering = newCounter(0, 1)
	f.refused("too many at one time", f.proxied("GET", "/answers/doctor", ""), http.StatusTooManyRequests)
}

// TestAnswers_HubErrors verifies that errors of the hub are passed on, without the credentials.
func TestAnswers_HubErrors(t *testing.T) {
	f := startProxied(t)
	for code, want := range map[int]int{http.StatusUnauthorized: 401, http.StatusInternalServerError: 502, http.StatusTooManyRequests: 429} {
		f.hub.mu.Lock()
		f.hub.answer = func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, code, metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: "it says " + r.Header.Get("X")})
		}
		f.hub.mu.Unlock()
		a := f.do(f.proxied("GET", "/answers/why/cluster/c1", ""))
		if a.code != want || a.status.Message == "" || a.status.Reason == ReasonNoSession || strings.Contains(a.body, idToken) {
			t.Errorf("%d becomes %d %s", code, a.code, a.body)
		}
	}
	f.hub.mu.Lock()
	f.hub.answer = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+r.Host+"/elsewhere", http.StatusFound)
	}
	f.hub.mu.Unlock()
	before, _ := f.hub.requests()
	f.do(f.proxied("GET", "/answers/why/cluster/c1", ""))
	asked, _ := f.hub.requests()
	for _, r := range asked[len(before):] {
		if strings.Contains(r.URL.Path, "elsewhere") {
			t.Error("a token is sent where the hub leads to")
		}
	}
	f.hub.Close()
	if a := f.do(f.proxied("GET", "/answers/why/cluster/c1", "")); a.code != http.StatusServiceUnavailable || strings.Contains(a.body, idToken) {
		t.Errorf("a hub that is gone: %d %s", a.code, a.body)
	}
}
