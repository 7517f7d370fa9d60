// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/inspect/tree"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/rollout"
)

// addUpgrades adds the state of the works of kubectl hub agent upgrade. Outdated agents without such a work are marked as outdated.
func addUpgrades(ctx context.Context, h *kit.HubClient, uses map[string]*tree.ClusterUse, hubVersion string) error {
	for _, u := range uses {
		if registration.AgentOutdated(hubVersion, u.Agent) {
			u.Upgrade, u.UpgradeState = "outdated", tree.UpgradeOutdated
		}
	}
	sets, options := h.Clusters.WorkV1alpha1().ManifestWorkReplicaSets(metav1.NamespaceAll), metav1.ListOptions{LabelSelector: registration.LabelAgentUpgrade + "=true"}
	return paging.EachItem(ctx, sets.List, options, func(set *workv1alpha1.ManifestWorkReplicaSet) error { return addUpgrade(ctx, h, uses, set) })
}

func addUpgrade(ctx context.Context, h *kit.HubClient, uses map[string]*tree.ClusterUse, set *workv1alpha1.ManifestWorkReplicaSet) error {
	want := upgradeVersion(&set.Spec.ManifestWorkTemplate)
	return paging.EachItem(ctx, h.Clusters.WorkV1().ManifestWorks(metav1.NamespaceAll).List, kit.WorksOfReplicaSet(set), func(w *workv1.ManifestWork) error {
		if u := uses[w.Namespace]; u != nil {
			u.Upgrade, u.UpgradeState = upgradeState(w, want)
		}
		return nil
	})
}

// upgradeState returns the progress of an agent's upgrade to a version.
func upgradeState(w *workv1.ManifestWork, want string) (string, tree.UpgradeState) {
	if have := upgradeVersion(&w.Spec); have != want {
		return want + ": waits for its turn in the rollout", tree.UpgradeWaiting
	}
	switch seen := rollout.Observe(rollout.WorkStatus{Generation: w.Generation, Conditions: w.Status.Conditions}, true); seen.Progress {
	case rollout.Succeeds:
		return want + ": done", tree.UpgradeDone
	case rollout.Fails:
		return want + ": failed: " + seen.Waits, tree.UpgradeFailed
	default:
		return want + ": upgrading: " + seen.Waits, tree.UpgradeRunning
	}
}

// upgradeVersion returns the tag or the digest of the image that a work sets, of an agent's Deployment or Klusterlet.
func upgradeVersion(spec *workv1.ManifestWorkSpec) string {
	manifest := &unstructured.Unstructured{}
	if len(spec.Workload.Manifests) == 0 || manifest.UnmarshalJSON(spec.Workload.Manifests[0].Raw) != nil {
		return kit.Unknown
	}
	image := registration.ImageOfAgent(manifest)
	if image == "" {
		image, _, _ = unstructured.NestedString(manifest.Object, "spec", "workImagePullSpec")
	}
	_, version, err := registration.SplitImage(image)
	if err != nil || version == "" {
		return kit.Unknown
	}
	return version
}
