// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts renders the charts in artifacts/charts, and writes what comes from them: manifests in artifacts/deploy, the schemas of
// their values, and the tables in docs/helm.md.
package charts

import (
	"fmt"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// The charts, and the namespaces that manifests name.
const (
	Hub            = "clusterhub"
	Agent          = "hub-agent"
	HubNamespace   = "clusterhub-system"
	AgentNamespace = "open-cluster-management-agent"
)

// Names are those of all charts.
var Names = []string{Hub, Agent}

// Dir is the folder of a chart.
func Dir(root, name string) string { return filepath.Join(root, "artifacts", "charts", name) }

// Load reads a chart.
func Load(root, name string) (*chart.Chart, error) { return loader.Load(Dir(root, name)) }

// Render returns the rendered templates by their paths in the chart. Values are validated by the schema.
func Render(c *chart.Chart, namespace string, values map[string]any) (map[string]string, error) {
	release := common.ReleaseOptions{Name: c.Name(), Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for path, text := range rendered {
		files[strings.TrimPrefix(path, c.Name()+"/templates/")] = text
	}
	return files, nil
}

// rendering is a chart with values, and the files in artifacts/deploy that some of its templates become.
type rendering struct {
	chart, namespace string
	values           map[string]any
	files            map[string]string
	// as is the namespace that manifests name, if the chart refuses that one.
	as string
}

// on is the value of what is off by default.
func on(more ...string) map[string]any {
	values := map[string]any{}
	for _, name := range more {
		values[name] = true
	}
	return values
}

// renderings are all files in artifacts/deploy that come from charts. The folders' kustomization.yaml and patches are their own, and
// TestDefaults holds what becomes of them to what the charts say.
func renderings() []rendering {
	manifests := map[string]any{"keepData": false, "namespace": on("create")}
	all := map[string]any{
		"keepData":        false,
		"clusterProvider": on("enabled"),
		"hubOperator":     on("enabled"),
		"registration": map[string]any{
			"autoApproval": on("enabled"), "awsAuth": true, "bootstrap": true, "leftoverTTL": "1h", "perClusterRoles": true, "upstreamAgents": true,
		},
	}
	scoped := map[string]any{"namespaceScoped": true, "clusterName": "any"}
	return []rendering{
		{Hub, HubNamespace, manifests, map[string]string{
			"hub/apiservices.yaml":   "base/apiservices.yaml",
			"hub/deployment.yaml":    "base/deployment.yaml",
			"hub/flowcontrol.yaml":   "base/flowcontrol.yaml",
			"hub/namespace.yaml":     "base/namespace.yaml",
			"hub/networkpolicy.yaml": "base/networkpolicy.yaml",
			"hub/policies.yaml":      "base/policies.yaml",
			"hub/rbac.yaml":          "base/rbac.yaml",
			"hub/service.yaml":       "base/service.yaml",
		}, ""},
		{Hub, HubNamespace, all, map[string]string{
			"components/auto-approval.yaml":       "auto-approval/rbac.yaml",
			"components/aws-auth.yaml":            "aws-auth/rbac.yaml",
			"components/bootstrap.yaml":           "bootstrap/bootstrap.yaml",
			"components/leftovers.yaml":           "leftovers/rbac.yaml",
			"components/per-cluster-roles.yaml":   "per-cluster-roles/rbac.yaml",
			"components/upstream-agents.yaml":     "upstream-agents/upstream-agents.yaml",
			"cluster-provider/deployment.yaml":    "cluster-provider/deployment.yaml",
			"cluster-provider/namespace.yaml":     "cluster-provider/namespace.yaml",
			"cluster-provider/networkpolicy.yaml": "cluster-provider/networkpolicy.yaml",
			"cluster-provider/policies.yaml":      "cluster-provider/policies.yaml",
			"cluster-provider/rbac.yaml":          "cluster-provider/rbac.yaml",
			"operator/deployment.yaml":            "operator/deployment.yaml",
			"operator/namespace.yaml":             "operator/namespace.yaml",
			"operator/rbac.yaml":                  "operator/rbac.yaml",
		}, ""},
		{Agent, AgentNamespace, map[string]any{"namespace": on("create"), "bootstrap": on("emptySecret")}, map[string]string{
			"agent.yaml": "agent/agent.yaml",
		}, ""},
		{Agent, AgentNamespace, map[string]any{"keepData": false, "works": map[string]any{"role": "admin"}}, map[string]string{
			"works/rbac.yaml":                 "agent-works/rbac.yaml",
			"works/appliedmanifestworks.yaml": "agent-works/appliedmanifestworks.yaml",
		}, ""},
		{Agent, AgentNamespace, map[string]any{"works": map[string]any{"role": "admin", "upgradable": true}}, map[string]string{
			"works/upgrade.yaml": "agent-upgrade/rbac.yaml",
		}, ""},
		{Agent, "namespace-of-a-team", scoped, map[string]string{"namespace-rights.yaml": "agent-namespace/rights.yaml"}, AgentNamespace},
	}
}

// Deploy are the files below artifacts/deploy that come from charts, by their paths there.
func Deploy(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, r := range renderings() {
		c, err := Load(root, r.chart)
		if err != nil {
			return nil, err
		}
		rendered, err := Render(c, r.namespace, r.values)
		if err != nil {
			return nil, err
		}
		for template, path := range r.files {
			text, ok := rendered[template]
			if !ok {
				return nil, fmt.Errorf("the chart %s has no template %s", r.chart, template)
			}
			if r.as != "" {
				text = strings.ReplaceAll(text, r.namespace, r.as)
			}
			files[path], err = manifest(text, filepath.Join("artifacts", "charts", r.chart, "templates", template))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", template, err)
			}
		}
	}
	return files, nil
}

const header = "# Copyright The Clusterhub Authors.\n# SPDX-License-Identifier: Apache-2.0\n"

// manifest is a rendered template with a word on where it comes from, and without the labels of all objects, where there are none.
func manifest(text, from string) (string, error) {
	body, ok := strings.CutPrefix(text, header)
	if !ok {
		return "", fmt.Errorf("it does not begin with the header of all files")
	}
	var documents []string
	for document := range strings.SplitSeq(strings.TrimLeft(body, "\n"), "\n---\n") {
		if strings.TrimSpace(document) != "" {
			documents = append(documents, strings.TrimRight(document, "\n"))
		}
	}
	if len(documents) == 0 {
		return "", fmt.Errorf("nothing is rendered")
	}
	return header + "# Written by `make generate` from " + filepath.ToSlash(from) + ": make changes there.\n#\n" +
		strings.Join(documents, "\n---\n") + "\n", nil
}
