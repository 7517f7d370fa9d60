// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/clusterhub/clusterhub/pkg/apiserver/options"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/etcd"
)

// TestWiring_HubAPIServer assembles one server for all of its lists.
func TestWiring_HubAPIServer(t *testing.T) {
	server := newAPIServer(t, deploy.Hub{}, "--data-dir="+t.TempDir())
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
	server := newAPIServer(t, deploy.Hub{ExternalEtcd: true}, "--etcd-servers="+to.ServerList[0],
		"--etcd-cafile="+to.TrustedCAFile, "--etcd-certfile="+to.CertFile, "--etcd-keyfile="+to.KeyFile)
	server.PrepareRun()
	chain := admissionChain(reflect.ValueOf(server).Elem().FieldByName("admissionControl"), "")
	compare(t, "hub-apiserver-external-etcd", slices.Concat(chain, checks(t, server)))
}

// newAPIServer returns hub-apiserver as it is shipped, with other flags of etcd. It does not run.
func newAPIServer(t *testing.T, hub deploy.Hub, etcdFlags ...string) *genericapiserver.GenericAPIServer {
	t.Helper()
	objects, err := hub.Objects()
	if err != nil {
		t.Fatal(err)
	}
	args := slices.DeleteFunc(shipped(t, objects, "hub-apiserver"), func(arg string) bool { return strings.HasPrefix(arg, "--etcd-") })
	o, kubeconfig := options.NewOptions(), startKubernetes(t)
	parse(t, o.Flags(), slices.Concat(args, etcdFlags, []string{"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1"})...)
	o.EmbeddedEtcd.UnsafeNoFsync = true
	if o.Recommended.SecureServing.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
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
	return server.Generic
}

// asAgent sends a request through all handlers, as an agent of the cluster c1.
func asAgent(t *testing.T, server *genericapiserver.GenericAPIServer, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer agent")
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
