// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// others are modules that have CustomResourceDefinitions of kinds in the charts, what their content adds up to, the files, and the group and version.
var others = []struct {
	module, sum, folder string
	files               []string
	groupVersion        string
}{
	{"github.com/prometheus-operator/prometheus-operator@v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=", "example/prometheus-operator-crd",
		[]string{"monitoring.coreos.com_podmonitors.yaml", "monitoring.coreos.com_prometheusrules.yaml", "monitoring.coreos.com_servicemonitors.yaml"}, "monitoring.coreos.com/v1"},
	{"github.com/cert-manager/cert-manager@v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=", "deploy/crds",
		[]string{"cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml"}, "cert-manager.io/v1"},
}

// othersKinds has the cluster serve the kinds of others that the charts can deploy.
func othersKinds(t *testing.T, cluster *localhub.Instance) {
	t.Helper()
	apply := []string{"apply", "--server-side"}
	for _, o := range others {
		// Into the cache of modules, of no go.mod: a few files of them are needed.
		download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", o.module)
		download.Dir = t.TempDir()
		var module struct{ Dir, Sum, Error string }
		if err := json.Unmarshal(harness.Must(download.Output())(t), &module); err != nil || module.Error != "" || module.Sum != o.sum {
			t.Fatalf("%s: %v, %+v, want the sum %s", o.module, err, module, o.sum)
		}
		for _, file := range o.files {
			apply = append(apply, "-f", filepath.Join(module.Dir, filepath.FromSlash(o.folder), file))
		}
	}
	harness.MustKubectlOf(t, cluster, "", apply...)
	for _, o := range others {
		harness.Eventually(t, "the kinds of "+o.module+" are served", func(context.Context) (bool, error) {
			served, err := harness.Kube(t, cluster.AdminConfig()).Discovery().ServerResourcesForGroupVersion(o.groupVersion)
			if err != nil {
				return false, err
			}
			for _, file := range o.files {
				_, plural, _ := strings.Cut(strings.TrimSuffix(file, ".yaml"), "_")
				if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
					return false, fmt.Errorf("%s are not", plural)
				}
			}
			return true, nil
		})
	}
}
