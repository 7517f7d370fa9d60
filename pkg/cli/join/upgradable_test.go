// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

// TestJoin_UpgradableNeedsFlag: a join with the flag grants the agent permission to change its own Deployment, and a join without it revokes
// that.
func TestJoin_UpgradableNeedsFlag(t *testing.T) {
	_, cluster, config, args := newJoining(t)
	has := func() (role, flag bool) {
		t.Helper()
		role = slices.ContainsFunc(cluster.Paths(), func(p string) bool { return strings.HasSuffix(p, "/roles/clusterhub:hub-agent-upgrade") })
		if bound := slices.ContainsFunc(cluster.Paths(), func(p string) bool { return strings.HasSuffix(p, "/rolebindings/clusterhub:hub-agent-upgrade") }); bound != role {
			t.Errorf("the role is there: %t, and its binding: %t", role, bound)
		}
		deployment := &appsv1.Deployment{}
		cluster.As(clitest.DeploymentPath, deployment)
		return role, slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--upgrade-repository=images.example.com/hub-agent")
	}
	join := func(more ...string) {
		t.Helper()
		stdout, stderr, err := clitest.Run(t, config, slices.Concat(args, []string{"--works=admin", "--image=images.example.com/hub-agent:v1"}, more)...)
		if err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		if strings.Contains(stdout, "The hub may upgrade it to other images of images.example.com/hub-agent.") != (len(more) > 0) {
			t.Errorf("with %q it says %s", more, stdout)
		}
	}
	join()
	if role, flag := has(); role || flag {
		t.Error("an agent can be upgraded without the flag")
	}
	join("--upgradable")
	if role, flag := has(); !role || !flag {
		t.Errorf("with the flag the role is there: %t, and the flag of the agent: %t", role, flag)
	}
	join()
	if role, flag := has(); role || flag {
		t.Errorf("after a join without it the role is there: %t, and the flag of the agent: %t", role, flag)
	}
	for flags, want := range map[string]string{
		"--upgradable": "--upgradable needs --works=admin or --works=cluster-admin",
		"--upgradable --works=admin --image=hub-agent": "it has neither a tag nor a digest",
	} {
		if _, _, err := clitest.Run(t, config, append(slices.Clone(args), strings.Fields(flags)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
