// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestAgents_SharedRoleReachesOwnClusterOnly verifies this for agents that share one role, which names no cluster, and which grants more here than
// in production. The unit tests of hub-apiserver's authorizer cover its decisions; this test shows that the authorizer applies to every way in, and
// that no object is written or read.
func TestAgents_SharedRoleReachesOwnClusterOnly(t *testing.T) {
	mine, denied, other := harness.Unique("mine"), harness.Unique("denied"), harness.Unique("other")
	clusters := harness.Admin(t).ClusterV1().ManagedClusters()
	for _, name := range []string{mine, denied, other} {
		harness.NewManagedCluster(t, name, map[string]string{"env": "x"})
	}
	accept := func(name string) {
		harness.Must(clusters.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)
	}
	accept(mine)
	accept(other)
	grantAgents(t, mine)
	// A hub that has just started creates its own sets concurrently.
	for _, set := range []string{"default", "global"} {
		harness.Eventually(t, "the hub makes the set "+set, func(ctx context.Context) (bool, error) {
			_, err := harness.Admin(t).ClusterV1beta2().ManagedClusterSets().Get(ctx, set, metav1.GetOptions{})
			return err == nil, err
		})
	}
	before := everything(t)

	for who, as := range waysIn(t, mine) {
		for _, attack := range attacks(t, mine, other) {
			as.refused(t, who, attack)
		}
		for _, read := range []string{"/" + mine, "?fieldSelector=metadata.name%3D" + mine} {
			if code, body := as.do(t, request{"GET", ofClusters + read, nil}); code != http.StatusOK || !strings.Contains(body, mine) || strings.Contains(body, other) {
				t.Errorf("%s: GET %s: %d %s", who, read, code, body)
			}
		}
		// A selector for both names matches nothing.
		both := ofClusters + "?fieldSelector=metadata.name%3D" + mine + ",metadata.name%3D" + other
		if code, body := as.do(t, request{"GET", both, nil}); code == http.StatusOK && (strings.Contains(body, `"uid"`) || strings.Contains(body, other)) {
			t.Errorf("%s: GET %s: %d %s", who, both, code, body)
		}
	}
	for who, as := range waysIn(t, denied) {
		for _, attack := range append(attacks(t, denied, other), agentWrites(t, denied)...) {
			as.refused(t, who, attack)
		}
		if code, body := as.do(t, request{"GET", ofClusters + "/" + denied, nil}); code != http.StatusOK {
			t.Errorf("%s: to see that it is denied: %d %s", who, code, body)
		}
	}
	for who, as := range waysIn(t, "nobody") {
		for _, attack := range append(attacks(t, "nobody", other), agentWrites(t, "nobody")...) {
			as.refused(t, who, attack)
		}
		if code, body := as.do(t, request{"GET", ofClusters + "/nobody", nil}); code != http.StatusNotFound {
			t.Errorf("%s: to see that its cluster is gone: %d %s", who, code, body)
		}
	}
	for who, as := range ofNoCluster(t, mine, other) {
		for _, attack := range append(attacks(t, mine, other), agentWrites(t, mine)...) {
			as.refused(t, who, attack)
		}
		as.refused(t, who, request{"GET", ofClusters + "/" + mine, nil})
	}
	if after := everything(t); after != before {
		t.Errorf("something was written:\n%s\n%s", before, after)
	}
	agentsWork(t, denied, accept)
}

