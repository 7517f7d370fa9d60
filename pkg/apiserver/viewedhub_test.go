// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	restclient "k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/admission/cluster/agentrestriction"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/managedclusteraccept"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/managedclusterlabel"
	"github.com/clusterhub/clusterhub/pkg/admission/hubfinalizers"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/ownerreferences"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/etcd"
	"github.com/clusterhub/clusterhub/pkg/generated/openapi"
)

// roles are the rules of users, and of groups as "group:NAME".
type roles map[string][]rbacv1.PolicyRule

// rule returns a permission on names of a resource of clusters.
func rule(verbs, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{cluster.GroupName}, Resources: []string{resource}, ResourceNames: names, Verbs: strings.Split(verbs, ","),
	}
}

// Authorize implements authorizer.Authorizer.
func (r roles) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := a.GetResource()
	if a.GetSubresource() != "" {
		asked += "/" + a.GetSubresource()
	}
	subjects := []string{a.GetUser().GetName()}
	for _, group := range a.GetUser().GetGroups() {
		subjects = append(subjects, "group:"+group)
	}
	for _, subject := range subjects {
		for _, rule := range r[subject] {
			if slices.Contains(rule.APIGroups, a.GetAPIGroup()) && slices.Contains(rule.Resources, asked) && slices.Contains(rule.Verbs, a.GetVerb()) &&
				(rule.ResourceNames == nil || slices.Contains(rule.ResourceNames, a.GetName())) {
				return authorizer.DecisionAllow, "", nil
			}
		}
	}
	if slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (r roles) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(r.Authorize(ctx, a))
}

// EvaluateConditions implements authorizer.Authorizer.
func (roles) EvaluateConditions(
	context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// ServeHTTP serves the roles like a front whose roles do not change.
func (r roles) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var objects []any
	kind := strings.HasSuffix(req.URL.Path, "/clusterroles")
	for subject, rules := range r {
		name := metav1.ObjectMeta{Name: strings.ReplaceAll(subject, ":", "."), ResourceVersion: "1"}
		if kind {
			objects = append(objects, &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
				ObjectMeta: name, Rules: rules})
			continue
		}
		binding := &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: subject}}}
		if group, ok := strings.CutPrefix(subject, "group:"); ok {
			binding.Subjects[0].Kind, binding.Subjects[0].Name = rbacv1.GroupKind, group
		}
		objects = append(objects, binding)
	}
	w.Header().Set("Content-Type", "application/json")
	list := "ClusterRoleBindingList"
	if kind {
		list = "ClusterRoleList"
	}
	switch query := req.URL.Query(); {
	case query.Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid})
	case query.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": list,
			"metadata": map[string]any{"resourceVersion": "1"}, "items": objects})
	}
}

// viewedHub is a server with its storage, its admission of clusters, and a front that has roles.
type viewedHub struct {
	t       *testing.T
	handler http.Handler
	stores  stores
	request request.RequestInfoResolver
	// before is called with the attributes of each write before it is validated.
	before func(admission.Attributes)
}

// inEtcd stores all resources in one etcd.
type inEtcd struct{ *storagebackend.Config }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (e inEtcd) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{StorageConfig: e.ForResource(resource), ResourcePrefix: resource.Group + "/" + resource.Resource,
		EnableGarbageCollection: true, DeleteCollectionWorkers: 1}, nil
}

// spy is the last plugin.
type spy struct {
	*admission.Handler
	hub *viewedHub
}

// Validate implements admission.ValidationInterface.
func (s spy) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if s.hub.before != nil {
		s.hub.before(a)
	}
	return nil
}

