// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
	"github.com/clusterhub/clusterhub/test/await"
)

const edgePath = "/apis/edge.clusterhub.dev/v1alpha1/"

func edgeRule(verb, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{edge.GroupName}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{verb}}
}

// archived returns an archive of a ConfigMap, in base64.
func archived(t *testing.T) string {
	t.Helper()
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	files := tar.NewWriter(zip)
	if err := files.WriteHeader(&tar.Header{Name: "a.yaml", Mode: 0o644, Size: int64(len(manifest)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	_, _ = files.Write([]byte(manifest))
	_ = files.Close()
	_ = zip.Close()
	return base64.StdEncoding.EncodeToString(data.Bytes())
}

// post creates an object of the group as an admin.
func (h *viewedHub) post(namespace, resource, kind, metadata, spec string) {
	h.t.Helper()
	path := edgePath + resource
	if namespace != "" {
		path = edgePath + "namespaces/" + namespace + "/" + resource
	}
	h.must("root", http.MethodPost, path, "application/json",
		fmt.Sprintf(`{"apiVersion":"edge.clusterhub.dev/v1alpha1","kind":%q,"metadata":{%s},"spec":%s}`, kind, metadata, spec))
}

// accept accepts a cluster without admission, which would get the namespace from the front.
func (h *viewedHub) accept(name string) {
	h.t.Helper()
	registry := h.stores.of(managedcluster.Kind)
	ctx := registrytest.Context(registry)
	found, err := registry.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	accepted := found.(*cluster.ManagedCluster).DeepCopy()
	accepted.Spec.HubAcceptsClient = true
	if _, err := registrytest.Update(ctx, registry, accepted); err != nil {
		h.t.Fatal(err)
	}
}

// newEdge returns a hub with two sets, one of which is bound to the namespace shop, and a node in each cluster.
func newEdge(t *testing.T) *viewedHub {
	checks := func(more ...rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return append(more, edgeRule("create", "deploychecks"))
	}
	h := newViewedHub(t, roles{
		"dev":    checks(edgeRule("get", "deploymentpolicies"), rule("get", "managedclustersets/clusters", "blue")),
		"one":    checks(edgeRule("get", "deploymentpolicies"), edgeRule("get", "edgeservices", edge.ServiceName("db", "1.0.0", "*")), rule("get", "managedclusters", "blue1", "red1")),
		"blind":  checks(edgeRule("get", "deploymentpolicies")),
		"asking": checks(),
	})
	for _, set := range []string{"blue", "red"} {
		h.newSet(set)
	}
	h.must("root", http.MethodPost, "/apis/cluster.open-cluster-management.io/v1beta2/namespaces/shop/managedclustersetbindings", "application/json",
		`{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSetBinding","metadata":{"name":"blue"},"spec":{"clusterSet":"blue"}}`)
	for i, name := range []string{"blue1", "blue2", "red1"} {
		h.newCluster(name, strings.TrimRight(name, "12"))
		h.accept(name)
		owner := fmt.Sprintf(`"name":%[1]q,"ownerReferences":[{"apiVersion":%[2]q,"kind":"ManagedCluster","name":%[1]q,"uid":%[3]q}]`,
			name, cluster.GroupName+"/v1", h.stored(name).UID)
		h.post("", "edgenodes", "EdgeNode", owner, fmt.Sprintf(`{"properties":[{"name":"rank","value":%d}]}`, i+1))
		h.must("root", http.MethodPatch, edgePath+"edgenodes/"+name+"/status", mergeType, `{"status":{"arch":"amd64","namespace":"agent","namespaceScoped":false}}`)
	}
	// The node has the name of a cluster of the set, and is not owned by that cluster.
	h.newCluster("blue3", "blue")
	h.accept("blue3")
	h.post("", "edgenodes", "EdgeNode", `"name":"blue3"`, "{}")

	service := func(namespace, url, more string) {
		h.post(namespace, "edgeservices", "EdgeService", fmt.Sprintf("%q:%q", "name", edge.ServiceName(url, "1.0.0", "*")),
			fmt.Sprintf(`{"url":%q,"version":"1.0.0","arch":"*","clusterDeployment":{"operatorYamlArchive":%q}%s}`, url, archived(h.t), more))
	}
	service("shop", "web", "")
	service("tools", "db", "")
	service("tools", "cache", `,"public":true`)
	h.post("shop", "deploymentpolicies", "DeploymentPolicy", `"name":"web"`, policyOf("web", "", `,"constraints":["rank < 9"]`))
	return h
}

func policyOf(service, org, more string) string {
	return fmt.Sprintf(`{"service":{"name":%q,"org":%q,"serviceVersions":[{"version":"1.0.0"}]}%s}`, service, org, more)
}

// check sends a check, and retries while the server responds that it is too early.
func (h *viewedHub) check(who, spec string) (c v1alpha1.DeployCheck, a answer) {
	h.t.Helper()
	deadline := time.Now().Add(await.Limit)
	for {
		a = h.do(who, http.MethodPost, edgePath+"namespaces/shop/deploychecks", "application/json",
			`{"apiVersion":"edge.clusterhub.dev/v1alpha1","kind":"DeployCheck","spec":`+spec+`}`)
		if a.code != http.StatusTooManyRequests || time.Now().After(deadline) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if a.code == http.StatusCreated {
		if err := json.Unmarshal([]byte(a.body), &c); err != nil {
			h.t.Errorf("%v of %s", err, a.body)
		}
	}
	return c, a
}

// verdicts returns a short form of the result of a check.
func verdicts(c v1alpha1.DeployCheck) string {
	parts := []string{fmt.Sprint(c.Status.Selected)}
	for _, n := range c.Status.Nodes {
		what := n.Reason
		if n.Deployable && len(n.Services) == 1 {
			what = n.Services[0].Version + "@" + n.Services[0].TargetNamespace
		}
		parts = append(parts, n.Node+":"+what)
	}
	return strings.Join(parts, " ")
}

func TestDeployCheck_ReportsOnlyVisibleNodes(t *testing.T) {
	h := newEdge(t)
	const named = `{"policyName":"web"}`
	inline := func(service, org, more string) string { return `{"policy":` + policyOf(service, org, "") + more + `}` }
	for _, test := range []struct{ who, what, spec, want, hidden string }{
		{"root", "a policy", named, "2 blue1:1.0.0@agent blue2:1.0.0@agent", "red"},
		{"dev", "a policy", named, "2 blue1:1.0.0@agent blue2:1.0.0@agent", "red"},
		{"one", "a policy, and sees one node", named, "2 blue1:1.0.0@agent", "blue2"},
		{"blind", "a policy, and sees no node", named, "2", "blue"},
		{"asking", "a policy that is not there", inline("web", "", ""), "2", "blue"},
		{"dev", "a service that is not theirs", inline("db", "tools", ""), "0 blue1:VersionMissing blue2:VersionMissing", ""},
		{"dev", "a service that is not there", inline("xx", "tools", ""), "0 blue1:VersionMissing blue2:VersionMissing", ""},
		{"one", "a service that they may get", inline("db", "tools", ""), "2 blue1:1.0.0@agent", ""},
		{"dev", "a public service", inline("cache", "tools", ""), "2 blue1:1.0.0@agent blue2:1.0.0@agent", ""},
		{"dev", "a node of another set", inline("web", "", `,"nodeNames":["blue1","red1"]`), "1 blue1:1.0.0@agent red1:NodeNotFound", ""},
		{"one", "a node of another set, and sees it", inline("web", "", `,"nodeNames":["red1"]`), "0 red1:NotReached", ""},
		{"one", "a node that they do not see", inline("web", "", `,"nodeNames":["blue2"]`), "0 blue2:NodeNotFound", ""},
		{"root", "a node of a cluster that is gone", inline("web", "", `,"nodeNames":["blue3"]`), "0 blue3:NotReached", ""},
		{"dev", "a node that is not there", inline("web", "", `,"nodes":[{"name":"new","status":{"namespace":"abc","namespaceScoped":true}}]`), "1 new:1.0.0@abc", ""},
	} {
		c, a := h.check(test.who, test.spec)
		if got := verdicts(c); a.code != http.StatusCreated || got != test.want || c.Status.Deployable != (test.want[0] != '0') {
			t.Errorf("%s asks for %s: got %q, want %q (%d %s)", test.who, test.what, got, test.want, a.code, a.body)
		}
		if test.hidden != "" && strings.Contains(a.body, test.hidden) {
			t.Errorf("%s asks for %s, and is told of %s: %s", test.who, test.what, test.hidden, a.body)
		}
	}
	// Users cannot find out whether a service exists that they may not get.
	_, theirs := h.check("dev", inline("db", "tools", ""))
	_, none := h.check("dev", inline("xx", "tools", ""))
	if strings.ReplaceAll(theirs.body, `"db"`, `"xx"`) != none.body {
		t.Errorf("%s\n%s", theirs.body, none.body)
	}

	// Another team has deployed the service there already. The result contains that, and not the team.
	placement := edge.EdgePlacementSpec{Node: "blue1", Origin: edge.PlacementOrigin{Kind: edge.KindDeploymentPolicy, Name: "theirs"}}
	h.post("secret", "edgeplacements", "EdgePlacement", fmt.Sprintf(`"name":%q`, edge.PlacementName(placement.Origin, placement.Node)),
		`{"node":"blue1","origin":{"kind":"DeploymentPolicy","name":"theirs"},"services":[{"name":"cache","org":"tools","version":"1.0.0","arch":"*","targetNamespace":"agent"}]}`)
	c, a := h.check("dev", inline("cache", "tools", ""))
	if got := verdicts(c); got != "1 blue1:ThereAlready blue2:1.0.0@agent" || strings.Contains(a.body, "secret") || strings.Contains(a.body, "theirs") {
		t.Errorf("%s: %s", got, a.body)
	}
	// Changes take effect immediately.
	h.must("root", http.MethodPatch, edgePath+"edgenodes/blue2", mergeType, `{"spec":{"properties":[{"name":"rank","value":10}]}}`)
	if c, a := h.check("dev", named); verdicts(c) != "1 blue1:1.0.0@agent blue2:PolicyConstraint" {
		t.Errorf("after a node has changed: %s", a.body)
	}
}

func TestDeployCheck_Rejects(t *testing.T) {
	h := newEdge(t)
	policy := policyOf("web", "", "")
	for _, test := range []struct {
		who, spec string
		code      int
		says      string
	}{
		{"asking", `{"policyName":"web"}`, http.StatusForbidden, "deploymentpolicies"},
		{"asking", `{"policyName":"none"}`, http.StatusForbidden, "deploymentpolicies"},
		{"dev", `{"policyName":"none"}`, http.StatusNotFound, "none"},
		{"dev", `{}`, http.StatusUnprocessableEntity, "spec.policy"},
		{"dev", `{"policyName":"web","policy":` + policy + `}`, http.StatusUnprocessableEntity, "at a time"},
		{"dev", `{"policy":` + policyOf("web", "", `,"constraints":["a =="]`) + `}`, http.StatusUnprocessableEntity, "constraints"},
		{"dev", `{"limit":1001,"policyName":"web"}`, http.StatusUnprocessableEntity, "1000"},
		{"dev", `{"policy":` + policy + `,"services":[{"spec":{"url":"web","version":"1.0.0","arch":"*","clusterDeployment":{"operatorYamlArchive":"cGFzc3dvcmQ="}}}]}`,
			http.StatusUnprocessableEntity, "operatorYamlArchive"},
	} {
		if _, a := h.check(test.who, test.spec); a.code != test.code || !strings.Contains(a.body, test.says) || strings.Contains(a.body, "password") {
			t.Errorf("%s asks %s: %d %s, want %d and %q", test.who, test.spec, a.code, a.body, test.code, test.says)
		}
	}
	if a := h.do("root", http.MethodGet, edgePath+"namespaces/shop/deploychecks", "", ""); a.code != http.StatusMethodNotAllowed {
		t.Errorf("checks are listed: %d %s", a.code, a.body)
	}
	a := h.do("dev", http.MethodPost, edgePath+"namespaces/shop/deploychecks", "application/json",
		`{"apiVersion":"edge.clusterhub.dev/v1alpha1","kind":"DeployCheck","metadata":{"namespace":"tools"},"spec":{"policyName":"web"}}`)
	if a.code != http.StatusBadRequest {
		t.Errorf("a check of another namespace: %d %s", a.code, a.body)
	}
}