// agentsWork verifies that the agent of a newly accepted cluster is authorized immediately, can label its cluster, and can leave.
func agentsWork(t *testing.T, name string, accept func(string)) {
	t.Helper()
	clusters := harness.Ours(t, harness.Hub(t).UserConfig(registration.ClusterUser(name, "a"), agentGroups(name)...)).ClusterV1().ManagedClusters()
	accept(name)
	write := func(change func(*clusterv1.ManagedCluster)) error {
		c := harness.Must(clusters.Get(t.Context(), name, metav1.GetOptions{}))(t)
		change(c)
		return harness.ErrorOf(clusters.Update(t.Context(), c, metav1.UpdateOptions{}))
	}
	region := func(value string) error {
		return write(func(c *clusterv1.ManagedCluster) { c.Labels[registration.LabelRegion] = value })
	}
	if err := harness.ErrorOf(clusters.Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":{"version":{"kubernetes":"v1.35.0"}}}`),
		metav1.PatchOptions{}, "status")); err != nil {
		t.Errorf("the status: %v", err)
	}
	for _, value := range []string{"apac", "emea"} {
		if err := region(value); err != nil {
			t.Errorf("the region %s: %v", value, err)
		}
	}
	if err := write(func(c *clusterv1.ManagedCluster) { delete(c.Labels, registration.LabelRegion) }); err != nil {
		t.Errorf("no region: %v", err)
	}
	// A different key requires an RBAC rule, which the error names.
	middleware := func() error {
		return write(func(c *clusterv1.ManagedCluster) { c.Labels[harness.InfoPrefix+"middlewareEnabled"] = "true" })
	}
	if err := middleware(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `["`+harness.InfoPrefix+`middlewareEnabled:true"]`) {
		t.Errorf("a label that no rule gives: %v", err)
	}
	harness.Grant(t, harness.Hub(t), harness.Unique("label"), registration.ClusterUser(name, "a"), harness.LabelRight(harness.InfoPrefix+"middlewareEnabled:true"))
	harness.Eventually(t, "a label that a rule gives", func(context.Context) (bool, error) { err := middleware(); return err == nil, err })
	if err := write(func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }); err != nil {
		t.Errorf("to leave: %v", err)
	}
	harness.Eventually(t, "who has left writes no more", func(context.Context) (bool, error) {
		return apierrors.IsForbidden(region("apac")), nil
	})
}

const ofClusters = "/apis/cluster.open-cluster-management.io/v1/managedclusters"

func agentGroups(name string) []string {
	return []string{registration.ClusterGroup(name), registration.ManagedClustersGroup, "system:authenticated"}
}

// grantAgents grants all agents all rights except on labels, and waits until the front observes them.
func grantAgents(t *testing.T, cluster string) {
	t.Helper()
	client, name := harness.Kube(t, harness.Hub(t).AdminConfig()), harness.Unique("all-agents")
	every := []rbacv1.PolicyRule{
		harness.Rule("*", "managedclusters"), harness.Rule("*", "managedclusters/status"), harness.Rule("*", "managedclusters/leave"),
		harness.Rule("*", "managedclusters/accept"), harness.Rule("*", "managedclusters/finalizers"), harness.Rule("get,update,patch", "managedclusters/label"),
		harness.Rule("*", "managedclustersets"), harness.Rule("*", "managedclustersets/join"), harness.Rule("*", "managedclustersets/bind"),
		harness.Rule("*", "managedclustersetbindings"), harness.RuleIn(harness.RegisterGroup, "*", "*"),
		harness.RuleIn(workGroup, "*", "*"), harness.RuleIn("view.clusterhub.dev", "*", "*"), harness.RuleIn("clusters.openmcp.cloud", "*", "*"),
	}
	harness.Must(client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: harness.Named(name), Rules: every}, metav1.CreateOptions{}))(t)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: harness.Named(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}
	for _, group := range []string{registration.ManagedClustersGroup, registration.AWSManagedClustersGroup} {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group})
	}
	harness.Must(client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})
	})
	agent := harness.Ours(t, harness.Hub(t).UserConfig(registration.ClusterUser(cluster, "a"), agentGroups(cluster)...))
	harness.Eventually(t, "the rights of the agents", func(ctx context.Context) (bool, error) {
		_, err := agent.ClusterV1().ManagedClusters().Get(ctx, cluster, metav1.GetOptions{})
		return err == nil, err
	})
}

// wayIn is a user, and the server that receives the requests.
type wayIn struct{ *rest.Config }

// request is a request with a valid body.
type request struct {
	method, path string
	body         any
}

func (w wayIn) do(t *testing.T, r request) (code int, body string) {
	t.Helper()
	client := harness.Must(rest.HTTPClientFor(w.Config))(t)
	sent := harness.Must(json.Marshal(r.body))(t)
	asked := harness.Must(http.NewRequestWithContext(t.Context(), r.method, w.Host+r.path, bytes.NewReader(sent)))(t)
	asked.Header.Set("Content-Type", "application/json")
	if r.method == http.MethodPatch {
		asked.Header.Set("Content-Type", string(types.MergePatchType))
	}
	answer := harness.Must(client.Do(asked))(t)
	defer func() { _ = answer.Body.Close() }()
	if strings.Contains(r.path, "watch") && answer.StatusCode == http.StatusOK {
		return answer.StatusCode, "a watch" // it does not end
	}
	return answer.StatusCode, string(harness.Must(io.ReadAll(answer.Body))(t))
}

