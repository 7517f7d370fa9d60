// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// These constants name the module with the CustomResourceDefinitions of prometheus-operator, and its checksum.
const (
	operatorModule = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	operatorSum    = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
)

// TestMonitors_AcceptedByPrometheusOperator verifies that a real server knows every field, and rejects an unknown one.
func TestMonitors_AcceptedByPrometheusOperator(t *testing.T) {
	h := harness.Hub(t)
	// The module is downloaded to the module cache without a go.mod: it has 4 MB, of which three files are needed.
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", operatorModule)
	download.Dir = t.TempDir()
	var module struct{ Dir, Sum, Error string }
	if err := json.Unmarshal(harness.Must(download.Output())(t), &module); err != nil || module.Error != "" || module.Sum != operatorSum {
		t.Fatalf("%s: %v, %+v, want the sum %s", operatorModule, err, module, operatorSum)
	}
	crds := filepath.Join(module.Dir, "example", "prometheus-operator-crd", "monitoring.coreos.com_")
	kubectl := func(args ...string) (string, error) {
		out, err := h.Kubectl(t.Context(), args...).CombinedOutput()
		return string(out), err
	}
	kinds := []string{"prometheusrules", "podmonitors", "servicemonitors"}
	for _, kind := range kinds {
		if out, err := kubectl("apply", "--server-side", "-f", crds+kind+".yaml"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Cleanup(func() { _ = h.Kubectl(context.Background(), "delete", "crd", kind+".monitoring.coreos.com").Run() })
		harness.Eventually(t, kind+" are served", func(context.Context) (bool, error) {
			out, err := kubectl("get", kind+".monitoring.coreos.com", "--all-namespaces")
			return harness.Holds(err == nil, out)
		})
	}
	// These components run on clusters without a hub, too.
	for _, namespace := range []string{"clusterhub-operator", "open-cluster-management-agent"} {
		if out, err := kubectl("create", "namespace", namespace); err != nil && !strings.Contains(out, "AlreadyExists") {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, name := range []string{"rules.yaml", "monitors.yaml", "monitors-operator.yaml", "monitors-agent.yaml"} {
		file := filepath.Join(harness.Root, "artifacts", "monitoring", name)
		if out, err := kubectl("apply", "--dry-run=server", "--validate=strict", "-f", file); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	monitors := harness.Must(os.ReadFile(filepath.Join(harness.Root, "artifacts", "monitoring", "monitors.yaml")))(t)
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, bytes.ReplaceAll(monitors, []byte("interval:"), []byte("intervall:")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := kubectl("apply", "--dry-run=server", "--validate=strict", "-f", wrong); err == nil || !strings.Contains(out, `unknown field "spec.endpoints[0].intervall"`) {
		t.Errorf("a field that there is not: %v: %s", err, out)
	}
}
