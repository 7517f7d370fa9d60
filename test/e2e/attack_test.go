// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
)

// manager is the field manager of everything that the tests apply: what it leaves out of its next apply is removed.
const manager = "attacker"

// A method is a way to write a cluster that exists so that it looks like another one.
type method struct {
	name string
	do   func(ctx context.Context, client rest.Interface, subresource string, dryRun bool, before, after *clusterv1.ManagedCluster) error
}

func methods() []method {
	return []method{
		{"update", update},
		{"json patch", patchWith(types.JSONPatchType, func(before, after *clusterv1.ManagedCluster) ([]byte, error) {
			return json.Marshal([]map[string]any{
				{"op": "add", "path": "/metadata/labels", "value": after.Labels},
				{"op": "add", "path": "/spec/hubAcceptsClient", "value": after.Spec.HubAcceptsClient},
			})
		})},
		{"merge patch", patchWith(types.MergePatchType, mergePatch)},
		{"strategic merge patch", patchWith(types.StrategicMergePatchType, mergePatch)},
		{"apply", patchWith(types.ApplyYAMLPatchType, applied)},
	}
}

func options(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func request(verb *rest.Request, name, subresource string) *rest.Request {
	r := verb.Resource("managedclusters").Name(name)
	if subresource != "" {
		r = r.SubResource(subresource)
	}
	return r
}

func update(ctx context.Context, client rest.Interface, subresource string, dryRun bool, before, after *clusterv1.ManagedCluster) error {
	body := after.DeepCopy()
	body.ResourceVersion = before.ResourceVersion
	return request(client.Put(), before.Name, subresource).
		VersionedParams(&metav1.UpdateOptions{DryRun: options(dryRun)}, scheme.ParameterCodec).Body(body).Do(ctx).Error()
}

func patchWith(kind types.PatchType, body func(before, after *clusterv1.ManagedCluster) ([]byte, error)) func(context.Context, rest.Interface, string, bool, *clusterv1.ManagedCluster, *clusterv1.ManagedCluster) error {
	return func(ctx context.Context, client rest.Interface, subresource string, dryRun bool, before, after *clusterv1.ManagedCluster) error {
		data, err := body(before, after)
		if err != nil {
			return err
		}
		opts := &metav1.PatchOptions{DryRun: options(dryRun)}
		if kind == types.ApplyYAMLPatchType {
			opts.Force, opts.FieldManager = new(true), manager
		}
		return request(client.Patch(kind), before.Name, subresource).
			VersionedParams(opts, scheme.ParameterCodec).Body(data).Do(ctx).Error()
	}
}

func mergePatch(before, after *clusterv1.ManagedCluster) ([]byte, error) {
	from, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(from, to)
}

// applied is what manager says of a cluster. It always says something of hubAcceptsClient, as upstream's agents do.
func applied(_, c *clusterv1.ManagedCluster) ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": clusterv1.SchemeGroupVersion.String(), "kind": "ManagedCluster",
		"metadata": map[string]any{"name": c.Name, "labels": c.Labels},
		"spec":     map[string]any{"hubAcceptsClient": c.Spec.HubAcceptsClient},
	})
}

// A change is what an attacker wants, and the rights that allow it; the attacker has all other rights on clusters.
type change struct {
	name          string
	before, after state
	// allowedBy are the rights on the cluster of that name.
	allowedBy func(name string) []rbacv1.PolicyRule
	// says is in the refusal.
	says []string
}

type state struct {
	labels   map[string]string
	accepted bool
}

func labelRight(names ...string) rbacv1.PolicyRule {
	return rule("create", "managedclusters/label", names...)
}

func rules(all ...rbacv1.PolicyRule) func(string) []rbacv1.PolicyRule {
	return func(string) []rbacv1.PolicyRule { return all }
}

func changes() []change {
	a, b := setLabel+":a", setLabel+":b"
	in := func(set string) map[string]string { return map[string]string{setLabel: set} }
	region := infoPrefix + "region"
	return []change{
		{"gain a set", state{in("default"), false}, state{in("a"), false},
			rules(labelRight(setLabel+":default", a)), []string{a}},
		{"leave a set", state{map[string]string{setLabel: "default", region: "x"}, false}, state{in("default"), false},
			rules(labelRight(region + ":x")), []string{region + ":x"}},
		// Whoever is in no set is in default.
		{"leave for default", state{map[string]string{setLabel: "a", "own": "1"}, false}, state{map[string]string{"own": "1"}, false},
			rules(labelRight(a, setLabel+":default")), []string{a, setLabel + ":default"}},
		{"swap two sets", state{in("a"), false}, state{in("b"), false},
			rules(labelRight(a, b)), []string{a, b}},
		{"say something of the cluster", state{in("default"), false}, state{map[string]string{setLabel: "default", region: "apac"}, false},
			rules(labelRight(region + ":*")), []string{region + ":apac"}},
		{"accept", state{in("default"), false}, state{in("default"), true},
			rules(rule("update", "managedclusters/accept")), []string{"managedclusters/accept"}},
		{"un-accept", state{in("default"), true}, state{in("default"), false},
			rules(ruleIn(registerGroup, "update", "managedclusters/accept")), []string{"managedclusters/accept"}},
		{"leave", state{in("default"), true}, state{in("default"), false}, leaveRight, []string{"managedclusters/accept"}},
	}
}