func (w wayIn) refused(t *testing.T, who string, r request) {
	t.Helper()
	if code, body := w.do(t, r); code != http.StatusForbidden {
		t.Errorf("%s: %s %s: %d %s, want 403", who, r.method, r.path, code, body)
	}
}

// waysOf returns the ways in of a user: by certificate through the front, by the front's headers directly, and by an admin that impersonates the
// user.
func waysOf(t *testing.T, user string, groups ...string) map[string]wayIn {
	t.Helper()
	impersonated := rest.CopyConfig(harness.Hub(t).AdminConfig())
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return map[string]wayIn{
		"through the front": {harness.Hub(t).UserConfig(user, groups...)},
		"direct":            {harness.Hub(t).HubAPIServerUserConfig(1, user, groups...)},
		"impersonated":      {impersonated},
	}
}

// waysIn returns the ways in of the agents of a cluster.
func waysIn(t *testing.T, cluster string) map[string]wayIn {
	ways := map[string]wayIn{}
	for how, way := range waysOf(t, registration.ClusterUser(cluster, "a"), agentGroups(cluster)...) {
		ways["agent of "+cluster+", "+how] = way
	}
	byAWS := []string{registration.AWSGroup(cluster), registration.AWSManagedClustersGroup, "system:authenticated"}
	for how, way := range waysOf(t, registration.AWSGroup(cluster), byAWS...) {
		ways["agent of "+cluster+" by AWS, "+how] = way
	}
	return ways
}

// ofNoCluster returns agents whose cluster is ambiguous, and admins among them.
func ofNoCluster(t *testing.T, mine, other string) map[string]wayIn {
	ways := map[string]wayIn{}
	for who, groups := range map[string][]string{
		"of all":       {registration.ManagedClustersGroup, "system:authenticated"},
		"of two":       append(agentGroups(mine), registration.ClusterGroup(other)),
		"by AWS":       {registration.AWSManagedClustersGroup, registration.AWSGroup(mine), registration.AWSGroup(other), "system:authenticated"},
		"both":         append(agentGroups(mine), registration.AWSGroup(other), registration.AWSManagedClustersGroup),
		"of all, root": {registration.ManagedClustersGroup, "system:masters", "system:authenticated"},
	} {
		for how, way := range waysOf(t, "a", groups...) {
			ways[who+", "+how] = way
		}
	}
	for how, way := range waysOf(t, registration.ClusterUser(other, "a"), agentGroups(mine)...) {
		ways["of another name, "+how] = way
	}
	return ways
}

// agentWrites returns the writes of an accepted cluster's agent.
func agentWrites(t *testing.T, name string) []request {
	c := harness.ManagedCluster(name, map[string]string{"attack": "x"})
	if there, err := harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}); err == nil {
		c = there
		c.APIVersion, c.Kind = clusterv1.SchemeGroupVersion.String(), "ManagedCluster"
		c.Labels["attack"] = "x"
	}
	c.Status.Version.Kubernetes = "v1.0.0"
	return []request{
		{"PUT", ofClusters + "/" + name, c}, {"PUT", ofClusters + "/" + name + "/status", c},
		{"PATCH", ofClusters + "/" + name + "/status", map[string]any{"status": map[string]any{"version": map[string]any{"kubernetes": "v1.0.0"}}}},
		{"PUT", ofClusters + "/" + name + "/leave", c},
	}
}

