// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestSpecifications_Pasted applies each object of the specifications to a hub in dry run. The table of expected results is that of
// TestSpecifications_Objects, which does the same without a hub.
func TestSpecifications_Pasted(t *testing.T) {
	const repository = "../../../"
	var table struct {
		Objects []struct {
			Of, YAML, File, Fails, Pasted string
			Without                       []string
		}
	}
	if err := yaml.Unmarshal(harness.Must(os.ReadFile(repository+"pkg/cli/testdata/specifications.yaml"))(t), &table); err != nil {
		t.Fatal(err)
	}
	namespace := harness.NewNamespace(t)
	pasted := 0
	for _, o := range table.Objects {
		text := []byte(o.YAML)
		if o.File != "" {
			text = harness.Must(os.ReadFile(repository + o.File))(t)
		}
		var object any
		if err := yaml.Unmarshal(text, &object); err == nil {
			fields, is := object.(map[string]any)
			switch {
			case !is: // rules of a role
				fields = map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "rules"}, "rules": object}
			case fields["kind"] == nil:
				continue // a part of a kubeconfig, which is not for a hub
			}
			if len(o.Without) == 2 {
				delete(fields[o.Without[0]].(map[string]any), o.Without[1])
			}
			if kind := fields["kind"]; kind == "ManagedClusterSet" || kind == "ClusterRole" {
				// The tests of the examples create objects of these names in the same hub, concurrently.
				metadata := fields["metadata"].(map[string]any)
				metadata["name"] = fmt.Sprintf("%s-%s", metadata["name"], namespace)
			}
			text = harness.Must(yaml.Marshal(fields))(t)
		}
		pasted++
		out, err := harness.Kubectl(t, strings.ReplaceAll(string(text), "namespace: my-namespace", "namespace: "+namespace), "apply", "--dry-run=server", "-f", "-")
		want := o.Fails
		if o.Pasted != "" {
			want = o.Pasted
		}
		if (err != nil) != (want != "") || !strings.Contains(out, want) {
			t.Errorf("%s %s: it says %q, want %q\n%s", o.Of, filepath.Base(o.File), out, want, text)
		}
		t.Logf("%s: %s", o.Of, out)
	}
	if pasted < 15 {
		t.Errorf("%d objects are pasted only", pasted)
	}
}
