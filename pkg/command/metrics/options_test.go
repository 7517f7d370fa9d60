// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"
)

// Without credentials, metrics are only available on this machine.
func TestMetrics_RequireAuthorization(t *testing.T) {
	for name, test := range map[string]struct {
		metrics Options
		want    string
	}{
		"none":                  {metrics: Options{Address: "0"}},
		"on loopback":           {metrics: Options{Address: "127.0.0.1:8080"}},
		"on the other loopback": {metrics: Options{Address: "[::1]:0"}},
		"by name":               {metrics: Options{Address: "localhost:8080"}},
		"with credentials":      {metrics: Options{Address: ":8443", Secure: true}},
		"for all":               {metrics: Options{Address: ":8080"}, want: "--metrics-bind-address is :8080, which others can reach"},
		"on any address":        {metrics: Options{Address: "0.0.0.0:8080"}, want: "--metrics-bind-address is 0.0.0.0:8080"},
		"on that of a machine":  {metrics: Options{Address: "10.0.0.1:8080"}, want: "set --metrics-secure"},
		"by another name":       {metrics: Options{Address: "localhost.example:8080"}, want: "set --metrics-secure"},
		"no address":            {metrics: Options{Address: "8080"}, want: "must be host:port"},
		"no address, secure":    {metrics: Options{Address: "8443", Secure: true}, want: "must be host:port"},
		"no certificate there":  {metrics: Options{Address: ":8443", Secure: true, CertDir: "missing"}, want: "--metrics-cert-dir: "},
		"a certificate for none": {metrics: Options{Address: "127.0.0.1:1", CertDir: "missing"},
			want: "--metrics-cert-dir needs --metrics-secure"},
	} {
		errs := test.metrics.Validate()
		if test.want == "" && len(errs) > 0 || test.want != "" && (len(errs) == 0 || !strings.Contains(errs[0].Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, errs, test.want)
		}
	}
}