func newViewedHub(t *testing.T, of roles, more ...admission.Interface) *viewedHub {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	front := httptest.NewServer(of)
	options := etcd.NewOptions()
	options.DataDir, options.UnsafeNoFsync = t.TempDir(), true
	store, err := etcd.Start(ctx, *options)
	ok(err)

	h := &viewedHub{t: t}
	config := genericapiserver.NewRecommendedConfig(Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress, config.LoopbackClientConfig = "127.0.0.1:443", &restclient.Config{}
	namer := apiopenapi.NewDefinitionNamer(Scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.ClientConfig = &restclient.Config{Host: front.URL}
	config.Authorization.Authorizer = of
	plugins := append(more, agentrestriction.New(), objectsize.New(EncodedSize), managedclusterlabel.New(), managedclusteraccept.New(),
		ownerreferences.New(), hubfinalizers.New(), spy{admission.NewHandler(admission.Update, admission.Delete), h})
	for _, p := range plugins {
		if wants, ok := p.(initializer.WantsAuthorizer); ok {
			wants.SetAuthorizer(of)
		}
	}
	config.AdmissionControl = admission.NewChainHandler(plugins...)
	storage := storagebackend.NewDefaultConfig("/test", Codecs.LegacyCodec(v1beta2.SchemeGroupVersion))
	storage.Transport, storage.CompactionInterval = store.Transport(), 0
	storage.Transport.TracerProvider = noopoteltrace.NewTracerProvider()
	config.RESTOptionsGetter = inEtcd{storage}
	completed := (&Config{Generic: config}).Complete()
	server, err := completed.generic.New("test", genericapiserver.NewEmptyDelegate())
	ok(err)
	s, err := completed.stores()
	ok(err)
	ok(server.InstallAPIGroups(s.groups()...))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.rules.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		server.Destroy()
		front.CloseClientConnections()
		front.Close()
		store.Stop()
	})
	h.stores = s
	h.handler, h.request = server.Handler.Director, completed.generic.RequestInfoResolver
	return h
}

// answer is the response to a request.
type answer struct {
	code    int
	body    string
	cluster v1.ManagedCluster
	// audited are its audit annotations.
	audited map[string]string
}

// do sends a request. The user "root" is an admin.
func (h *viewedHub) do(who, method, path, contentType, body string) answer {
	h.t.Helper()
	req := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "application/json")
	info, err := h.request.NewRequestInfo(req)
	if err != nil {
		h.t.Error(err)
	}
	as := &user.DefaultInfo{Name: who, Groups: []string{user.AllAuthenticated}}
	if who == "root" {
		as.Groups = append(as.Groups, user.SystemPrivilegedGroup)
	}
	ctx := audit.WithAuditContext(request.WithUser(request.WithRequestInfo(req.Context(), info), as))
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, req.WithContext(ctx))
	a := answer{code: w.Code, body: w.Body.String(), audited: audit.AuditContextFrom(ctx).GetEventAnnotations()}
	if w.Code < 300 && method != http.MethodDelete {
		if err := json.Unmarshal(w.Body.Bytes(), &a.cluster); err != nil {
			h.t.Errorf("%s %s: %v in %s", method, path, err, a.body)
		}
	}
	return a
}

// must is like do, and reports an error if the request fails. It may be called while another request is served, so it does not end the test.
func (h *viewedHub) must(who, method, path, contentType, body string) answer {
	h.t.Helper()
	a := h.do(who, method, path, contentType, body)
	if a.code >= 300 {
		h.t.Errorf("%s %s of %s: %d %s", method, path, who, a.code, a.body)
	}
	return a
}

const (
	storedPath = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
	viewedPath = "/apis/clusterview.open-cluster-management.io/v1/managedclusters"
	mergeType  = "application/merge-patch+json"
)

// newSet creates a set that selects by the label clusterset.
func (h *viewedHub) newSet(name string) {
	h.t.Helper()
	h.must("root", http.MethodPost, "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets", "application/json",
		fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSet","metadata":{"name":%q}}`, name))
}

// newCluster creates a cluster in a set.
func (h *viewedHub) newCluster(name, set string) {
	h.t.Helper()
	h.must("root", http.MethodPost, storedPath, "application/json", fmt.Sprintf(
		`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":%q,"labels":{%q:%q}}}`,
		name, cluster.ClusterSetLabel, set))
}

// stored returns the stored cluster.
func (h *viewedHub) stored(name string) v1.ManagedCluster {
	h.t.Helper()
	return h.must("root", http.MethodGet, storedPath+"/"+name, "", "").cluster
}
