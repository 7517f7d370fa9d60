// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeagents

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

const (
	oneVersion  = "[{version: 1.0.0}]"
	twoVersions = "[{version: 2.0.0, priority: {priority_value: 1}}, {version: 1.0.0, priority: {priority_value: 2}}]"
)

// service writes a version of a service, which is a ConfigMap of that name, for all architectures, as the deployer. The archive names a namespace, if
// embedded is not empty. It returns the output of kubectl.
func (w *world) service(name, version, embedded string) string {
	w.Helper()
	return w.serviceOf(name, version, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %q}\ndata: {version: %q}\n", name, embedded, version))
}

// serviceOf is service with different manifests.
func (w *world) serviceOf(name, version, manifests string) string {
	w.Helper()
	return w.mustAs(deployer, fmt.Sprintf("apiVersion: %s\nkind: EdgeService\nmetadata: {name: %s, namespace: %s}\nspec: {url: %s, version: %s, arch: '*', "+
		"clusterDeployment: {operatorYamlArchive: %s}}\n", edgev1alpha1.SchemeGroupVersion, serviceName(name, version), shop, name, version, w.packed(manifests)),
		"apply", "-f", "-")
}

// serviceName returns the name of the EdgeService.
func serviceName(name, version string) string { return edge.ServiceName(name, version, "*") }

// packed returns an archive of a manifest, in base64.
func (w *world) packed(manifest string) string {
	w.Helper()
	var data bytes.Buffer
	zipped := gzip.NewWriter(&data)
	entries := tar.NewWriter(zipped)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "manifest.yaml", Mode: 0o644, Size: int64(len(manifest))}
	if err := errors.Join(entries.WriteHeader(header), second(entries.Write([]byte(manifest))), entries.Close(), zipped.Close()); err != nil {
		w.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(data.Bytes())
}

func second[T any](_ T, err error) error { return err }

// policy is a DeploymentPolicy of the deployer.
type policy struct {
	name, service, versions, clusterNamespace string
	constraints                               []string
}

func (p policy) yaml() string {
	var quoted []string
	for _, c := range p.constraints {
		quoted = append(quoted, fmt.Sprintf("%q", c))
	}
	return fmt.Sprintf("apiVersion: %s\nkind: DeploymentPolicy\nmetadata: {name: %s, namespace: %s}\nspec:\n  service: {name: %s, clusterNamespace: %q, serviceVersions: %s}\n"+
		"  constraints: [%s]\n", edgev1alpha1.SchemeGroupVersion, p.name, shop, p.service, p.clusterNamespace, p.versions, strings.Join(quoted, ", "))
}

// write writes the policy as the deployer. It returns the output of kubectl.
func (w *world) write(p policy) string {
	w.Helper()
	return w.mustAs(deployer, p.yaml(), "apply", "-f", "-")
}

// file writes the policy to a file and returns its path.
func (w *world) file(p policy) string {
	w.Helper()
	name := filepath.Join(w.TempDir(), "policy.yaml")
	if err := os.WriteFile(name, []byte(p.yaml()), 0o600); err != nil {
		w.Fatal(err)
	}
	return name
}

// placed waits until a policy has exactly these placements: "node version namespace state", in the order of the nodes.
func (w *world) placed(policy string, want ...string) {
	w.Helper()
	w.says("the placements of "+policy, strings.Join(want, "\n"), w.hub, "get", "edgeplacements", "-n", shop, "-l", edgev1alpha1.PolicyLabel+"="+policy,
		"--sort-by=.spec.node", "-o", `jsonpath={range .items[*]}{.spec.node} {.spec.services[*].version} {.spec.services[*].targetNamespace} {.status.state}{"\n"}{end}`)
}

// judged waits until the status of the current policy reports how many nodes are selected, and how many are excluded by which rule.
func (w *world) judged(policy string, selected int, excluded ...string) {
	w.Helper()
	slices.Sort(excluded)
	want := fmt.Sprintf("%d %v", selected, excluded)
	w.eventually("what the hub says of "+policy, func() error {
		out, err := w.hub.Kubectl(w.Context(), "get", "deploymentpolicy", policy, "-n", shop, "-o",
			`jsonpath={.metadata.generation} {.status.observedGeneration} {.status.nodes.selected} {range .status.excluded[*]}{.reason}={.nodes} {end}`).CombinedOutput()
		said := strings.Fields(string(out))
		if err != nil || len(said) < 3 || said[0] != said[1] {
			return fmt.Errorf("it has not been judged: %v: %s", err, out)
		}
		slices.Sort(said[3:])
		if got := fmt.Sprintf("%s %v", said[2], said[3:]); got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
}

// lands waits until the service runs in exactly these namespaces of the cluster: "namespace version".
func (w *world) lands(service string, want ...string) {
	w.Helper()
	w.says("where "+service+" is", strings.Join(want, "\n"), w.cluster, "get", "configmaps", "-A", "--field-selector", "metadata.name="+service,
		"-o", `jsonpath={range .items[*]}{.metadata.namespace} {.data.version}{"\n"}{end}`)
}