// leaveRight is that of a cluster's own agent.
func leaveRight(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("update", "managedclusters/leave", name)}
}

// everythingElse are all rights on clusters except those that the table of permissions asks for, and those for other
// clusters and labels than the attacked ones.
func everythingElse(other string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("get,list,watch,create,update,patch", "managedclusters"),
		rule("get,update,patch", "managedclusters/status"),
		rule("get,update,patch", "managedclusters/label"),
		rule("get,patch,create", "managedclusters/accept"),
		rule("update", "managedclusters/accept", other),
		rule("update", "managedclusters/leave", other),
		ruleIn(registerGroup, "update", "managedclusters/accept", other),
		labelRight(setLabel+":other", setLabel, "a", "b", "*:a", setLabel+":", infoPrefix+"region:other", infoPrefix+"*"),
		rule("create", "managedclustersets/join", "other"),
	}
}

func restClient(t *testing.T, config *rest.Config) rest.Interface {
	t.Helper()
	return ours(t, config).ClusterV1().RESTClient()
}

// applyCluster makes a cluster that looks like that.
func applyCluster(t *testing.T, name string, s state) *clusterv1.ManagedCluster {
	t.Helper()
	_ = admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name, metav1.DeleteOptions{})
	c := cluster(name, s.labels)
	c.Spec.HubAcceptsClient = s.accepted
	err := patchWith(types.ApplyYAMLPatchType, applied)(t.Context(), restClient(t, hub.AdminConfig()), "", false, c, c)
	if err != nil {
		t.Fatal(err)
	}
	return must(admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
}

// withDefault is the state that the server makes of it.
func (s state) withDefault() state {
	if _, ok := s.labels[setLabel]; !ok {
		s.labels = maps.Clone(s.labels)
		s.labels[setLabel] = "default"
	}
	return s
}

func (s state) of(c *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
	c = c.DeepCopy()
	c.Labels, c.Spec.HubAcceptsClient = s.labels, s.accepted
	return c
}

func is(c *clusterv1.ManagedCluster, s state) bool {
	return maps.Equal(c.Labels, s.labels) && c.Spec.HubAcceptsClient == s.accepted
}

// reaches says whether a method on a subresource can make a change at all.
func reaches(m method, subresource string, c change) bool {
	labels, accept := !maps.Equal(c.before.labels, c.after.labels), c.before.accepted != c.after.accepted
	if m.name == "apply" && subresource != "" && len(c.after.labels) < len(c.before.labels) {
		return false // what was applied by another path is not this one's to remove
	}
	return subresource == "" && (labels || accept) || subresource == "label" && labels || subresource == "accept" && accept
}

var subresources = []string{"", "status", "label", "accept"}

// attack tries a change of a cluster by every method on every subresource, in dry run and for real.
func attack(t *testing.T, attacker, name string, c change) {
	t.Helper()
	for _, route := range []struct {
		name   string
		client rest.Interface
	}{
		{"through the front", restClient(t, hub.UserConfig(attacker))},
		{"direct", restClient(t, hub.HubAPIServerUserConfig(1, attacker, "system:authenticated"))},
	} {
		for _, m := range methods() {
			for _, subresource := range subresources {
				for _, dryRun := range []bool{true, false} {
					what := fmt.Sprintf("%s, %s, /%s, dry run %t", route.name, m.name, subresource, dryRun)
					before := applyCluster(t, name, c.before)
					err := m.do(t.Context(), route.client, subresource, dryRun, before, c.after.of(before))
					if reaches(m, subresource, c) || err != nil && !apierrors.IsInvalid(err) {
						t.Run(what, func(t *testing.T) { wantForbidden(t, err) })
					}
					if reaches(m, subresource, c) && err != nil {
						contains(t, err.Error(), c.says...)
					}
					now := must(admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
					if !is(now, c.before) {
						t.Errorf("%s: the cluster is %v, accepted %t", what, now.Labels, now.Spec.HubAcceptsClient)
					}
				}
			}
		}
	}
	_ = admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name, metav1.DeleteOptions{})
}

