// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"io"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/edge/check"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// FuzzEdgeFiles: every file results in an error or in objects of ours. What the hub would accept can be checked, and a node that it would accept can
// be read.
func FuzzEdgeFiles(f *testing.F) {
	for _, seed := range []string{
		policyYAML, patternYAML, nodeYAML("a", "blue", true), policyYAML + "---\n" + nodeYAML("a", "blue", false), "",
		`{"service":{"name":"web","serviceVersions":[{"version":"1.0.0"}]},"constraints":["a == b"]}`, `{"properties":[{"name":"a","value":1}]}`,
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[]}]}`, "apiVersion: edge.clusterhub.dev/v1alpha1\nkind: EdgeNodeList\nitems: [{}]\n",
	} {
		f.Add([]byte(seed))
	}
	opts := &kit.Options{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}}
	f.Fuzz(func(t *testing.T, data []byte) {
		files := &edgeFiles{Options: opts, nodesByFile: true}
		objects, err := files.parse("f.json", data, "shop")
		if err != nil {
			return
		}
		question := &check.Question{Namespace: "shop", Name: "p"}
		for _, o := range objects {
			if known(o.Object) != nil {
				t.Fatalf("%T is read", o.Object)
			}
			if _, err := checkEdgeObject(o.Object); err != nil {
				continue
			}
			switch typed := o.Object.(type) {
			case *api.DeploymentPolicy:
				question.Policy = &typed.Spec
			case *api.DeploymentPattern:
				question.Pattern = &typed.Spec
			case *api.EdgeNode:
				question.Nodes = append(question.Nodes, check.Read(model.Node(typed.Name, &typed.Spec, &typed.Status)))
			}
		}
		if question.Policy != nil {
			question.Pattern = nil
		} else if question.Pattern == nil {
			return
		}
		status, err := check.Answer(question)
		if err != nil || status.Deployable || len(status.Nodes) > check.DefaultLimit {
			t.Errorf("got %+v and %v", status, err)
		}
	})
}

func nodeYAML(name, namespace string, scoped bool) string {
	return fmt.Sprintf("apiVersion: edge.clusterhub.dev/v1alpha1\nkind: EdgeNode\nmetadata: {name: %s}\nspec: {properties: [{name: purpose, value: retail}]}\n"+
		"status: {arch: amd64, namespace: %s, namespaceScoped: %v}\n", name, namespace, scoped)
}

const (
	policyYAML = "apiVersion: edge.clusterhub.dev/v1alpha1\nkind: DeploymentPolicy\nmetadata: {name: web, namespace: shop}\nspec:\n" +
		"  service: {name: web, clusterNamespace: blue, serviceVersions: [{version: 1.0.0}]}\n  constraints: [purpose == retail]\n"
	patternYAML = "apiVersion: edge.clusterhub.dev/v1alpha1\nkind: DeploymentPattern\nmetadata: {name: all, namespace: shop}\nspec:\n" +
		"  services: [{serviceUrl: web, serviceVersions: [{version: 1.0.0}]}, {serviceUrl: db, serviceVersions: [{version: 1.0.0}]}]\n"
)
