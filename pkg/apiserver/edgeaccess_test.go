// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/hubstatus"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/nodeaccess"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/nodeowner"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/publishing"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/readonlyproperties"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/serviceuse"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// edgeHub has the admission of edge deployments. c1 is in the set blue, c2 in red.
type edgeHub struct{ *viewedHub }

// everyEdge has all permissions in the group: RBAC does not reject requests of users who have them.
var everyEdge = rbacv1.PolicyRule{APIGroups: []string{edge.GroupName}, Verbs: strings.Fields("get list watch create update patch delete deletecollection"),
	Resources: strings.Fields("edgenodes edgenodes/status deploymentpolicies deploymentpolicies/status deploymentpatterns deploymentpatterns/status edgeplacements edgeplacements/status")}

func newEdgeHub(t *testing.T) edgeHub {
	access, owner, use, publish := nodeaccess.New(), nodeowner.New(), serviceuse.New(), publishing.New()
	h := edgeHub{newViewedHub(t, roles{
		"ann":                               {everyEdge, rule("update", "managedclusters", "c1")},
		"set":                               {everyEdge, rule("get,update", "managedclustersets/clusters", "blue")},
		"blind":                             {everyEdge, rule("update", "managedclustersets/clusters", "blue")}, // the user may not get the clusters of the set
		"eve":                               {everyEdge, rule("get,patch,delete", "managedclusters"), rule("get", "managedclustersets/clusters")},
		"reads":                             {everyEdge, edgeRule("get", "edgeservices", edge.ServiceName("closed", "1.0.0", "*"))},
		registration.ClusterUser("c1", "a"): {everyEdge, rule("update", "managedclusters", "c1")},
		hubstatus.Controllers:               {everyEdge},
	}, readonlyproperties.New(), owner, access, hubstatus.New(), use, publish)}
	registries := h.stores.registries()
	owner.Clusters, access.Clusters, access.Sets = registries.ManagedClusters, registries.ManagedClusters, registries.ClusterSets
	use.Services, publish.Services = registries.EdgeServices, registries.EdgeServices
	for name, set := range map[string]string{"c1": "blue", "c2": "red"} {
		h.newSet(set)
		h.newCluster(name, set)
		h.accept(name)
	}
	return h
}

// said is a response with its warnings.
type said struct {
	code     int
	body     string
	warnings at.Warnings
}

// send sends a request. A request that replaces an object is based on the stored one.
func (h edgeHub) send(who, method, path, contentType, body string) (a said) {
	h.t.Helper()
	if method == http.MethodPut {
		var stored metav1.PartialObjectMetadata
		plain, _, _ := strings.Cut(path, "?")
		if err := json.Unmarshal([]byte(h.send("root", http.MethodGet, plain, "", "").body), &stored); err != nil || stored.ResourceVersion == "" {
			h.t.Fatalf("%s is not there: %v", path, err)
		}
		body = strings.Replace(body, `"metadata":{`, fmt.Sprintf(`"metadata":{"resourceVersion":%q,`, stored.ResourceVersion), 1)
	}
	req := httptest.NewRequestWithContext(h.t.Context(), method, edgePath+path, strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "application/json")
	info, err := h.request.NewRequestInfo(req)
	if err != nil {
		h.t.Fatal(err)
	}
	as := &user.DefaultInfo{Name: who, Groups: []string{user.AllAuthenticated}}
	if who == "root" {
		as.Groups = append(as.Groups, user.SystemPrivilegedGroup)
	}
	if rest, agent := strings.CutPrefix(who, registration.ClusterGroup("")); agent {
		cluster, _, _ := strings.Cut(rest, ":")
		as.Groups = append(as.Groups, registration.ManagedClustersGroup, registration.ClusterGroup(cluster))
	}
	ctx := warning.WithWarningRecorder(audit.WithAuditContext(request.WithUser(request.WithRequestInfo(req.Context(), info), as)), &a.warnings)
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, req.WithContext(ctx))
	a.code, a.body = w.Code, w.Body.String()
	return a
}

