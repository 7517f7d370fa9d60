// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"testing"
)

func TestImages_DefaultToRegistryOfOperator(t *testing.T) {
	for value, want := range map[string]string{
		"clusterhub/hub-operator:v0.0.0":            "r/hub-operator:v2",
		"--agent-image=clusterhub/hub-agent:v0.0.0": "--agent-image=r/hub-agent:v2",
		"--x=clusterhub/hub-agent:v1":               "--x=clusterhub/hub-agent:v1",
		"see clusterhub/hub-agent:v0.0.0":           "see clusterhub/hub-agent:v0.0.0",
	} {
		if got := withImages(value, "r/hub-operator:v2"); got != want {
			t.Errorf("%s becomes %s, want %s", value, got, want)
		}
	}
	if got := otherImage("hub-operator", "hub-agent"); got != "hub-agent:latest" {
		t.Errorf("besides an image without a tag there is %s", got)
	}
}