// attacks returns requests that no agent of a cluster may make, although RBAC allows them.
func attacks(t *testing.T, mine, other string) []request {
	t.Helper()
	labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{"attack": "x"}}}
	const sets = "/apis/cluster.open-cluster-management.io/VERSION/managedclustersets"
	all := []request{
		{"GET", ofClusters, nil}, {"GET", ofClusters + "?watch=true", nil}, {"GET", ofClusters + "?labelSelector=env%3Dx", nil},
		{"GET", ofClusters + "?fieldSelector=metadata.name%3D" + other, nil}, {"GET", ofClusters + "?fieldSelector=spec.hubAcceptsClient%3Dtrue", nil},
		{"GET", ofClusters + "?fieldSelector=metadata.name%21%3D" + mine, nil},
		{"GET", ofClusters + "?watch=true&fieldSelector=metadata.name%3D" + other, nil},
		{"GET", strings.Replace(ofClusters, "/v1/", "/v1/watch/", 1), nil}, {"GET", strings.Replace(ofClusters, "/v1/", "/v1/watch/", 1) + "/" + other, nil},
		{"GET", ofClusters + "/" + other, nil}, {"GET", ofClusters + "/" + other + "/status", nil},
		{"POST", ofClusters, harness.ManagedCluster(harness.Unique("new"), nil)},
		{"PATCH", ofClusters + "/" + mine, labels}, {"PATCH", ofClusters + "/" + mine + "/label", labels},
		{"PATCH", ofClusters + "/" + mine + "/accept", map[string]any{"spec": map[string]any{"hubAcceptsClient": false}}},
		{"PATCH", ofClusters + "/" + other, labels}, {"PATCH", ofClusters + "/" + other + "/label", labels},
		{"DELETE", ofClusters + "/" + mine, nil}, {"DELETE", ofClusters + "/" + other, nil}, {"DELETE", ofClusters, nil},
		{"DELETE", ofClusters + "?fieldSelector=metadata.name%3D" + mine, nil},
		{"GET", "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers", nil}, {"GET", "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers?watch=true", nil},
		{"GET", "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers/" + mine + ".global", nil},
		{"GET", "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersetbindings", nil},
		{"POST", "/apis/clusters.openmcp.cloud/v1alpha1/namespaces/default/accessrequests",
			map[string]any{"apiVersion": "clusters.openmcp.cloud/v1alpha1", "kind": "AccessRequest", "metadata": map[string]any{"name": "attack"}}},
	}
	const works = "/apis/work.open-cluster-management.io/v1/"
	for _, path := range []string{"manifestworks", "manifestworks?watch=true", "manifestworks?fieldSelector=metadata.namespace%3D" + mine,
		"namespaces/" + other + "/manifestworks", "namespaces/" + other + "/manifestworks?watch=true", "namespaces/" + other + "/manifestworks/web"} {
		all = append(all, request{"GET", works + path, nil})
	}
	for _, of := range []string{mine, other} {
		work := map[string]any{"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": map[string]any{"name": "attack"}}
		all = append(all, request{"POST", works + "namespaces/" + of + "/manifestworks", work}, request{"DELETE", works + "namespaces/" + of + "/manifestworks/web", nil})
	}
	all = append(all, request{"PATCH", works + "namespaces/" + other + "/manifestworks/web", labels},
		request{"PATCH", works + "namespaces/" + other + "/manifestworks/web/status", map[string]any{"status": map[string]any{}}})
	for _, resource := range []string{"accessrequests", "clusterrequests", "clusters", "clusterprofiles"} {
		all = append(all, request{"GET", "/apis/clusters.openmcp.cloud/v1alpha1/" + resource, nil})
	}
	for _, version := range []string{"v1beta1", "v1beta2"} {
		sets := strings.Replace(sets, "VERSION", version, 1)
		all = append(all, request{"GET", sets, nil}, request{"GET", sets + "?watch=true", nil}, request{"GET", sets + "/global", nil},
			request{"POST", sets, map[string]any{"apiVersion": "cluster.open-cluster-management.io/" + version, "kind": "ManagedClusterSet",
				"metadata": map[string]any{"name": "attack-" + version}}},
			request{"PATCH", sets + "/global", labels}, request{"DELETE", sets + "/default", nil})
	}
	return append(all, agentWrites(t, other)...)
}

// everything returns all objects that attacks would change.
func everything(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, c := range harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().List(t.Context(), metav1.ListOptions{}))(t).Items {
		fmt.Fprintln(&all, "cluster", c.Name, c.UID, c.Labels, c.Spec, c.Status.Version)
	}
	for _, s := range harness.Must(harness.Admin(t).ClusterV1beta2().ManagedClusterSets().List(t.Context(), metav1.ListOptions{}))(t).Items {
		fmt.Fprintln(&all, "set", s.Name, s.Generation, s.Labels)
	}
	for _, r := range harness.Must(harness.Admin(t).OpenMCPV1alpha1().AccessRequests("").List(t.Context(), metav1.ListOptions{}))(t).Items {
		fmt.Fprintln(&all, "access request", r.Name)
	}
	return all.String()
}