const (
	jsonType  = "application/json"
	patchType = "application/json-patch+json"
)

func edgeObject(kind, metadata, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"edge.clusterhub.dev/v1alpha1","kind":%q,"metadata":{%s},"spec":%s}`, kind, metadata, spec)
}

// node returns the stored EdgeNode.
func (h edgeHub) node(name string) (n struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any `json:"spec"`
	Status            map[string]any `json:"status"`
}) {
	h.t.Helper()
	a := h.send("root", http.MethodGet, "edgenodes/"+name, "", "")
	if a.code == http.StatusNotFound {
		return n
	}
	if err := json.Unmarshal([]byte(a.body), &n); err != nil || a.code != http.StatusOK {
		h.t.Fatalf("%d %s: %v", a.code, a.body, err)
	}
	return n
}

// wants sends a request and verifies the code of its response.
func (h edgeHub) wants(code int, who, method, path, contentType, body string) said {
	h.t.Helper()
	a := h.send(who, method, path, contentType, body)
	if a.code != code {
		h.t.Errorf("%s %s %s %s of %s: %d %s, want %d", method, path, contentType, body, who, a.code, a.body, code)
	}
	return a
}

// writes returns all ways to change an existing node, and to create one by an update.
func writes(name string) [][4]string {
	const spec = `{"pattern":"shop/all"}`
	body := edgeObject("EdgeNode", `"name":"`+name+`"`, spec)
	one := "edgenodes/" + name
	return [][4]string{
		{http.MethodPut, one, jsonType, body},
		{http.MethodPatch, one, mergeType, `{"spec":` + spec + `}`},
		{http.MethodPatch, one, patchType, `[{"op":"add","path":"/spec/pattern","value":"shop/all"}]`},
		{http.MethodPatch, one + "?fieldManager=m&force=true", applyType, body},
		{http.MethodPatch, one, mergeType, `{"metadata":{"labels":{"a":"b"}}}`},
		{http.MethodPatch, one + "?dryRun=All", mergeType, `{"spec":` + spec + `}`},
		{http.MethodDelete, one, "", ""},
		{http.MethodDelete, one + "?dryRun=All", "", ""},
		{http.MethodDelete, "edgenodes?fieldSelector=metadata.name%3D" + name, "", ""},
		{http.MethodDelete, "edgenodes", "", ""},
	}
}

func TestEdgeNodes_CannotBeBypassed(t *testing.T) {
	h := newEdgeHub(t)
	agent := registration.ClusterUser("c1", "a")
	body := func(name string) string { return edgeObject("EdgeNode", `"name":"`+name+`"`, "{}") }
	for who, name := range map[string]string{"eve": "c1", "blind": "c1", "set": "c2", "ann": "c2"} {
		h.wants(http.StatusForbidden, who, http.MethodPost, "edgenodes", jsonType, body(name))
		h.wants(http.StatusForbidden, who, http.MethodPatch, "edgenodes/"+name+"?fieldManager=m", applyType, body(name))
		h.wants(http.StatusForbidden, who, http.MethodPost, "edgenodes", jsonType, edgeObject("EdgeNode", `"generateName":"c"`, "{}"))
	}
	h.wants(http.StatusForbidden, agent, http.MethodPost, "edgenodes", jsonType, body("c2"))
	h.wants(http.StatusForbidden, agent, http.MethodPost, "edgenodes", jsonType, edgeObject("EdgeNode", `"name":"c1"`, `{"pattern":"a/b"}`))
	h.wants(http.StatusUnprocessableEntity, "root", http.MethodPost, "edgenodes", jsonType, body("c9"))
	h.wants(http.StatusUnprocessableEntity, "root", http.MethodPatch, "edgenodes/c9?fieldManager=m", applyType, body("c9"))

	h.wants(http.StatusCreated, agent, http.MethodPost, "edgenodes", jsonType, body("c1"))
	h.wants(http.StatusCreated, "root", http.MethodPatch, "edgenodes/c2?fieldManager=m", applyType, body("c2"))
	for _, name := range []string{"c1", "c2"} {
		if owners := h.node(name).OwnerReferences; len(owners) != 1 || owners[0].Kind != "ManagedCluster" || owners[0].UID != h.stored(name).UID {
			t.Errorf("the owners of %s are %v", name, owners)
		}
	}
	for who, name := range map[string]string{"eve": "c1", "blind": "c1", "set": "c2", agent: "c1"} {
		for _, w := range writes(name) {
			if who == "set" && w[1] == "edgenodes" {
				continue // it deletes c1, and is rejected for c2: see below
			}
			before := h.node(name)
			if before.Name == "" {
				t.Fatalf("%s is gone", name)
			}
			h.wants(http.StatusForbidden, who, w[0], w[1], w[2], w[3])
			if h.node(name).ResourceVersion != before.ResourceVersion {
				t.Errorf("%q of %s was refused, and has changed %s", w, who, name)
			}
		}
	}
	// Users who may update the cluster, by its name or by a set, may do all of it.
	for _, who := range []string{"ann", "set"} {
		for _, w := range writes("c1") {
			if h.node("c1").Name == "" {
				h.wants(http.StatusCreated, who, http.MethodPost, "edgenodes", jsonType, body("c1"))
			}
			if w[1] == "edgenodes" {
				h.wants(http.StatusForbidden, who, w[0], w[1], w[2], w[3])
				continue
			}
			h.wants(http.StatusOK, who, w[0], w[1], w[2], w[3])
		}
	}
	if h.node("c2").Name == "" {
		t.Error("a collection was deleted with the right on a part of it")
	}
}

func TestEdgeNodes_OwnerAndFactsAreImmutable(t *testing.T) {
	h := newEdgeHub(t)
	agent := registration.ClusterUser("c1", "a")
	h.wants(http.StatusCreated, "ann", http.MethodPost, "edgenodes", jsonType, edgeObject("EdgeNode", `"name":"c1"`, "{}"))
	owner := h.node("c1").OwnerReferences
	for _, w := range [][3]string{
		{http.MethodPut, jsonType, edgeObject("EdgeNode", `"name":"c1"`, `{"label":"x"}`)},
		{http.MethodPatch, mergeType, `{"metadata":{"ownerReferences":null}}`},
		{http.MethodPatch, patchType, `[{"op":"remove","path":"/metadata/ownerReferences"}]`},
	} {
		h.wants(http.StatusOK, "root", w[0], "edgenodes/c1", w[1], w[2])
	}
	h.wants(http.StatusForbidden, "root", http.MethodPatch, "edgenodes/c1", mergeType,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`)
	if got := h.node("c1").OwnerReferences; len(got) != 1 || got[0] != owner[0] {
		t.Errorf("the owners are %v, want %v", got, owner)
	}

	const facts = `{"status":{"arch":"amd64","namespace":"agent","namespaceScoped":true}}`
	for _, who := range []string{"root", "ann", "eve", hubstatus.Controllers, registration.ClusterUser("c2", "a")} {
		h.wants(http.StatusForbidden, who, http.MethodPatch, "edgenodes/c1/status", mergeType, facts)
	}
	h.wants(http.StatusOK, agent, http.MethodPatch, "edgenodes/c1/status", mergeType, facts)
	h.wants(http.StatusForbidden, "root", http.MethodPatch, "edgenodes/c1/status", mergeType, `{"status":null}`)
	h.wants(http.StatusOK, "root", http.MethodPatch, "edgenodes/c1", mergeType, `{"status":{"arch":"arm64"},"spec":{"label":"y"}}`)
	h.wants(http.StatusOK, agent, http.MethodPatch, "edgenodes/c1/status", mergeType, `{"status":{"cpu":4},"spec":{"label":"z"},"metadata":{"labels":{"a":"b"}}}`)
	if n := h.node("c1"); n.Status["arch"] != "amd64" || n.Spec["label"] != "y" {
		t.Errorf("got %v and %v", n.Spec, n.Status)
	}
}

