// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// refusals has a series for each rule that a plugin can check. No label contains what users send.
var refusals = metrics.NewCounterVec(&metrics.CounterOpts{
	Name:           "clusterhub_permission_refusals_total",
	Help:           "Missing permissions that writes were refused for, by the admission plugin that checked, and by verb and resource.",
	StabilityLevel: metrics.ALPHA,
}, []string{"plugin", "verb", "resource"})

func init() { legacyregistry.MustRegister(refusals) }

// count adds what a request lacks.
func count(plugin string, lacking []rbac.Permission) {
	for _, r := range lacking {
		refusals.WithLabelValues(plugin, r.Verb, r.RuleResource()).Inc()
	}
}
