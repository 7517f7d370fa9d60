// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apiserver/options"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/etcd"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/await"
)

// TestWiring_HubAPIServer assembles one server for all of its lists.
func TestWiring_HubAPIServer(t *testing.T) {
	policy, auditLog := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: RequestResponse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The shipped values of the first two limits are the same.
	server, front := newAPIServer(t, deploy.Hub{}, "--data-dir="+t.TempDir(), "--max-pending-clusters=1001", "--max-placements-per-namespace=1002",
		"--max-objects-per-namespace=1003", "--max-bytes-per-namespace=1004",
		"--audit-policy-file="+policy, "--audit-log-path="+auditLog)
	t.Run("Admission", func(t *testing.T) {
		chain := admissionChain(reflect.ValueOf(server).Elem().FieldByName("admissionControl"), "")
		for _, line := range chain {
			if strings.HasSuffix(line, unset) {
				t.Errorf("a plugin lacks what it depends on: %s", line)
			}
		}
		compare(t, "hub-apiserver-admission", chain)
	})
	t.Run("Authorizers", func(t *testing.T) {
		compare(t, "hub-apiserver-authorizers", authorizers(reflect.ValueOf(server.Authorizer)))
	})
	t.Run("AgentsAreAuthorizedFirst", func(t *testing.T) {
		// The front allows every request, so a denial shows that this authorizer comes before it.
		w := asAgent(t, server, http.MethodGet, "/apis/cluster.open-cluster-management.io/v1/managedclusters/c2", "")
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "RBAC cannot allow it to an agent") {
			t.Errorf("an agent reads another cluster: %d %s", w.Code, w.Body)
		}
		for _, test := range []struct{ verb, group, subresource, reason string }{
			// Not an error: the authorizer reads the clusters, and there is no c1.
			{"update", cluster.GroupName, "", `cluster "c1" is not accepted`},
			// The group of upstream's roles, which admission plugins ask for.
			{"update", registration.RegisterGroup, "accept", "RBAC cannot allow it to an agent"},
		} {
			decision, reason, err := server.Authorizer.Authorize(t.Context(), authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: agentOfC1.Username, Groups: agentOfC1.Groups}, Verb: test.verb, APIGroup: test.group, APIVersion: "v1",
				Resource: "managedclusters", Subresource: test.subresource, Name: "c1", ResourceRequest: true,
			})
			if decision != authorizer.DecisionDeny || err != nil || !strings.Contains(reason, test.reason) {
				t.Errorf("%+v: %v (%s), %v", test, decision, reason, err)
			}
		}
	})
	t.Run("EntriesAreLimited", func(t *testing.T) {
		// The kind is not served, so that no other code validates the field manager.
		w := asAgent(t, server, http.MethodPost, "/apis/example.com/v1/things?fieldManager="+strings.Repeat("a", 129), "{}")
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "fieldManager") {
			t.Errorf("a fieldManager of 129 bytes: %d %s", w.Code, w.Body)
		}
	})
	t.Run("WritesOfAgentsAreLimited", func(t *testing.T) {
		const burst = 100 // of the shipped flags, less the write of EntriesAreLimited
		for n := 1; ; n++ {
			w := asAgent(t, server, http.MethodPost, "/apis/example.com/v1/things", "{}")
			if w.Code == http.StatusTooManyRequests {
				if !strings.Contains(w.Body.String(), "the agents of cluster c1 write more than 5 times a second (and 100 times at once)") || n < burst {
					t.Errorf("write %d: %s", n, w.Body)
				}
				return
			}
			if n > 10*burst {
				t.Fatalf("%d writes are not limited: the last is %d %s", n, w.Code, w.Body)
			}
		}
	})
	t.Run("Served", func(t *testing.T) {
		server.PrepareRun()
		compare(t, "hub-apiserver-resources", resources(t, server))
		compare(t, "hub-apiserver-paths", paths(server))
		compare(t, "hub-apiserver-checks", checks(t, server))
	})
	t.Run("Started", func(t *testing.T) {
		ready := []string{"authorization", "clustersetmembers", "namespaces"}
		for _, check := range ready {
			if answer := get(t, server, "/readyz?verbose"); !bytes.Contains(answer, []byte("[-]"+check+" ")) {
				t.Errorf("%s is ready before the server is started: %s", check, answer)
			}
		}
		if cert, _ := server.SecureServingInfo.Cert.CurrentCertKeyContent(); len(cert) > 0 {
			t.Error("connections are accepted before the client CAs are loaded")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server.RunPostStartHooks(ctx)
		readyz := func(line string) bool { return bytes.Contains(get(t, server, "/readyz?verbose"), []byte(line)) }
		eventually(t, "all hooks have ended", func() bool { return !readyz("[-]poststarthook/") })
		// Each has created its goroutines then, although they may not have run yet.
		for purpose, creator := range map[string]string{
			"follows the RBAC rules": "/options.authorize.func", "renews the serving certificate": "/options.(*Options).Assemble.func",
			"counts what namespaces have": ".stores.countNamespaces ",
			// Both are by hooks of one function, which the compiler numbers.
			"wakes the watches of views when clusters move": ".CompletedConfig.New.func1 ", "or computes views again when rights change": ".CompletedConfig.New.func2 ",
		} {
			if !strings.Contains(goroutines(t), "created by "+module+"pkg/apiserver"+creator) {
				t.Fatalf("nothing %s: there is no goroutine that a hook of pkg/apiserver%s has created", purpose, creator)
			}
		}
		for _, check := range append(ready, "informer-sync") { // admission needs the informers, which end with the context
			eventually(t, check+" is ready", func() bool { return readyz("[+]" + check + " ") })
		}
		eventually(t, "the APIServices are followed", func() bool { return front.hasListed("apis/apiregistration.k8s.io/v1/apiservices") })
	})
	t.Run("Tokens", func(t *testing.T) {
		const requests = "/apis/clusters.openmcp.cloud/v1alpha1/namespaces/kube-system/accessrequests"
		const path = requests + "/a/token"
		admin := server.LoopbackClientConfig.BearerToken
		w := as(t, server, admin, http.MethodPost, requests, `{"apiVersion":"clusters.openmcp.cloud/v1alpha1","kind":"AccessRequest","metadata":{"name":"a"},
			"spec":{"clusterRef":{"name":"c","namespace":"kube-system"},"token":{}}}`)
		if w.Code != http.StatusCreated {
			t.Fatalf("an AccessRequest is not created: %d %s", w.Code, w.Body)
		}
		if w := as(t, server, admin, http.MethodPost, path, "{}"); w.Code != http.StatusConflict {
			t.Errorf("a token of an AccessRequest that is not granted: %d %s", w.Code, w.Body)
		}
		events, err := os.ReadFile(auditLog)
		if err != nil {
			t.Fatal(err)
		}
		recorded := false
		for line := range bytes.Lines(events) {
			var event struct{ Level, RequestURI string }
			if err := json.Unmarshal(line, &event); err != nil {
				t.Fatal(err)
			}
			if event.RequestURI == path {
				recorded = true
				if event.Level != "Metadata" {
					t.Errorf("the audit log has a request for a token at the level %s", event.Level)
				}
			}
		}
		if !recorded {
			t.Errorf("the audit log has no request for a token: %s", events)
		}
	})
}