func TestEdgeNodes_ReadOnlyPropertiesOnAnyPath(t *testing.T) {
	h := newEdgeHub(t)
	const spec = `{"properties":[{"name":"openhorizon.arch","value":"arm64"}],"deployment":{"properties":[{"name":"openhorizon.kubernetesNamespace","value":"abc"}]}}`
	body := edgeObject("EdgeNode", `"name":"c1"`, spec)
	for _, w := range [][4]string{
		{http.MethodPost, "edgenodes", jsonType, body}, {http.MethodPut, "edgenodes/c1", jsonType, body},
		{http.MethodPatch, "edgenodes/c1", mergeType, `{"spec":` + spec + `}`}, {http.MethodPatch, "edgenodes/c1?fieldManager=m&force=true", applyType, body},
	} {
		a := h.send("ann", w[0], w[1], w[2], w[3])
		if a.code >= http.StatusMultipleChoices || len(a.warnings) != 2 || strings.Contains(fmt.Sprint(h.node("c1").Spec), "openhorizon") {
			t.Errorf("%s: %d %q, and there is %v", w[2], a.code, a.warnings, h.node("c1").Spec)
		}
	}
}

func TestEdgePlacements_OnlyHubMayWrite(t *testing.T) {
	h := newEdgeHub(t)
	placement := edgeObject("EdgePlacement", fmt.Sprintf("%q:%q", "name", edge.PlacementName(edge.PlacementOrigin{Kind: edge.KindDeploymentPolicy, Name: "web"}, "c1")),
		`{"node":"c1","origin":{"kind":"DeploymentPolicy","name":"web"},"services":[{"name":"web","org":"shop","version":"1.0.0","arch":"*","targetNamespace":"a"}]}`)
	policy := edgeObject("DeploymentPolicy", `"name":"web"`, `{"service":{"name":"web","serviceVersions":[{"version":"1.0.0"}]}}`)
	h.wants(http.StatusCreated, "ann", http.MethodPost, "namespaces/shop/deploymentpolicies", jsonType, policy)
	for who, code := range map[string]int{"root": http.StatusForbidden, "ann": http.StatusForbidden, hubstatus.Controllers: http.StatusCreated} {
		h.wants(code, who, http.MethodPost, "namespaces/shop/edgeplacements", jsonType, placement)
		h.wants(map[int]int{http.StatusForbidden: http.StatusForbidden, http.StatusCreated: http.StatusOK}[code], who, http.MethodPatch,
			"namespaces/shop/deploymentpolicies/web/status", mergeType, `{"status":{"nodes":{"placed":`+fmt.Sprint(code)+`}}}`)
	}
}

