// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/apis/work/validation"
)

func replicaSet() *work.ManifestWorkReplicaSet {
	return &work.ManifestWorkReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "1"},
		Spec: work.ManifestWorkReplicaSetSpec{
			ManifestWorkTemplate:  workOf(configMap("default", "a")).Spec,
			CascadeDeletionPolicy: work.Background,
			PlacementRefs: []work.LocalPlacementReference{{Name: "all", RolloutStrategy: cluster.RolloutStrategy{
				Type: cluster.Progressive, Progressive: &cluster.RolloutProgressive{RolloutConfig: cluster.RolloutConfig{ProgressDeadline: "None"}},
			}}},
		},
	}
}

func TestValidateManifestWorkReplicaSet(t *testing.T) {
	progressive := func(change func(*cluster.RolloutProgressive)) func(*work.ManifestWorkReplicaSet) {
		return func(s *work.ManifestWorkReplicaSet) { change(s.Spec.PlacementRefs[0].RolloutStrategy.Progressive) }
	}
	const at = "spec.placementRefs[0].rolloutStrategy"
	for name, c := range map[string]struct {
		change func(*work.ManifestWorkReplicaSet)
		wants  []string
	}{
		"nothing":          {func(*work.ManifestWorkReplicaSet) {}, nil},
		"the longest name": {func(s *work.ManifestWorkReplicaSet) { s.Name = strings.Repeat("a", 58) }, nil},
		"a longer name":    {func(s *work.ManifestWorkReplicaSet) { s.Name = strings.Repeat("a", 59) }, []string{"metadata.name: at most 58 characters in the namespace shop"}},
		"no placement":     {func(s *work.ManifestWorkReplicaSet) { s.Spec.PlacementRefs = nil }, []string{"spec.placementRefs: at least 1 item"}},
		"a placement twice": {func(s *work.ManifestWorkReplicaSet) {
			s.Spec.PlacementRefs = append(s.Spec.PlacementRefs, s.Spec.PlacementRefs[0])
		}, []string{"spec.placementRefs[1].name: Duplicate"}},
		"a policy":   {func(s *work.ManifestWorkReplicaSet) { s.Spec.CascadeDeletionPolicy = "Orphan" }, []string{"spec.cascadeDeletionPolicy: Background"}},
		"a template": {func(s *work.ManifestWorkReplicaSet) { s.Spec.ManifestWorkTemplate.DeleteOption = &work.DeleteOption{} }, []string{"spec.manifestWorkTemplate.deleteOption.propagationPolicy: Foreground"}},
		"a manifest": {func(s *work.ManifestWorkReplicaSet) {
			s.Spec.ManifestWorkTemplate.Workload.Manifests = manifests("null")
		},
			[]string{"spec.manifestWorkTemplate.workload.manifests[0]: must be an object"}},
		"a rollout":   {func(s *work.ManifestWorkReplicaSet) { s.Spec.PlacementRefs[0].RolloutStrategy.Type = "Canary" }, []string{at + ".type: Progressive"}},
		"a deadline":  {progressive(func(p *cluster.RolloutProgressive) { p.ProgressDeadline = "1h30m" }), nil},
		"no deadline": {progressive(func(p *cluster.RolloutProgressive) { p.ProgressDeadline = "soon" }), []string{at + ".progressive.progressDeadline: must be None"}},
		"upstream's pattern, which takes anything after a number": {progressive(func(p *cluster.RolloutProgressive) { p.ProgressDeadline = "1h or so" }),
			[]string{at + ".progressive.progressDeadline: must be None"}},
		"a time that is no time": {progressive(func(p *cluster.RolloutProgressive) { p.ProgressDeadline = "9999999999999h" }), []string{at + ".progressive.progressDeadline: must be None"}},
		"a soak before it began": {progressive(func(p *cluster.RolloutProgressive) { p.MinSuccessTime.Duration = -time.Second }), []string{at + ".progressive.minSuccessTime: 0 or more"}},
		"failures in percent":    {progressive(func(p *cluster.RolloutProgressive) { p.MaxFailures = intstr.FromString("100%") }), nil},
		"too many percent":       {progressive(func(p *cluster.RolloutProgressive) { p.MaxFailures = intstr.FromString("101%") }), []string{at + ".progressive.maxFailures: percentage"}},
		"less than none":         {progressive(func(p *cluster.RolloutProgressive) { p.MaxConcurrency = intstr.FromInt32(-1) }), []string{at + ".progressive.maxConcurrency: greater than or equal to 0"}},
		"a group": {progressive(func(p *cluster.RolloutProgressive) {
			p.MandatoryDecisionGroups.MandatoryDecisionGroups = []cluster.MandatoryDecisionGroup{{GroupIndex: -1}}
		}), []string{at + ".progressive.mandatoryDecisionGroups[0].groupIndex: greater than or equal to 0"}},
		"an author with many groups": {func(s *work.ManifestWorkReplicaSet) {
			s.Annotations = map[string]string{work.AuthorAnnotation: strings.Repeat("g", 16385)}
		}, []string{"metadata.annotations[work.clusterhub.dev/author]: Forbidden: the server records the author of the spec, and your record would have 16385 bytes, of at most 16384"}},
	} {
		s := replicaSet()
		c.change(s)
		want(t, name, boundstest.Created(t, scheme, s, validation.ValidateManifestWorkReplicaSet), c.wants...)
	}
	s, old := replicaSet(), replicaSet()
	s.Annotations = map[string]string{work.AuthorAnnotation: strings.Repeat("g", 16385)}
	want(t, "another author with many groups", boundstest.Updated(t, scheme, s, old, validation.ValidateManifestWorkReplicaSetUpdate), "metadata.annotations[work.clusterhub.dev/author]: 16385 bytes")
	want(t, "the author that was", boundstest.Updated(t, scheme, s, s, validation.ValidateManifestWorkReplicaSetUpdate))
	s.Spec.ManifestWorkTemplate.Workload.Manifests = nil
	want(t, "no manifests", validation.BadManifestWorkReplicaSet(s, old), "spec.manifestWorkTemplate.workload.manifests: manifests should not be empty")
}

func TestValidateManifestWorkReplicaSetStatusUpdate(t *testing.T) {
	s := replicaSet()
	s.Status.PlacementsSummary = []work.PlacementSummary{{Name: "all", Summary: work.ManifestWorkReplicaSetSummary{Total: 3}}}
	want(t, "a sound one", boundstest.Updated(t, scheme, s, s, validation.ValidateManifestWorkReplicaSetStatusUpdate))
	old := s.DeepCopy()
	s.Status.Summary.Updated = -1
	s.Status.PlacementsSummary = make([]work.PlacementSummary, 65)
	want(t, "counts", boundstest.Updated(t, scheme, s, old, validation.ValidateManifestWorkReplicaSetStatusUpdate),
		"status.summary.updated: greater than or equal to 0", "status.placementSummary: at most 64")
}
