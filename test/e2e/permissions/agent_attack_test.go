// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestAgent_CannotWriteFieldsOfHub makes requests as an agent that has even more rights on its cluster than agents have.
func TestAgent_CannotWriteFieldsOfHub(t *testing.T) {
	name := harness.Unique("spoke")
	agent := registration.ClusterUser(name, "a")
	harness.Grant(t, harness.Hub(t), harness.Unique("agent"), agent, harness.Rule("*", "managedclusters", name), harness.Rule("*", "managedclusters/status", name),
		harness.Rule("*", "managedclusters/finalizers", name), harness.Rule("*", "managedclusters/label", name), harness.Rule("*", "managedclusters/accept", name))
	clusters := harness.Admin(t).ClusterV1().ManagedClusters()
	made := harness.ManagedCluster(name, nil)
	made.Annotations = map[string]string{registration.AnnotationAgentKey: "ab", "example.com/a": "b"}
	made.Finalizers = []string{registration.Finalizer}
	made.Spec.Taints = []clusterv1.Taint{{Key: registration.TaintUnreachable, Effect: clusterv1.TaintEffectNoSelect}}
	// The agent's field manager applies it, so that fields that its next apply omits are removed.
	if err := applyWhole(t.Context(), harness.RESTClient(t, harness.Hub(t).AdminConfig()), "", false, made, made); err != nil {
		t.Fatal(err)
	}
	// Only agents of accepted clusters may update their cluster.
	there := harness.Must(clusters.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)

	trusted := map[string]string{
		registration.AnnotationAgentKey: "cd", registration.AnnotationManagedClusterARN: "arn:aws:eks:eu-west-1:1:cluster/x",
		registration.AnnotationManagedClusterARNOfSeed: "arn:aws:eks:eu-west-1:1:cluster/x", registration.AnnotationRoleSuffix: "x",
		registration.AnnotationAutoAccepted: "x", registration.AnnotationSkipClockCheck: "true", "registration.clusterhub.dev/x": "y",
	}
	// RBAC cannot allow these users to patch: see TestAgents_SharedRoleReachesOwnClusterOnly.
	const ofTheGroup = "in the group of all agents"
	for what, c := range map[string]struct {
		change  func(*clusterv1.ManagedCluster)
		refused bool
	}{
		"an owner":          {func(c *clusterv1.ManagedCluster) { c.OwnerReferences = absent }, true},
		"a finalizer":       {func(c *clusterv1.ManagedCluster) { c.Finalizers = append(c.Finalizers, "example.com/stuck") }, true},
		"no finalizer":      {func(c *clusterv1.ManagedCluster) { c.Finalizers = nil }, true},
		"no taint":          {func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil }, true},
		"another taint":     {func(c *clusterv1.ManagedCluster) { c.Spec.Taints[0] = clusterv1.Taint{Key: "x", Effect: "NoSelect"} }, true},
		"all annotations":   {func(c *clusterv1.ManagedCluster) { maps.Copy(c.Annotations, trusted) }, false},
		"no annotations":    {func(c *clusterv1.ManagedCluster) { c.Annotations = map[string]string{"example.com/a": "b"} }, false},
		"the key of others": {func(c *clusterv1.ManagedCluster) { c.Annotations[registration.AnnotationAgentKey] = "ef" }, false},
	} {
		for route, config := range map[string]*rest.Config{
			ofTheGroup:          harness.Hub(t).UserConfig(agent, registration.ClusterGroup(name), registration.ManagedClustersGroup),
			"through the front": harness.Hub(t).UserConfig(agent, registration.ClusterGroup(name)),
			"direct":            harness.Hub(t).HubAPIServerUserConfig(1, agent, "system:authenticated"),
			"by AWS IAM":        harness.Hub(t).HubAPIServerUserConfig(1, agent, "system:authenticated", registration.AWSGroup(name)),
		} {
			client := harness.RESTClient(t, config)
			for _, m := range wholeMethods() {
				for _, subresource := range subresources {
					for _, dryRun := range []bool{true, false} {
						what := fmt.Sprintf("%s: %s, %s, /%s, dry run %t", what, route, m.name, subresource, dryRun)
						after := there.DeepCopy()
						c.change(after)
						err := m.do(t.Context(), client, subresource, dryRun, there, after)
						refused := c.refused || route == ofTheGroup && m.name != "update"
						switch {
						case refused && subresource == "" && !apierrors.IsForbidden(err):
							t.Errorf("%s: got %v", what, err)
						case !refused && subresource == "" && err != nil:
							t.Errorf("%s: got %v", what, err)
						}
						now := harness.Must(clusters.Get(t.Context(), name, metav1.GetOptions{}))(t)
						if !maps.Equal(now.Annotations, there.Annotations) || !equality.Semantic.DeepEqual(now.Finalizers, there.Finalizers) ||
							len(now.OwnerReferences) > 0 || !equality.Semantic.DeepEqual(now.Spec, there.Spec) {
							t.Fatalf("%s: it is %+v, %+v", what, now.ObjectMeta, now.Spec)
						}
						there = now
					}
				}
			}
		}
	}
	// The request changes fields that the agent owns together with fields that it does not own.
	after := there.DeepCopy()
	after.Annotations["agent.open-cluster-management.io/x"], after.Annotations[registration.AnnotationAgentKey] = "y", "ef"
	after.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://spoke.example.com"}}
	config, heard := harness.Warned(harness.Hub(t).UserConfig(agent, registration.ClusterGroup(name), registration.ManagedClustersGroup))
	now := harness.Must(harness.Ours(t, config).ClusterV1().ManagedClusters().Update(t.Context(), after, metav1.UpdateOptions{}))(t)
	if now.Annotations["agent.open-cluster-management.io/x"] != "y" || now.Annotations[registration.AnnotationAgentKey] != "ab" ||
		len(now.Spec.ManagedClusterClientConfigs) != 1 || !heard.Has(registration.AnnotationAgentKey, "were not changed") {
		t.Errorf("it is %+v", now)
	}
	now.Finalizers = nil
	harness.Must(clusters.Update(t.Context(), now, metav1.UpdateOptions{}))(t)
	_ = clusters.Delete(t.Context(), name, metav1.DeleteOptions{})
}

