// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

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
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// method is a way to change an existing cluster into a different one.
type method struct {
	name string
	do   func(ctx context.Context, client rest.Interface, subresource string, dryRun bool, before, after *clusterv1.ManagedCluster) error
}

func methods() []method {
	return []method{
		{"update", update},
		{"json patch", harness.PatchWith(types.JSONPatchType, func(before, after *clusterv1.ManagedCluster) ([]byte, error) {
			return json.Marshal([]map[string]any{
				{"op": "add", "path": "/metadata/labels", "value": after.Labels},
				{"op": "add", "path": "/spec/hubAcceptsClient", "value": after.Spec.HubAcceptsClient},
			})
		})},
		{"merge patch", harness.PatchWith(types.MergePatchType, mergePatch)},
		{"strategic merge patch", harness.PatchWith(types.StrategicMergePatchType, mergePatch)},
		{"apply", harness.PatchWith(types.ApplyYAMLPatchType, harness.Applied)},
	}
}

func update(ctx context.Context, client rest.Interface, subresource string, dryRun bool, before, after *clusterv1.ManagedCluster) error {
	body := after.DeepCopy()
	body.ResourceVersion = before.ResourceVersion
	return harness.OnManagedCluster(client.Put(), before.Name, subresource).
		VersionedParams(&metav1.UpdateOptions{DryRun: harness.DryRun(dryRun)}, scheme.ParameterCodec).Body(body).Do(ctx).Error()
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

// change is the change that an attacker attempts, and the rights that allow it; the attacker has all other rights on clusters.
type change struct {
	name          string
	before, after state
	// allowedBy returns the required rights on the cluster of that name.
	allowedBy func(name string) []rbacv1.PolicyRule
	// says is contained in the error.
	says []string
}

type state struct {
	labels   map[string]string
	accepted bool
}

func rules(all ...rbacv1.PolicyRule) func(string) []rbacv1.PolicyRule {
	return func(string) []rbacv1.PolicyRule { return all }
}

func changes() []change {
	a, b := harness.SetLabel+":a", harness.SetLabel+":b"
	in := func(set string) map[string]string { return map[string]string{harness.SetLabel: set} }
	region := harness.InfoPrefix + "region"
	return []change{
		{"gain a set", state{in("default"), false}, state{in("a"), false},
			rules(harness.LabelRight(a)), []string{a}},
		{"leave a set", state{map[string]string{harness.SetLabel: "default", region: "x"}, false}, state{in("default"), false},
			rules(harness.LabelRight(region + ":x")), []string{region + ":x"}},
		// A cluster in no set is in default, which requires no right.
		{"leave for default", state{map[string]string{harness.SetLabel: "a", "own": "1"}, false}, state{map[string]string{"own": "1"}, false},
			rules(harness.LabelRight(a)), []string{a}},
		{"swap two sets", state{in("a"), false}, state{in("b"), false},
			rules(harness.LabelRight(a, b)), []string{a, b}},
		{"say something of the cluster", state{in("default"), false}, state{map[string]string{harness.SetLabel: "default", region: "apac"}, false},
			rules(harness.LabelRight(region + ":*")), []string{region + ":apac"}},
		{"accept", state{in("default"), false}, state{in("default"), true},
			rules(harness.Rule("update", "managedclusters/accept")), []string{"managedclusters/accept"}},
		{"un-accept", state{in("default"), true}, state{in("default"), false},
			rules(harness.RuleIn(harness.RegisterGroup, "update", "managedclusters/accept")), []string{"managedclusters/accept"}},
		{"leave", state{in("default"), true}, state{in("default"), false}, leaveRight, []string{"managedclusters/accept"}},
	}
}

// leaveRight returns the right of a cluster's own agent.
func leaveRight(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{harness.Rule("update", "managedclusters/leave", name)}
}

// everythingElse returns all rights on clusters except those that the table of permissions requires, and those for other clusters and labels than the
// attacked ones.
func everythingElse(other string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		harness.Rule("get,list,watch,create,update,patch", "managedclusters"),
		harness.Rule("get,update,patch", "managedclusters/status"),
		harness.Rule("get,update,patch", "managedclusters/label"),
		harness.Rule("get,patch,create", "managedclusters/accept"),
		harness.Rule("update", "managedclusters/accept", other),
		harness.Rule("update", "managedclusters/leave", other),
		harness.RuleIn(harness.RegisterGroup, "update", "managedclusters/accept", other),
		harness.LabelRight(harness.SetLabel+":other", harness.SetLabel+":default", harness.SetLabel, "a", "b", "*:a", harness.SetLabel+":", harness.InfoPrefix+"region:other", harness.InfoPrefix+"*"),
		harness.Rule("create", "managedclustersets/join", "other"),
	}
}

