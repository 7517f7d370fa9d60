// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
)

// All drivers must fulfill this, including future ones.
func TestDrivers_HaveDistinctNamesAndFlags(t *testing.T) {
	flags, named := pflag.NewFlagSet("x", pflag.ContinueOnError), map[string]bool{}
	for _, driver := range drivers() {
		driver.AddFlags(flags) // panics if two drivers have a flag of the same name
		if errs := driver.Validate(false); len(errs) > 0 {
			t.Errorf("%s needs flags although another driver is chosen: %v", driver.Names()[0], errs)
		}
		for _, name := range driver.Names() {
			if named[name] || drivers().Named(name).Names()[0] != driver.Names()[0] {
				t.Errorf("%s is the name of several", name)
			}
			named[name] = true
		}
	}
	if drivers().Named("grpc") != nil {
		t.Error("there is a driver grpc")
	}
}

func TestDrivers_FindIdentityWhateverTheFlags(t *testing.T) {
	aws := awsirsa.RegisterDriver{HubARN: hubARN, ManagedARN: managedARN}
	own, err := aws.New(identity.Agent{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := hub.Kubeconfig(agenttest.BootstrapKubeconfig(), agenttest.ClusterName, own.User())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		state state.State
		found bool
	}{
		"a certificate": {state.State{Kubeconfig: kubeconfig, Cert: []byte("x")}, true},
		"a role":        {state.State{Kubeconfig: kubeconfig}, true},
		"neither":       {state.State{Kubeconfig: []byte("{}")}, false},
		"nothing":       {state.State{}, false},
	} {
		if found, err := drivers().Find(c.state); (found != nil) != c.found || (err == nil) != c.found {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}
