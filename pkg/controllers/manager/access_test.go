// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestValidate_AccessErrors(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"as it comes":      {},
		"all off":          {args: []string{"--access-controllers="}},
		"one":              {args: []string{"--access-controllers=accessrequest", "--access-request-selector=landscape in (dev, live)"}},
		"no controller":    {args: []string{"--access-controllers=cluster"}, want: `--access-controllers: unknown controller "cluster", use one of accessrequest, scheduler`},
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

// An invalid configuration is an error at the start, and not only when this process is elected.
func TestValidate_SchedulerConfigErrorNamesFileAndField(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	text := "scheduler: {purposeMappings: {a: {template: {spec: {profile: p, tenancy: Mine}}}}, policy: {accessRequests: [{expression: 'roles'}]}}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := NewOptions()
	o.Kubeconfig = "kubeconfig"
	o.Access.Scheduler.ConfigFiles = []string{file}
	err := o.Validate()
	for _, want := range []string{"--scheduler-config: " + file + ": ", `scheduler.purposeMappings[a].template.spec.tenancy: Unsupported value: "Mine"`,
		"scheduler.policy.accessRequests[0].expression: Invalid value"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
