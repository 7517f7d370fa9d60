// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// The table says what each account has on each cluster, no more and no less.
func TestPermissions_OfKlusterletsMatchDocs(t *testing.T) {
	managed, management, err := deploy.Klusterlet{Name: "K", Namespace: "m", Detached: true, AgentNamespace: "a"}.Split()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, objects := range [][]*unstructured.Unstructured{managed, management} {
		where := []string{"managed | everywhere", "management | namespace of the pods"}[i]
		rules := map[string][]rbacv1.PolicyRule{}
		for _, o := range objects {
			role := &rbacv1.ClusterRole{}
			if strings.HasSuffix(o.GetKind(), "Role") {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
					t.Fatal(err)
				}
				rules[o.GetKind()+role.Name] = role.Rules
			}
		}
		for _, o := range objects {
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			ref, _, _ := unstructured.NestedStringMap(o.Object, "roleRef")
			for _, s := range subjects {
				for _, rule := range rules[ref["kind"]+ref["name"]] {
					want = append(want, rows(s.(map[string]any)["name"].(string), where, rule)...)
				}
			}
		}
	}
	text, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "| `K-") {
			got = append(got, line)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) < 10 {
		t.Errorf("docs/permissions.md has\n%s\nand the manifests have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// rows has a line for each resource and each name.
func rows(account, where string, rule rbacv1.PolicyRule) (lines []string) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, name := range names {
				what := "`" + strings.TrimSuffix(resource+"."+group, ".") + "`"
				if name != "" {
					what += " named " + name
				}
				lines = append(lines, fmt.Sprintf("| `%s` | %s | %s | %s |", account, where, what, strings.Join(rule.Verbs, ", ")))
			}
		}
	}
	return lines
}
