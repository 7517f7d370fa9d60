// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills edge.clusterhub.dev objects with random content.
package fuzzer

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

// Funcs restricts random objects to those that the wire format can express.
var Funcs = func(runtimeserializer.CodecFactory) []any {
	return []any{
		func(e *runtime.RawExtension, c randfill.Continue) {
			data, err := json.Marshal(map[string]any{"services": map[string]any{"a": c.String(20)}})
			if err != nil {
				panic(err)
			}
			e.Raw = data
		},
		func(v *v1alpha1.Value, c randfill.Continue) { *v = value(c) },
		func(v *edge.Value, c randfill.Continue) {
			w := value(c)
			*v = edge.Value{Type: edge.ValueType(w.Type), String: w.String, Number: w.Number, Boolean: w.Boolean, List: w.List}
		},
		// Defaults would replace empty values.
		func(s *edge.EdgeNodeSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.NodeType = edge.NodeTypeDevice
		},
		func(s *edge.DeployCheckSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Limit = 1 + c.Int31n(1000)
		},
	}
}

// value sets only one field, because the wire format omits the others.
func value(c randfill.Continue) v1alpha1.Value {
	switch c.Intn(6) {
	case 0:
		return v1alpha1.Value{Type: v1alpha1.ValueString, String: c.String(20)}
	case 1:
		return v1alpha1.Value{Type: v1alpha1.ValueNumber, Number: float64(c.Int31())}
	case 2:
		return v1alpha1.Value{Type: v1alpha1.ValueNumber, Number: c.Float64() + 0.5}
	case 3:
		return v1alpha1.Value{Type: v1alpha1.ValueBoolean, Boolean: c.Bool()}
	case 4:
		return v1alpha1.Value{Type: v1alpha1.ValueList, List: []string{c.String(20), c.String(0)}}
	}
	return v1alpha1.Value{}
}
