// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/clusterhub/clusterhub/pkg/agent"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

// TestJoin_PassesLabels verifies that labels are passed to the agent, and that the agent accepts them.
func TestJoin_PassesLabels(t *testing.T) {
	_, cluster, config, args := newJoining(t)
	argsOf := func(more ...string) []string {
		if _, stderr, err := clitest.Run(t, config, append(args, more...)...); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		deployment := &appsv1.Deployment{}
		cluster.As(clitest.DeploymentPath, deployment)
		return deployment.Spec.Template.Spec.Containers[0].Args
	}
	passed := argsOf("--cluster-labels", "b=2,example.com/a=", "--cluster-labels=c=x.y", "--detect-cluster-labels")
	for _, want := range []string{"--cluster-labels=b=2,c=x.y,example.com/a=", "--detect-cluster-labels"} {
		if !slices.Contains(passed, want) {
			t.Errorf("the agent's flags are %q, want %s", passed, want)
		}
	}
	o := agent.NewOptions()
	flags := pflag.NewFlagSet("hub-agent", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(passed); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"b": "2", "c": "x.y", "example.com/a": ""}
	if err := errors.Join(o.ClusterLabels.Validate()...); err != nil || !maps.Equal(o.ClusterLabels.Labels, want) || !o.ClusterLabels.Detect {
		t.Errorf("the agent reads %+v, %v, want %v", o.ClusterLabels, err, want)
	}
	// A join without labels removes them.
	if again := strings.Join(argsOf(), " "); strings.Contains(again, "cluster-labels") {
		t.Errorf("after a join without labels the agent's flags are %s", again)
	}
}
