// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var expiration = metrics.NewGauge(&metrics.GaugeOpts{Name: "clusterhub_serving_certificate_expiration_timestamp_seconds",
	Help: "When the serving certificate that hub-apiserver has made itself ends, in seconds since 1970.", StabilityLevel: metrics.ALPHA})

func init() { legacyregistry.MustRegister(expiration) }