// applyCluster creates a cluster in a state.
func applyCluster(t *testing.T, name string, s state) *clusterv1.ManagedCluster {
	t.Helper()
	_ = harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name, metav1.DeleteOptions{})
	c := harness.ManagedCluster(name, s.labels)
	c.Spec.HubAcceptsClient = s.accepted
	err := harness.PatchWith(types.ApplyYAMLPatchType, harness.Applied)(t.Context(), harness.RESTClient(t, harness.Hub(t).AdminConfig()), "", false, c, c)
	if err != nil {
		t.Fatal(err)
	}
	return harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
}

// withDefault returns the state after the server sets defaults.
func (s state) withDefault() state {
	if _, ok := s.labels[harness.SetLabel]; !ok {
		s.labels = maps.Clone(s.labels)
		s.labels[harness.SetLabel] = "default"
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

// reaches reports whether a method on a subresource can make a change.
func reaches(m method, subresource string, c change) bool {
	labels, accept := !maps.Equal(c.before.labels, c.after.labels), c.before.accepted != c.after.accepted
	if m.name == "apply" && subresource != "" && len(c.after.labels) < len(c.before.labels) {
		return false // fields that a different path applied are not removed
	}
	return subresource == "" && (labels || accept) || subresource == "label" && labels || subresource == "accept" && accept
}

var subresources = []string{"", "status", "label", "accept"}

// attack tries to change a cluster by every method on every subresource, in dry run and for real.
func attack(t *testing.T, attacker, name string, c change) {
	t.Helper()
	for _, route := range []struct {
		name   string
		client rest.Interface
	}{
		{"through the front", harness.RESTClient(t, harness.Hub(t).UserConfig(attacker))},
		{"direct", harness.RESTClient(t, harness.Hub(t).HubAPIServerUserConfig(1, attacker, "system:authenticated"))},
	} {
		for _, m := range methods() {
			for _, subresource := range subresources {
				for _, dryRun := range []bool{true, false} {
					what := fmt.Sprintf("%s, %s, /%s, dry run %t", route.name, m.name, subresource, dryRun)
					before := applyCluster(t, name, c.before)
					err := m.do(t.Context(), route.client, subresource, dryRun, before, c.after.of(before))
					if reaches(m, subresource, c) || err != nil && !apierrors.IsInvalid(err) {
						t.Run(what, func(t *testing.T) { harness.WantForbidden(t, err) })
					}
					if reaches(m, subresource, c) && err != nil {
						harness.Contains(t, err.Error(), c.says...)
					}
					now := harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
					if !is(now, c.before) {
						t.Errorf("%s: the cluster is %v, accepted %t", what, now.Labels, now.Spec.HubAcceptsClient)
					}
				}
			}
		}
	}
	_ = harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name, metav1.DeleteOptions{})
}

// TestPermissions_CannotBeBypassed tries every change as a user who has all other rights.
func TestPermissions_CannotBeBypassed(t *testing.T) {
	attacker := harness.User(t, everythingElse(harness.Unique("other"))...)
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) { attack(t, attacker, harness.Unique("victim"), c) })
	}
}

// TestPermissions_LeavePermissionDoesNotAllowAccept verifies that the right to leave does not permit acceptance by any path. TestPermissions_CreateIsChecked
// verifies that it does not permit to create an accepted cluster.
func TestPermissions_LeavePermissionDoesNotAllowAccept(t *testing.T) {
	name := harness.Unique("leaver")
	agent := harness.User(t, append(everythingElse(harness.Unique("other")), leaveRight(name)...)...)
	for _, c := range changes() {
		if c.after.accepted {
			attack(t, agent, name, c)
		}
	}
}

