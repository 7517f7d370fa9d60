// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"
)

func TestValidate_OfAccessIsOneClearError(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"as it comes":      {},
		"all off":          {args: []string{"--access-controllers="}},
		"one":              {args: []string{"--access-controllers=accessrequest", "--access-request-selector=landscape in (dev, live)"}},
		"no controller":    {args: []string{"--access-controllers=cluster"}, want: `--access-controllers: there is no controller "cluster", only accessrequest, scheduler`},
		"no such selector": {args: []string{"--access-request-selector=a in b"}, want: "--access-request-selector: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.Kubeconfig = "kubeconfig"
			set := o.Flags()
			if err := set.FlagSet("access").Parse(test.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