// TestWiring_HubAPIServerWithExternalEtcd compares what the etcd of a server is a part of.
func TestWiring_HubAPIServerWithExternalEtcd(t *testing.T) {
	o := etcd.NewOptions()
	o.DataDir, o.UnsafeNoFsync = t.TempDir(), true
	store, err := etcd.Start(t.Context(), *o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	to := store.Transport()
	server, _ := newAPIServer(t, deploy.Hub{ExternalEtcd: true}, "--etcd-servers="+to.ServerList[0],
		"--etcd-cafile="+to.TrustedCAFile, "--etcd-certfile="+to.CertFile, "--etcd-keyfile="+to.KeyFile)
	server.PrepareRun()
	chain := admissionChain(reflect.ValueOf(server).Elem().FieldByName("admissionControl"), "")
	compare(t, "hub-apiserver-external-etcd", slices.Concat(chain, checks(t, server)))
}

// newAPIServer returns hub-apiserver as it is shipped, with more flags, those of etcd among them, and the front that it asks. It does not run.
func newAPIServer(t *testing.T, hub deploy.Hub, more ...string) (*genericapiserver.GenericAPIServer, *kubernetes) {
	t.Helper()
	objects, err := hub.Objects()
	if err != nil {
		t.Fatal(err)
	}
	args := slices.DeleteFunc(shipped(t, objects, "hub-apiserver"), func(arg string) bool { return strings.HasPrefix(arg, "--etcd-") })
	o, front := options.NewOptions(), startKubernetes(t)
	parse(t, o.Flags(), slices.Concat(args, more, []string{"--kubeconfig=" + front.kubeconfig, "--authentication-kubeconfig=" + front.kubeconfig,
		"--authorization-kubeconfig=" + front.kubeconfig, "--bind-address=127.0.0.1"})...)
	o.EmbeddedEtcd.UnsafeNoFsync = true
	o.Recommended.SecureServing.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Recommended.SecureServing.Listener.Close() })
	if err := o.ServerRun.ComponentGlobalsRegistry.Set(); err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	server, stop, err := o.Assemble(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Generic.Destroy()
		stop()
	})
	return server.Generic, front
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if err := await.Until(t.Context(), await.Limit, func(context.Context) (bool, error) { return holds(), nil }); err != nil {
		t.Fatalf("not %s: %v", what, err)
	}
}