// wholeMethods returns ways to change all fields of a cluster that an agent may try to change.
func wholeMethods() []method {
	return []method{
		{"update", update},
		{"json patch", harness.PatchWith(types.JSONPatchType, func(_, after *clusterv1.ManagedCluster) ([]byte, error) {
			patch := []map[string]any{{"op": "add", "path": "/spec/taints", "value": after.Spec.Taints}}
			for field, value := range ownMetadata(after) {
				patch = append(patch, map[string]any{"op": "add", "path": "/metadata/" + field, "value": value})
			}
			return json.Marshal(patch)
		})},
		{"merge patch", harness.PatchWith(types.MergePatchType, mergePatch)},
		{"strategic merge patch", harness.PatchWith(types.StrategicMergePatchType, mergePatch)},
		{"apply", applyWhole},
	}
}

func ownMetadata(c *clusterv1.ManagedCluster) map[string]any {
	return map[string]any{"annotations": c.Annotations, "finalizers": c.Finalizers, "ownerReferences": c.OwnerReferences}
}

var applyWhole = harness.PatchWith(types.ApplyYAMLPatchType, func(_, after *clusterv1.ManagedCluster) ([]byte, error) {
	metadata := ownMetadata(after)
	metadata["name"] = after.Name
	return json.Marshal(map[string]any{"apiVersion": clusterv1.SchemeGroupVersion.String(), "kind": "ManagedCluster",
		"metadata": metadata, "spec": map[string]any{"taints": after.Spec.Taints}})
})
