// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: embedded}\nspec: {template: {spec: {containers: [{name: web, image: web}]}}}\n"

// packed is an archive with the manifest.
func packed(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	entries := tar.NewWriter(zipped)
	err := entries.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "web.yaml", Mode: 0o644, Size: int64(len(manifest))})
	if err == nil {
		_, err = entries.Write([]byte(manifest))
	}
	if err := errors.Join(err, entries.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// agent is the client of the agent of a cluster.
func agent(t *testing.T, cluster string) versioned.Interface {
	t.Helper()
	group := "system:open-cluster-management:" + cluster
	return harness.Ours(t, harness.Hub(t).UserConfig(group+":agent", group, "system:open-cluster-management:managed-clusters", "system:authenticated"))
}

// deployment is a policy of a namespace, for one node.
type deployment struct {
	*testing.T
	admin           versioned.Interface
	namespace, node string
}

// deploy accepts a cluster, has its agent tell the facts, and writes service and policy.
func deploy(t *testing.T, to string) *deployment {
	t.Helper()
	d := &deployment{T: t, admin: harness.Admin(t), namespace: harness.NewNamespace(t)}
	set, names := harness.NewFleet(t, 1)
	d.node = names[0]
	harness.Eventually(t, "the cluster is accepted", func(ctx context.Context) (bool, error) {
		c, err := d.admin.ClusterV1().ManagedClusters().Get(ctx, d.node, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		c.Spec.HubAcceptsClient = true
		_, err = d.admin.ClusterV1().ManagedClusters().Update(ctx, c, metav1.UpdateOptions{})
		return err == nil, err
	})
	nodes := agent(t, d.node).EdgeV1alpha1().EdgeNodes()
	harness.Eventually(t, "the agent makes its node", func(ctx context.Context) (bool, error) {
		_, err := nodes.Create(ctx, &edgev1alpha1.EdgeNode{ObjectMeta: harness.Named(d.node)}, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), err
	})
	harness.Eventually(t, "the agent tells the facts", func(ctx context.Context) (bool, error) {
		n, err := nodes.Get(ctx, d.node, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		n.Status = edgev1alpha1.EdgeNodeStatus{Arch: "amd64", Namespace: "agent", NamespaceScoped: new(bool)}
		_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
		return err == nil, err
	})
	edge := d.admin.EdgeV1alpha1()
	harness.Must(d.admin.ClusterV1beta2().ManagedClusterSetBindings(d.namespace).Create(t.Context(), harness.Binding(d.namespace, set, set), metav1.CreateOptions{}))(t)
	service := &edgev1alpha1.EdgeService{ObjectMeta: harness.Named("web--1.0.0--amd64"), Spec: edgev1alpha1.EdgeServiceSpec{URL: "web", Version: "1.0.0", Arch: "amd64",
		ClusterDeployment: &edgev1alpha1.ClusterDeployment{OperatorYamlArchive: packed(t)}}}
	harness.Must(edge.EdgeServices(d.namespace).Create(t.Context(), service, metav1.CreateOptions{}))(t)
	policy := &edgev1alpha1.DeploymentPolicy{ObjectMeta: harness.Named("web")}
	policy.Spec.Service = edgev1alpha1.PolicyService{Name: "web", ClusterNamespace: to, ServiceVersions: []edgev1alpha1.ServiceVersion{{Version: "1.0.0"}}}
	harness.Must(edge.DeploymentPolicies(d.namespace).Create(t.Context(), policy, metav1.CreateOptions{}))(t)
	return d
}

// placement waits until the one placement satisfies.
func (d *deployment) placement(what string, ok func(*edgev1alpha1.EdgePlacement) bool) (found *edgev1alpha1.EdgePlacement) {
	d.Helper()
	harness.Eventually(d.T, what, func(ctx context.Context) (bool, error) {
		list, err := d.admin.EdgeV1alpha1().EdgePlacements(d.namespace).List(ctx, metav1.ListOptions{LabelSelector: edgev1alpha1.NodeLabel + "=" + d.node})
		if err != nil {
			return false, err
		}
		if len(list.Items) != 1 {
			return harness.Holds(false, fmt.Sprintf("%d placements", len(list.Items)))
		}
		found = &list.Items[0]
		return harness.Holds(ok(found), fmt.Sprintf("%+v", found.Status))
	})
	return found
}

// A policy becomes a placement, that a work, and what the agent says of it the state; an edit of the namespace changes the work, and all goes
// with the policy.
func TestDeployment_FromThePolicyToTheClusterAndBack(t *testing.T) {
	d := deploy(t, "blue")
	p := d.placement("the work is made", func(p *edgev1alpha1.EdgePlacement) bool { return p.Status.Work != "" })
	works := d.admin.WorkV1().ManifestWorks(d.node)
	w := harness.Must(works.Get(t.Context(), p.Status.Work, metav1.GetOptions{}))(t)
	if len(w.Spec.Workload.Manifests) != 2 || strings.Contains(string(w.Spec.Workload.Manifests[1].Raw), "embedded") ||
		!strings.Contains(string(w.Spec.Workload.Manifests[1].Raw), `"namespace":"blue"`) {
		t.Errorf("the work has %s", w.Spec.Workload.Manifests)
	}
	var conditions []string
	for kind, status := range map[string]string{workv1.WorkApplied: "True", workv1.WorkAvailable: "True", workv1.WorkProgressing: "False", workv1.WorkDegraded: "False"} {
		conditions = append(conditions, fmt.Sprintf(`{"type":%q,"status":%q,"reason":"Any","message":"","observedGeneration":%d,"lastTransitionTime":"2026-01-01T00:00:00Z"}`, kind, status, w.Generation))
	}
	patch := fmt.Sprintf(`{"status":{"conditions":[%s]}}`, strings.Join(conditions, ","))
	harness.Must(agent(t, d.node).WorkV1().ManifestWorks(d.node).Patch(t.Context(), w.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"))(t)
	d.placement("the cluster says that it runs", func(p *edgev1alpha1.EdgePlacement) bool { return p.Status.State == edgev1alpha1.PlacementRunning })
	policies := d.admin.EdgeV1alpha1().DeploymentPolicies(d.namespace)
	harness.Eventually(t, "the policy counts it", func(ctx context.Context) (bool, error) {
		p, err := policies.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return harness.Holds(p.Status.Nodes == edgev1alpha1.NodeCounts{Reached: 1, Selected: 1, Placed: 1, Running: 1}, fmt.Sprintf("%+v", p.Status))
	})

	harness.Must(policies.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"service":{"clusterNamespace":"green"}}}`), metav1.PatchOptions{}))(t)
	p = d.placement("it is delivered anew", func(p *edgev1alpha1.EdgePlacement) bool {
		return p.Spec.Services[0].TargetNamespace == "green" && p.Status.ObservedGeneration == p.Generation && p.Status.State == edgev1alpha1.PlacementDelivering
	})
	again := harness.Must(works.Get(t.Context(), p.Status.Work, metav1.GetOptions{}))(t)
	if again.UID != w.UID || again.Generation != w.Generation+1 || !strings.Contains(string(again.Spec.Workload.Manifests[1].Raw), `"namespace":"green"`) {
		t.Errorf("the work is %+v", again.Spec)
	}

	if err := policies.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "all is gone", func(ctx context.Context) (bool, error) {
		_, noWork := works.Get(ctx, w.Name, metav1.GetOptions{})
		list, err := d.admin.EdgeV1alpha1().EdgePlacements(d.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return harness.Holds(len(list.Items) == 0 && apierrors.IsNotFound(noWork), fmt.Sprintf("%d placements, %v", len(list.Items), noWork))
	})
}
