// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var heard = metrics.NewGaugeVec(&metrics.GaugeOpts{Name: "clusterhub_rbac_last_heard_timestamp_seconds",
	Help:           "When the hub's kube-apiserver last sent RBAC rules, or reported that none has changed, in seconds since 1970: it does so once a minute.",
	StabilityLevel: metrics.ALPHA}, []string{"kind"})

func init() { legacyregistry.MustRegister(heard) }
