// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/hubtree"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/rollout"
)

// addUpgrades adds the state of the works of kubectl hub agent upgrade. Outdated agents without such a work are marked as outdated.
func (h *hub) addUpgrades(ctx context.Context, uses map[string]*hubtree.ClusterUse, hubVersion string) error {
	for _, u := range uses {
		if registration.AgentOutdated(hubVersion, u.Agent) {
			u.Upgrade = "outdated"
		}
	}
	return eachPage(pageOf, func(options metav1.ListOptions) (string, error) {
		options.LabelSelector = registration.LabelAgentUpgrade + "=true"
		sets, err := h.clusters.WorkV1alpha1().ManifestWorkReplicaSets(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range sets.Items {
			if err := h.addUpgrade(ctx, uses, &sets.Items[i]); err != nil {
				return "", err
			}
		}
		return sets.Continue, nil
	})
}

func (h *hub) addUpgrade(ctx context.Context, uses map[string]*hubtree.ClusterUse, set *workv1alpha1.ManifestWorkReplicaSet) error {
	want := upgradeVersion(&set.Spec.ManifestWorkTemplate)
	return eachPage(pageOf, func(options metav1.ListOptions) (string, error) {
		options.LabelSelector = work.ReplicaSetLabel + "=" + set.Namespace + "." + set.Name
		works, err := h.clusters.WorkV1().ManifestWorks(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range works.Items {
			if u := uses[works.Items[i].Namespace]; u != nil {
				u.Upgrade = upgradeState(&works.Items[i], want)
			}
		}
		return works.Continue, nil
	})
}

// upgradeState returns the progress of an agent's upgrade to a version.
func upgradeState(w *workv1.ManifestWork, want string) string {
	if have := upgradeVersion(&w.Spec); have != want {
		return want + ": waits for its turn in the rollout"
	}
	switch seen := rollout.Observe(rollout.Status{Generation: w.Generation, Conditions: w.Status.Conditions}, true); seen.Progress {
	case rollout.Succeeds:
		return want + ": done"
	case rollout.Fails:
		return want + ": failed: " + seen.Waits
	default:
		return want + ": upgrading: " + seen.Waits
	}
}

// upgradeVersion returns the tag or the digest of the image that a work sets, of an agent's Deployment or Klusterlet.
func upgradeVersion(spec *workv1.ManifestWorkSpec) string {
	manifest := &unstructured.Unstructured{}
	if len(spec.Workload.Manifests) == 0 || manifest.UnmarshalJSON(spec.Workload.Manifests[0].Raw) != nil {
		return unknown
	}
	image := registration.ImageOfAgent(manifest)
	if image == "" {
		image, _, _ = unstructured.NestedString(manifest.Object, "spec", "workImagePullSpec")
	}
	_, version, err := registration.SplitImage(image)
	if err != nil || version == "" {
		return unknown
	}
	return version
}