// asAgent sends a request through all handlers, as an agent of the cluster c1.
func asAgent(t *testing.T, server *genericapiserver.GenericAPIServer, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	return as(t, server, "agent", method, path, body)
}

// as sends a request through all handlers, with a token.
func as(t *testing.T, server *genericapiserver.GenericAPIServer, token, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	server.Handler.ServeHTTP(w, r)
	return w
}

// admissionChain returns the plugins of a chain in their order: names, types, and what is set in them. What decorates a chain is listed
// before it, and what decorates a plugin has its name.
func admissionChain(v reflect.Value, name string) (lines []string) {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	inner := indirect(v)
	if inner.Kind() == reflect.Slice {
		for i := range inner.Len() {
			lines = append(lines, admissionChain(inner.Index(i), "")...)
		}
		return lines
	}
	if label := inner.FieldByName("extraLabels"); label.IsValid() && label.Len() == 1 {
		name = label.Index(0).String()
	}
	for i := range inner.NumField() {
		if field := inner.Field(i); field.Type() == reflect.TypeFor[admission.Interface]() {
			if name == "" {
				lines = append(lines, "decorator "+typeName(inner))
			}
			return append(lines, admissionChain(field, name)...)
		}
	}
	var does []string
	for what, is := range map[string]reflect.Type{"mutates": reflect.TypeFor[admission.MutationInterface](), "validates": reflect.TypeFor[admission.ValidationInterface]()} {
		if v.Type().Implements(is) {
			does = append(does, what)
		}
	}
	slices.Sort(does)
	lines = append(lines, fmt.Sprintf("%s: %s %s", name, typeName(inner), strings.Join(does, ", ")))
	if strings.HasPrefix(typeName(inner), "pkg/") {
		lines = append(lines, fields(inner)...)
	}
	return lines
}