func TestEdgeServices_OfOtherNamespacesOnAnyPath(t *testing.T) {
	h := newEdgeHub(t)
	for _, url := range []string{"open", "closed"} {
		h.post("tools", "edgeservices", "EdgeService", fmt.Sprintf("%q:%q", "name", edge.ServiceName(url, "1.0.0", "*")),
			fmt.Sprintf(`{"url":%q,"version":"1.0.0","arch":"*","public":%t,"clusterDeployment":{"operatorYamlArchive":%q}}`, url, url == "open", archived(t)))
	}
	const path = "namespaces/shop/deploymentpolicies"
	service := func(url string) string {
		return fmt.Sprintf(`{"service":{"name":%q,"org":"tools","serviceVersions":[{"version":"1.0.0"}]}}`, url)
	}
	policy := func(url string) string { return edgeObject("DeploymentPolicy", `"name":"p"`, service(url)) }
	const refused, why = http.StatusUnprocessableEntity, "it must exist, and be public"
	h.wants(refused, "ann", http.MethodPost, path, jsonType, policy("closed"))
	h.wants(refused, "ann", http.MethodPatch, path+"/p?fieldManager=m", applyType, policy("closed"))
	a := h.wants(http.StatusCreated, "ann", http.MethodPost, path, jsonType, strings.Replace(policy("open"), `"name":"p"`,
		`"name":"p","annotations":{"edge.clusterhub.dev/author":"{\"username\":\"root\"}"}`, 1))
	if !strings.Contains(a.body, `{\"username\":\"ann\"`) || len(a.warnings) > 0 {
		t.Errorf("created as %s, with %q", a.body, a.warnings)
	}
	for url, who := range map[string]string{"closed": "ann", "none": "root"} {
		for _, w := range [][3]string{
			{http.MethodPut, jsonType, policy(url)}, {http.MethodPatch, mergeType, `{"spec":` + service(url) + `}`},
			{http.MethodPatch, patchType, fmt.Sprintf(`[{"op":"replace","path":"/spec/service/name","value":%q}]`, url)},
		} {
			for _, how := range []string{"", "?dryRun=All"} {
				if a := h.wants(refused, who, w[0], path+"/p"+how, w[1], w[2]); !strings.Contains(a.body, why) {
					t.Errorf("%s is refused for something else: %s", w[0], a.body)
				}
			}
		}
		h.wants(refused, who, http.MethodPatch, path+"/p?fieldManager=m&force=true", applyType, policy(url))
		h.wants(refused, who, http.MethodPost, "namespaces/shop/deploymentpatterns", jsonType, edgeObject("DeploymentPattern", `"name":"p"`,
			fmt.Sprintf(`{"services":[{"serviceUrl":%q,"serviceOrgid":"tools","serviceVersions":[{"version":"1.0.0"}]}]}`, url)))
	}
	h.wants(http.StatusOK, "reads", http.MethodPut, path+"/p", jsonType, policy("closed"))
	// What another user may use stays, and a change of labels by a user who may not use it does not make that user the author.
	a = h.wants(http.StatusOK, "ann", http.MethodPatch, path+"/p", mergeType, `{"metadata":{"labels":{"a":"b"}}}`)
	if !strings.Contains(a.body, `{\"username\":\"reads\"`) {
		t.Errorf("labelled: %s", a.body)
	}
}

