// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

func TestImageOf_ReleasedVersionsOnly(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "clusterhub/hub-agent:v1.2.3", "v1.2.3-4-gabcdef0-dirty": "clusterhub/hub-agent:v1.2.3-4-gabcdef0-dirty",
		"abcdef0": "clusterhub/hub-agent:abcdef0",
		// No image was built with these versions.
		"(devel)": "", UnknownVersion: "", "": "", "v1.2.3+dirty": "",
		"v0.0.0-20260101000000-abcdefabcdef": "", "v1.2.4-0.20260101000000-abcdefabcdef": "",
	} {
		if got := ImageOf(AgentImage, version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

func TestContextARN_AsWrittenByAWSCLI(t *testing.T) {
	const arn = "arn:aws:eks:eu-west-1:123456789012:cluster/hub"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion": "v1", "kind": "Config", "current-context": "other", "contexts": [
		{"name": "eks", "context": {"cluster": "` + arn + `"}}, {"name": "other", "context": {"cluster": "c"}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for context, want := range map[string]string{"eks": arn, "other": "", "": "", "nowhere": ""} {
		o := &Options{ConfigFlags: genericclioptions.NewConfigFlags(true)}
		*o.ConfigFlags.KubeConfig, *o.ConfigFlags.Context = file, context
		if got := o.ContextARN(); got != want {
			t.Errorf("context %q: %q, want %q", context, got, want)
		}
	}
}