// fields returns what is set in a plugin and in what it embeds of ours: the numbers that flags give, and what it depends on.
func fields(v reflect.Value) (lines []string) {
	for i := range v.NumField() {
		of, field := v.Type().Field(i), v.Field(i)
		switch {
		case of.Anonymous:
			if inner := indirect(field); inner.Kind() == reflect.Struct && strings.HasPrefix(typeName(inner), "pkg/") {
				lines = append(lines, fields(inner)...)
			}
		case field.Kind() == reflect.Int && of.IsExported():
			lines = append(lines, fmt.Sprintf("  %s: %d", of.Name, field.Int()))
		case field.Kind() == reflect.Interface, field.Kind() == reflect.Pointer, field.Kind() == reflect.Func:
			lines = append(lines, fmt.Sprintf("  %s: %s%s", of.Name, typeName(field), registryOf(field)))
		}
	}
	return lines
}

// registryOf returns what is in a registry, which all stored kinds have one type for.
func registryOf(v reflect.Value) string {
	registry := indirect(v)
	if registry.Kind() != reflect.Struct {
		return ""
	}
	resource := registry.FieldByName("DefaultQualifiedResource")
	if !resource.IsValid() {
		return ""
	}
	return fmt.Sprintf(" of %s.%s", resource.FieldByName("Resource"), resource.FieldByName("Group"))
}

// authorizers returns the names and types of a union of authorizers in their order.
func authorizers(v reflect.Value) (lines []string) {
	union := indirect(v)
	lines = append(lines, typeName(union))
	chain := union.FieldByName("chain")
	for i := range chain.Len() {
		one := chain.Index(i)
		lines = append(lines, fmt.Sprintf("%s: %s", one.FieldByName("AuthorizerName"), nested(one.FieldByName("Authorizer"), reflect.TypeFor[authorizer.Authorizer]())))
	}
	return lines
}

// resources returns the resources that discovery has.
func resources(t *testing.T, server *genericapiserver.GenericAPIServer) (lines []string) {
	t.Helper()
	var groups metav1.APIGroupList
	discover(t, server, "/apis", &groups)
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			var list metav1.APIResourceList
			discover(t, server, "/apis/"+version.GroupVersion, &list)
			for _, r := range list.APIResources {
				scope := "cluster"
				if r.Namespaced {
					scope = "namespace"
				}
				lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", version.GroupVersion, r.Name, r.Kind, scope, strings.Join(r.Verbs, " ")))
			}
		}
	}
	return lines
}

func discover(t *testing.T, server *genericapiserver.GenericAPIServer, path string, into any) {
	t.Helper()
	if err := json.Unmarshal(get(t, server, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// get asks without the handlers that come before those of paths.
func get(t *testing.T, server *genericapiserver.GenericAPIServer, path string) []byte {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Accept", "application/json")
	w := httptest.NewRecorder()
	server.Handler.Director.ServeHTTP(w, r)
	return w.Body.Bytes()
}

// paths returns all paths with the methods that are routed. Those of a mux without methods have none.
func paths(server *genericapiserver.GenericAPIServer) (lines []string) {
	methods := map[string][]string{}
	for _, path := range server.Handler.ListedPaths() {
		methods[path] = nil
	}
	for _, service := range server.Handler.GoRestfulContainer.RegisteredWebServices() {
		for _, route := range service.Routes() {
			methods[route.Path] = append(methods[route.Path], route.Method)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(methods)) {
		of := methods[path]
		slices.Sort(of)
		lines = append(lines, strings.TrimSpace(path+" "+strings.Join(slices.Compact(of), " ")))
	}
	return lines
}

var checkLine = regexp.MustCompile(`(?m)^\[[+-]\](\S+)`)

// checks returns the names of all checks, sorted: hooks, which run when the server starts, have no order.
func checks(t *testing.T, server *genericapiserver.GenericAPIServer) (lines []string) {
	t.Helper()
	for _, endpoint := range []string{"/healthz", "/livez", "/readyz"} {
		for _, check := range checkLine.FindAllSubmatch(get(t, server, endpoint+"?verbose"), -1) {
			lines = append(lines, endpoint+" "+string(check[1]))
		}
	}
	slices.Sort(lines)
	return lines
}