// TestPermissions_MatchingRuleAllows verifies that each change succeeds by every possible path once the rule exists. Otherwise, the attacks could
// fail for any reason.
func TestPermissions_MatchingRuleAllows(t *testing.T) {
	t.Parallel()
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			name := harness.Unique("cluster")
			allowed := harness.User(t, append(everythingElse(harness.Unique("other")), c.allowedBy(name)...)...)
			client := harness.RESTClient(t, harness.Hub(t).UserConfig(allowed))
			for _, m := range methods() {
				for _, subresource := range subresources {
					if !reaches(m, subresource, c) || c.before.accepted && m.name == "update" && subresource == "accept" {
						continue // a PUT to /accept requires the right to accept in the cluster's API group on the front
					}
					what := fmt.Sprintf("%s, /%s", m.name, subresource)
					before := applyCluster(t, name, c.before)
					if err := m.do(t.Context(), client, subresource, true, before, c.after.of(before)); err != nil {
						t.Errorf("%s, dry run: %v", what, err)
					}
					now := harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
					if !is(now, c.before) {
						t.Errorf("%s: the dry run left %v, accepted %t", what, now.Labels, now.Spec.HubAcceptsClient)
					}
					if err := m.do(t.Context(), client, subresource, false, before, c.after.of(before)); err != nil {
						t.Errorf("%s: %v", what, err)
					}
					now = harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}))(t)
					if !is(now, c.after.withDefault()) {
						t.Errorf("%s: the cluster is %v, accepted %t", what, now.Labels, now.Spec.HubAcceptsClient)
					}
				}
			}
			_ = harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), name, metav1.DeleteOptions{})
		})
	}
}

// TestPermissions_CreateIsChecked tries to create clusters that are in a set or accepted. The right to leave does not permit this either.
func TestPermissions_CreateIsChecked(t *testing.T) {
	attacker := harness.User(t, append(everythingElse(harness.Unique("other")), harness.LabelRight(harness.SetLabel+":default"), harness.Rule("update", "managedclusters/leave"))...)
	client := harness.RESTClient(t, harness.Hub(t).UserConfig(attacker))
	for _, c := range changes() {
		if c.name == "leave a set" || c.name == "leave for default" || c.before.accepted {
			continue
		}
		name := harness.Unique("born")
		body := c.after.of(harness.ManagedCluster(name, nil))
		post := func(dryRun bool, body *clusterv1.ManagedCluster) error {
			return client.Post().Resource("managedclusters").
				VersionedParams(&metav1.CreateOptions{DryRun: harness.DryRun(dryRun)}, scheme.ParameterCodec).Body(body).Do(t.Context()).Error()
		}
		generated := body.DeepCopy()
		generated.Name, generated.GenerateName = "", "born-"
		for what, err := range map[string]error{
			"create":                 post(false, body),
			"create, dry run":        post(true, body),
			"create, generated name": post(false, generated),
			"apply":                  harness.PatchWith(types.ApplyYAMLPatchType, harness.Applied)(t.Context(), client, "", false, body, body),
			"apply, dry run":         harness.PatchWith(types.ApplyYAMLPatchType, harness.Applied)(t.Context(), client, "", true, body, body),
			"apply to /label":        harness.PatchWith(types.ApplyYAMLPatchType, harness.Applied)(t.Context(), client, "label", false, body, body),
			"apply to /status":       harness.PatchWith(types.ApplyYAMLPatchType, harness.Applied)(t.Context(), client, "status", false, body, body),
			"put":                    harness.OnManagedCluster(client.Put(), name, "").Body(body).Do(t.Context()).Error(),
			"put to /accept":         harness.OnManagedCluster(client.Put(), name, "accept").Body(body).Do(t.Context()).Error(),
		} {
			switch {
			case strings.HasPrefix(what, "create") || strings.HasPrefix(what, "apply, ") || what == "apply":
				t.Run(c.name+": "+what, func(t *testing.T) { harness.WantForbidden(t, err) })
			case err == nil:
				t.Errorf("%s: %s succeeded", c.name, what)
			}
		}
		if _, err := harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the cluster is there: %v", c.name, err)
		}
	}
}
