// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

// WithoutEffect warns of fields of Open Horizon that are stored and have no effect here. service is the field that contains the versions. Only a
// policy that names several versions tries the next one.
func WithoutEffect(versions []api.ServiceVersion, service string, pattern bool) []string {
	where := "with one version"
	if pattern {
		where = "in a pattern"
	} else if len(versions) > 1 {
		return nil
	}
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
	return []string{fmt.Sprintf("%s.serviceVersions: %s are kept and have no effect %s: it is delivered until it succeeds",
		service, strings.Join(set, ", "), where)}
}
