// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"
)

// What asks for no credentials is for this machine alone.
func TestMetrics_AreNotForAllWhoReachThem(t *testing.T) {
	for name, test := range map[string]struct {
		metrics MetricsOptions
		want    string
	}{
		"none":                  {metrics: MetricsOptions{Address: "0"}},
		"on loopback":           {metrics: MetricsOptions{Address: "127.0.0.1:8080"}},
		"on the other loopback": {metrics: MetricsOptions{Address: "[::1]:0"}},
		"by name":               {metrics: MetricsOptions{Address: "localhost:8080"}},
		"with credentials":      {metrics: MetricsOptions{Address: ":8443", Secure: true}},
		"for all":               {metrics: MetricsOptions{Address: ":8080"}, want: "--metrics-bind-address is :8080, which others can reach"},
		"on any address":        {metrics: MetricsOptions{Address: "0.0.0.0:8080"}, want: "--metrics-bind-address is 0.0.0.0:8080"},
		"on that of a machine":  {metrics: MetricsOptions{Address: "10.0.0.1:8080"}, want: "set --metrics-secure"},
		"by another name":       {metrics: MetricsOptions{Address: "localhost.example:8080"}, want: "set --metrics-secure"},
		"no address":            {metrics: MetricsOptions{Address: "8080"}, want: "must be host:port"},
		"no certificate there":  {metrics: MetricsOptions{Address: ":8443", Secure: true, CertDir: "missing"}, want: "--metrics-cert-dir: "},
		"a certificate for none": {metrics: MetricsOptions{Address: "127.0.0.1:1", CertDir: "missing"},
			want: "--metrics-cert-dir needs --metrics-secure"},
	} {
		errs := test.metrics.validate()
		if test.want == "" && len(errs) > 0 || test.want != "" && (len(errs) == 0 || !strings.Contains(errs[0].Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, errs, test.want)
		}
		if o := test.metrics.options(); o.SecureServing != test.metrics.Secure || (o.FilterProvider != nil) != test.metrics.Secure {
			t.Errorf("%s: it is served with %+v", name, o)
		}
	}
}
