// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

// WithoutEffect warns of fields that files of Open Horizon have, that are kept, and that decide nothing here. The service is the field that
// has the versions.
func WithoutEffect(versions []api.ServiceVersion, service string) []string {
	var set []string
	for _, name := range []struct {
		field string
		value func(*api.Priority) int32
	}{
		{"retries", func(p *api.Priority) int32 { return p.Retries }},
		{"retry_durations", func(p *api.Priority) int32 { return p.RetryDurations }},
		{"verified_durations", func(p *api.Priority) int32 { return p.VerifiedDurations }},
	} {
		if slices.ContainsFunc(versions, func(v api.ServiceVersion) bool { return v.Priority != nil && name.value(v.Priority) != 0 }) {
			set = append(set, name.field)
		}
	}
	if len(set) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s.serviceVersions: %s are kept and have no effect: a version is delivered until it succeeds, and the next one is taken only for nodes that it does not fit",
		service, strings.Join(set, ", "))}
}
