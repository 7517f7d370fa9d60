// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/rollout"
)

// digestAnnotation is on works in the cache only, in place of the spec.
const digestAnnotation = "work.clusterhub.dev/digest-in-cache"

// byRules is the suffix of the digest of a spec with a rule for the condition Progressing.
const byRules = " Progressing"

var _ cache.TransformFunc = ForCache

// ForCache reduces works, revisions and edge services to what the controllers need: the manifests of 10,000 clusters would fill the memory. The
// spec must not be written from the cache: see replaceSpec.
func ForCache(in any) (any, error) {
	switch obj := in.(type) {
	case *workv1.ManifestWork:
		slim(obj)
	case *workv1alpha1.ManifestWorkReplicaSetRevision:
		slimRevision(obj)
	case *edgev1alpha1.EdgeService:
		// Archives are fetched when works are made from them.
		model.WithoutArchive(obj)
	}
	return command.ForCache(in)
}

func slim(w *workv1.ManifestWork) {
	if len(w.Spec.Workload.Manifests) == 0 && w.Annotations[digestAnnotation] != "" {
		return // has been done
	}
	delete(w.Annotations, digestAnnotation)
	if IsOfReplicaSet(w.Labels) || w.Labels[edgev1alpha1.PlacementHashLabel] != "" {
		if w.Annotations == nil {
			w.Annotations = map[string]string{}
		}
		w.Annotations[digestAnnotation] = digest(&w.Spec)
	}
	w.Spec = workv1.ManifestWorkSpec{DeleteOption: w.Spec.DeleteOption}
	w.Status.ResourceStatus.Manifests = slimManifests(w.Status.ResourceStatus.Manifests, w.Labels[edgev1alpha1.PlacementHashLabel] != "")
}

// slimManifests drops all but the feedback values of well-known kinds and, if failures is set, the conditions of manifests that have failed.
func slimManifests(all []workv1.ManifestCondition, failures bool) (slim []workv1.ManifestCondition) {
	for _, m := range all {
		var conditions []metav1.Condition
		for _, c := range m.Conditions {
			if failures && (c.Type == workv1.ManifestApplied && c.Status == metav1.ConditionFalse ||
				c.Type == workv1.ManifestDegraded && c.Status == metav1.ConditionTrue) {
				conditions = append(conditions, c)
			}
		}
		values := slices.DeleteFunc(m.StatusFeedbacks.Values, func(v workv1.FeedbackValue) bool {
			return !rollout.WellKnown(m.ResourceMeta.Group, m.ResourceMeta.Kind, v.Name)
		})
		if len(values)+len(conditions) > 0 {
			slim = append(slim, workv1.ManifestCondition{
				ResourceMeta: m.ResourceMeta, Conditions: conditions, StatusFeedbacks: workv1.StatusFeedbackResult{Values: slices.Clone(values)},
			})
		}
	}
	return slim
}

// digest returns a hash of a spec, with a suffix if it has a rule for the condition Progressing.
func digest(spec *workv1.ManifestWorkSpec) string {
	text, err := json.Marshal(spec)
	if err != nil {
		return "" // not a spec that a server has sent
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	for _, c := range spec.ManifestConfigs {
		if slices.ContainsFunc(c.ConditionRules, func(r workv1.ConditionRule) bool { return r.Condition == workv1.WorkProgressing }) {
			return digest + byRules
		}
	}
	return digest
}

// observe returns the observation of a work of the cache.
func observe(w *workv1.ManifestWork) rollout.Observation {
	s := rollout.WorkStatus{Generation: w.Generation, Conditions: w.Status.Conditions}
	for _, m := range w.Status.ResourceStatus.Manifests {
		known := rollout.ManifestStatus{
			Group: m.ResourceMeta.Group, Kind: m.ResourceMeta.Kind, Namespace: m.ResourceMeta.Namespace, Name: m.ResourceMeta.Name,
			Numbers: map[string]int64{}, Texts: map[string]string{},
		}
		for _, v := range m.StatusFeedbacks.Values {
			if v.Value.Integer != nil {
				known.Numbers[v.Name] = *v.Value.Integer
			}
			if v.Value.String != nil {
				known.Texts[v.Name] = *v.Value.String
			}
		}
		s.Manifests = append(s.Manifests, known)
	}
	return rollout.Observe(s, strings.HasSuffix(w.Annotations[digestAnnotation], byRules))
}

// Digest returns a hash of the spec of a work.
func Digest(spec *workv1.ManifestWorkSpec) string { return digest(spec) }

// DigestInCache returns the digest of the spec that ForCache has removed from a work. It is empty for a work that no controller of the hub has
// written.
func DigestInCache(w *workv1.ManifestWork) string { return w.Annotations[digestAnnotation] }

// WithoutDigest removes the annotation that ForCache has added: it must not be written to the hub.
func WithoutDigest(annotations map[string]string) { delete(annotations, digestAnnotation) }
