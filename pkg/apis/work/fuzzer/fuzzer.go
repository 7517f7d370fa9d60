// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer makes random objects of work.open-cluster-management.io for the tests of conversion.
package fuzzer

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// Funcs fill what plain randomness would fill with what no object has: what has a default is never empty, and a manifest is an
// object.
var Funcs = func(runtimeserializer.CodecFactory) []any {
	return []any{
		func(e *runtime.RawExtension, c randfill.Continue) {
			name := c.String(20)
			data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}})
			if err != nil {
				panic(err)
			}
			e.Raw = data
		},
		func(o *work.DeleteOption, c randfill.Continue) {
			c.FillNoCustom(o)
			orDefault(&o.PropagationPolicy, work.DeletePropagationPolicyTypeForeground)
		},
		func(o *work.ManifestConfigOption, c randfill.Continue) {
			c.FillNoCustom(o)
			orDefault(&o.FeedbackScrapeType, work.FeedbackPollType)
		},
		func(s *work.UpdateStrategy, c randfill.Continue) {
			c.FillNoCustom(s)
			orDefault(&s.Type, work.UpdateStrategyTypeUpdate)
		},
		func(s *work.ServerSideApplyConfig, c randfill.Continue) {
			c.FillNoCustom(s)
			orDefault(&s.FieldManager, work.DefaultFieldManager)
		},
		func(f *work.IgnoreField, c randfill.Continue) {
			c.FillNoCustom(f)
			orDefault(&f.Condition, work.IgnoreFieldsConditionOnSpokePresent)
		},
		func(s *work.ManifestWorkReplicaSetSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			orDefault(&s.CascadeDeletionPolicy, work.Background)
		},
		func(s *cluster.RolloutStrategy, c randfill.Continue) {
			c.FillNoCustom(s)
			orDefault(&s.Type, cluster.Progressive)
		},
		func(o *cluster.RolloutConfig, c randfill.Continue) {
			c.FillNoCustom(o)
			orDefault(&o.ProgressDeadline, "None")
		},
	}
}

// orDefault gives a value that is zero its default.
func orDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}