func TestEdgePublishing_WarnsAndRejects(t *testing.T) {
	h := newEdgeHub(t)
	policy := edgeObject("DeploymentPolicy", `"name":"p"`, `{"service":{"name":"web","clusterNamespace":"abc","serviceVersions":[{"version":"1.0.0"}]},
		"constraints":["openhorizon.kubernetesNamespace == xyz"]}`)
	for _, w := range [][4]string{
		{http.MethodPost, "", jsonType, policy}, {http.MethodPatch, "/q?fieldManager=m", applyType, strings.Replace(policy, `"p"`, `"q"`, 1)},
	} {
		a := h.send("ann", w[0], "namespaces/shop/deploymentpolicies"+w[1], w[2], w[3])
		if a.code != http.StatusCreated || len(a.warnings) != 2 || !strings.Contains(a.warnings[1], "all namespace-scoped nodes are excluded") {
			t.Errorf("%s: %d %q %s", w[2], a.code, a.warnings, a.body)
		}
	}
	for _, url := range []string{"a", "b"} {
		h.post("shop", "edgeservices", "EdgeService", fmt.Sprintf("%q:%q", "name", edge.ServiceName(url, "1.0.0", "*")),
			fmt.Sprintf(`{"url":%q,"version":"1.0.0","arch":"*","clusterDeployment":{"operatorYamlArchive":%q}}`, url, archived(t)))
	}
	pattern := edgeObject("DeploymentPattern", `"name":"p"`, `{"services":[{"serviceUrl":"a","serviceVersions":[{"version":"1.0.0"}]},{"serviceUrl":"b","serviceVersions":[{"version":"1.0.0"}]}]}`)
	if a := h.wants(http.StatusUnprocessableEntity, "ann", http.MethodPost, "namespaces/shop/deploymentpatterns", jsonType, pattern); !strings.Contains(a.body, "cannot go to one namespace") {
		t.Error(a.body)
	}
}
