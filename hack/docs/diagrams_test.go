// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
)

var (
	diagram    = regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```")
	node       = regexp.MustCompile(`\["([^"\]]*)"\]`)
	kindType   = regexp.MustCompile(`(?m)^type ([A-Z]\w+) struct`)
	controller = regexp.MustCompile(`(?m)^controller ([a-z-]+):`)
)

// TestDocs_DiagramNodesExist verifies that each node of a diagram is a kind, a program, a controller, or a role of a user.
func TestDocs_DiagramNodesExist(t *testing.T) {
	known := knownNodes(t)
	diagrams := 0
	err := filepath.WalkDir(root+"/docs", func(file string, entry os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".md") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, d := range diagram.FindAllSubmatch(text, -1) {
			diagrams++
			for _, name := range unknownNodes(string(d[1]), known) {
				t.Errorf("%s: a diagram has %q, which is no kind, program, controller or role of a user", file, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diagrams < 5 {
		t.Errorf("the documentation has %d diagrams only", diagrams)
	}
}

func TestUnknownNodes(t *testing.T) {
	const text = "flowchart LR\n  a[\"hub-agent\"] -- renews --> l[\"Lease\"]\n  a --> x[\"ManagedClusters\"]\n  u[\"hub-agents\"] --> a\n"
	if got := unknownNodes(text, knownNodes(t)); !slices.Equal(got, []string{"ManagedClusters", "hub-agents"}) {
		t.Errorf("got %q", got)
	}
	if got := unknownNodes("flowchart LR\n  a --> b\n", nil); len(got) != 1 {
		t.Errorf("a diagram without a node: %q", got)
	}
}

// unknownNodes returns the labels of the nodes of a diagram that are not known. A diagram without nodes is an unknown one.
func unknownNodes(text string, known []string) (unknown []string) {
	nodes := node.FindAllStringSubmatch(text, -1)
	if len(nodes) == 0 {
		return []string{text}
	}
	for _, n := range nodes {
		if !slices.Contains(known, n[1]) {
			unknown = append(unknown, n[1])
		}
	}
	return unknown
}

// knownNodes returns the kinds of the hub and of Kubernetes, the programs, the controllers, and roles of users.
func knownNodes(t *testing.T) []string {
	t.Helper()
	known := []string{"admin", "author", "team", "objects", "kube-apiserver"}
	for name := range scheme.Scheme.AllKnownTypes() {
		known = append(known, name.Kind)
	}
	for _, files := range []string{"/cmd/*", "/pkg/apis/*/v*/types_*.go", "/pkg/apis/operator/v1/*.go", "/test/wiring/testdata/hub-controller-manager-all.golden"} {
		found, err := filepath.Glob(root + files)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %d files", files, err, len(found))
		}
		for _, file := range found {
			if filepath.Base(filepath.Dir(file)) == "cmd" {
				known = append(known, filepath.Base(file))
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, pattern := range []*regexp.Regexp{kindType, controller} {
				for _, match := range pattern.FindAllSubmatch(text, -1) {
					known = append(known, string(match[1]))
				}
			}
		}
	}
	return known
}
