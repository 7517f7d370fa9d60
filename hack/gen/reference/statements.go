// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/controllers/manager"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator"
)

// statements adds the rights that each controller states of itself.
func statements(b *strings.Builder) {
	b.WriteString("\n## Permissions of controllers\n\nThe permissions that each controller declares in the code. A test compares them with the roles above, which have all of them and, in\naddition, only those that the process itself needs, such as for leader election. " +
		"If a component is named, its folder of `artifacts/deploy` grants the permission,\nwhich only a flag requires.\n")
	for _, program := range []struct {
		name string
		all  []kit.Controller
	}{
		{"hub-controller-manager", manager.NewOptions().Statements()}, {"hub-operator", operator.NewOptions().Statements()},
	} {
		fmt.Fprintf(b, "\n### Controllers of %s\n\n| controller | verbs | resource | API group | names | where |\n|---|---|---|---|---|---|\n", program.name)
		for _, c := range program.all {
			name, rows := code(c.Name), []string(nil)
			for _, r := range c.Rights {
				where := "everywhere"
				if r.Namespace != "" {
					where = "in " + code(r.Namespace)
				}
				if r.Component != "" {
					where += ", by the component " + code(r.Component)
				}
				group := r.Group
				if group == "" {
					group = "core"
				}
				row := fmt.Sprintf("| %s | %s | %s | %s | %s |\n", codes(r.Verbs), code(r.Resource), code(group), codes(r.Names), where)
				if slices.Contains(rows, row) {
					continue
				}
				rows = append(rows, row)
				b.WriteString("| " + name + " " + row)
				name = "" // of the rows that follow
			}
		}
	}
}
