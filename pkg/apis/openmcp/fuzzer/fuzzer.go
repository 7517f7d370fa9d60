// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer makes random objects of clusters.openmcp.cloud for the tests of conversion. They are valid where a version
// cannot express what is invalid.
package fuzzer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// Funcs fill what plain randomness would fill with what no object has.
var Funcs = func(runtimeserializer.CodecFactory) []any {
	return []any{
		func(o *openmcp.OIDCProviderConfig, c randfill.Continue) {
			c.FillNoCustom(o)
			if o.GroupsClaim == nil {
				o.GroupsClaim = new("groups") // the defaults
			}
			if o.UsernameClaim == nil {
				o.UsernameClaim = new("sub")
			}
		},
		func(s *openmcp.AccessTokenSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			if s.ExpirationSeconds == nil {
				s.ExpirationSeconds = new(int64(3600)) // the default
			}
		},
		func(s *openmcp.ClusterStatus, c randfill.Continue) {
			c.Fill(&s.Status)
			c.Fill(&s.APIServer)
			c.Fill(&s.Endpoints)
			if c.Bool() {
				s.ProviderStatus = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"a":{"b":[%d]}}`, c.Int31())}
			}
		},
	}
}