// TestPermissions_NoPathGoesAround tries every change as a user who may do everything else.
func TestPermissions_NoPathGoesAround(t *testing.T) {
	attacker := user(t, everythingElse(unique("other"))...)
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) { attack(t, attacker, unique("victim"), c) })
	}
}

// TestPermissions_WhoMayLeaveCannotComeBack: the right to leave accepts by no path. That it cannot be born accepted
// either is in TestPermissions_CreateIsChecked.
func TestPermissions_WhoMayLeaveCannotComeBack(t *testing.T) {
	name := unique("leaver")
	agent := user(t, append(everythingElse(unique("other")), leaveRight(name)...)...)
	for _, c := range changes() {
		if c.after.accepted {
			attack(t, agent, name, c)
		}
	}
}

// TestPermissions_TheRightRuleAllows is the other half: each change succeeds by every path that can make it once the
// rule is there. Without it, the attacks could fail for any reason.
func TestPermissions_TheRightRuleAllows(t *testing.T) {
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			name := unique("cluster")
			allowed := user(t, append(everythingElse(unique("other")), c.allowedBy(name)...)...)
			client := restClient(t, hub.UserConfig(allowed))
			for _, m := range methods() {
				for _, subresource := range subresources {
					if !reaches(m, subresource, c) || c.before.accepted && m.name == "update" && subresource == "accept" {
						continue // for a PUT to /accept the front asks for the right to accept in the cluster's own group
					}
					what := fmt.Sprintf("%s, /%s", m.name, subresource)
					before := applyCluster(t, name, c.before)
					if err := m.do(t.Context(), client, subresource, true, before, c.after.of(before)); err != nil {
						t.Errorf("%s, dry run: %v", what, err)
					}
					now := must(admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
					if !is(now, c.before) {
						t.Errorf("%s: the dry run left %v, accepted %t", what, now.Labels, now.Spec.HubAcceptsClient)
					}
					if err := m.do(t.Context(), client, subresource, false, before, c.after.of(before)); err != nil {
						t.Errorf("%s: %v", what, err)
					}
					now = must(admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
					if !is(now, c.after.withDefault()) {
						t.Errorf("%s: the cluster is %v, accepted %t", what, now.Labels, now.Spec.HubAcceptsClient)
					}
				}
			}
			_ = admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name, metav1.DeleteOptions{})
		})
	}
}

// TestPermissions_CreateIsChecked tries to be born into a set, or accepted. Neither does a right to leave help.
func TestPermissions_CreateIsChecked(t *testing.T) {
	attacker := user(t, append(everythingElse(unique("other")), labelRight(setLabel+":default"), rule("update", "managedclusters/leave"))...)
	client := restClient(t, hub.UserConfig(attacker))
	for _, c := range changes() {
		if c.name == "leave a set" || c.name == "leave for default" || c.before.accepted {
			continue
		}
		name := unique("born")
		body := c.after.of(cluster(name, nil))
		post := func(dryRun bool, body *clusterv1.ManagedCluster) error {
			return client.Post().Resource("managedclusters").
				VersionedParams(&metav1.CreateOptions{DryRun: options(dryRun)}, scheme.ParameterCodec).Body(body).Do(t.Context()).Error()
		}
		generated := body.DeepCopy()
		generated.Name, generated.GenerateName = "", "born-"
		for what, err := range map[string]error{
			"create":                 post(false, body),
			"create, dry run":        post(true, body),
			"create, generated name": post(false, generated),
			"apply":                  patchWith(types.ApplyYAMLPatchType, applied)(t.Context(), client, "", false, body, body),
			"apply, dry run":         patchWith(types.ApplyYAMLPatchType, applied)(t.Context(), client, "", true, body, body),
			"apply to /label":        patchWith(types.ApplyYAMLPatchType, applied)(t.Context(), client, "label", false, body, body),
			"apply to /status":       patchWith(types.ApplyYAMLPatchType, applied)(t.Context(), client, "status", false, body, body),
			"put":                    request(client.Put(), name, "").Body(body).Do(t.Context()).Error(),
			"put to /accept":         request(client.Put(), name, "accept").Body(body).Do(t.Context()).Error(),
		} {
			switch {
			case strings.HasPrefix(what, "create") || strings.HasPrefix(what, "apply, ") || what == "apply":
				t.Run(c.name+": "+what, func(t *testing.T) { wantForbidden(t, err) })
			case err == nil:
				t.Errorf("%s: %s succeeded", c.name, what)
			}
		}
		if _, err := admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the cluster is there: %v", c.name, err)
		}
	}
}
