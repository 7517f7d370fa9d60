// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator"
)

// parsed returns the options for flags.
func parsed(t *testing.T, args ...string) *Options {
	t.Helper()
	o, flags := NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(append([]string{"--kubeconfig=file"}, args...)); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOperator_RunsOnlyIfNamed(t *testing.T) {
	for _, test := range []struct {
		args     []string
		operator string
		runsSets bool
	}{
		{nil, "", true},
		{[]string{"--controllers=*"}, "", true},
		{[]string{"--controllers=sets"}, "", true},
		{[]string{"--controllers=klusterlets"}, "klusterlets", false},
		{[]string{"--controllers=*,klusterlets,clustermanagers"}, "clustermanagers klusterlets", true},
		// As an overlay adds a flag to those of the manifests.
		{[]string{"--controllers=sets,works", "--controllers=klusterlets"}, "klusterlets", true},
	} {
		o := parsed(t, test.args...)
		if err := o.Validate(); err != nil {
			t.Errorf("%q: %v", test.args, err)
		}
		got := ""
		if runs := o.operator(&rest.Config{}); runs != nil {
			got = strings.Join(runs.Controllers, " ")
		}
		if got != test.operator || o.runs(setsControllers) != test.runsSets {
			t.Errorf("%q: of hub-operator run %q, and sets: %t", test.args, got, o.runs(setsControllers))
		}
		impersonates := slices.ContainsFunc(o.Rights(), func(r kit.Right) bool { return slices.Contains(r.Verbs, "impersonate") })
		if impersonates != (test.operator != "") {
			t.Errorf("%q: it states the right to act as hub-operator: %t", test.args, impersonates)
		}
	}
	for flag, args := range map[string][]string{
		`unknown controller "operator"`:   {"--controllers=operator"},
		"--agent-token-lifetime must be":  {"--controllers=*,klusterlets", "--agent-token-lifetime=1s"},
		"--server-token-lifetime must be": {"--controllers=*,clustermanagers", "--server-token-lifetime=1s"},
	} {
		if err := parsed(t, args...).Validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("want %q, got %v", flag, err)
		}
	}
}

// A separate hub-operator and this process are never active at the same time: they use one Lease, whatever the flags of this process.
func TestOperator_LeaseAndServiceAccount(t *testing.T) {
	o := parsed(t, "--controllers=klusterlets", "--leader-elect=false", "--leader-elect-resource-name=mine", "--leader-elect-namespace=mine",
		"--leader-elect-lease-duration=33s")
	got, want := o.operator(&rest.Config{Host: "https://hub"}), operator.NewOptions().LeaderElection
	elects := got.LeaderElection
	if !elects.Enabled || elects.Name != want.Name || elects.Namespace != want.Namespace || elects.LeaseDuration != o.LeaderElection.LeaseDuration {
		t.Errorf("the Lease is %+v, want %+v", elects, want)
	}
	if got.config.Impersonate.UserName != "system:serviceaccount:clusterhub-operator:hub-operator" || got.config.Host != "https://hub" {
		t.Errorf("it acts as %+v", got.config)
	}
	if !got.NeedLeaderElection() {
		t.Error("a process that stands by acts as hub-operator")
	}
}
