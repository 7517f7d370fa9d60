// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/setroles"
)

// permissionsPage has what the code asks for, and what the roles in artifacts/deploy give.
func permissionsPage(root string) (string, error) {
	asked, err := askedFor(root)
	if err != nil {
		return "", err
	}
	folders, err := deployed(root)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("Which rights the programs of a hub ask for, and which roles give what to whom. What the rights are worth, and whom to give them, is in\n" +
		"[Permissions](../permissions.md).\n\n## What is asked for\n\n" +
		"The kube-apiserver of the hub asks for the verb on the object, as for any other. The programs of the hub ask for these besides. Of the\n" +
		"rows of one plugin about one change, one right is enough; where several plugins ask, it takes one right for each.\n\n| when | verb | resource | of group | name | asked by |\n|---|---|---|---|---|---|\n")
	for _, a := range asked {
		name := a.name
		if a.namespace != "" {
			name = strings.TrimPrefix(name+"; namespace: "+a.namespace, "; ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", a.when, code(a.verb), code(a.resource), code(a.group), inCell(name), code(a.by))
	}
	b.WriteString("\n## What roles give\n\nThe roles of [`artifacts/deploy`](../operating.md#deploying), by its folders. `base` is in every hub.\n")
	for _, f := range folders {
		fmt.Fprintf(&b, "\n### Folder %s\n", f.name)
		paragraph(&b, f.text)
		for _, r := range f.roles {
			fmt.Fprintf(&b, "\n#### %s\n", titled(f, r))
			paragraph(&b, r.text)
			paragraph(&b, givenTo(r, folders))
			if len(r.rules) == 0 {
				paragraph(&b, "What is in it comes from other roles.")
				continue
			}
			b.WriteString("\n| verbs | resources | of group | names | |\n|---|---|---|---|---|\n")
			for i, rule := range r.rules {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", codes(rule.Verbs), codes(append(rule.Resources, rule.NonResourceURLs...)), groupsOf(rule), codes(rule.ResourceNames), r.why[i])
			}
		}
		if own := foreign(f, folders); own != "" {
			paragraph(&b, "Of roles from elsewhere:")
			b.WriteString("\n" + own)
		}
	}
	statements(&b)
	err = sets(&b)
	return b.String(), err
}

// sets adds the roles of a set, by the example of one that selects by its label.
func sets(b *strings.Builder) error {
	b.WriteString("\n## Roles of a set\n\n`kubectl hub grant` makes them for a set and gives them to [whom it is told](../permissions.md#roles-for-a-set). " +
		"Here they are for a set SET that has\nits clusters by the label `clusterset`.\n")
	for _, name := range slices.Backward(setroles.All) {
		rules, err := setroles.Rules(&v1beta1.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "SET"}}, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\n### ClusterRole %s\n\n| verbs | resources | of group | names |\n|---|---|---|---|\n", setroles.Name("SET", name))
		for _, rule := range rules {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", codes(rule.Verbs), codes(rule.Resources), groupsOf(rule), codes(rule.ResourceNames))
		}
	}
	return nil
}

// titled is the name of a role, with its namespace where it has one.
func titled(f folder, r role) string {
	if r.namespace == "" {
		return "ClusterRole " + r.name
	}
	return "Role " + r.name + " in " + r.namespace
}

// foreign are the bindings of a folder to roles that are in none.
func foreign(f folder, all []folder) string {
	var rows string
	for _, b := range f.bindings {
		if slices.ContainsFunc(all, func(f folder) bool {
			return slices.ContainsFunc(f.roles, func(r role) bool { return r.name == b.to.Name })
		}) {
			continue
		}
		given := givenTo(role{name: b.to.Name, namespace: map[bool]string{true: b.namespace}[b.to.Kind == "Role"]}, []folder{f})
		if row := fmt.Sprintf("- %s `%s`: %s%s\n", b.to.Kind, b.to.Name, strings.ToLower(given[:1]), given[1:]); !strings.Contains(rows, row) {
			rows += row
		}
	}
	return rows
}

func paragraph(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString("\n" + text + "\n")
	}
}

func groupsOf(r rbacv1.PolicyRule) string {
	groups := slices.Clone(r.APIGroups)
	if at := slices.Index(groups, ""); at >= 0 {
		groups[at] = "core"
	}
	return codes(groups)
}

// codes are names in the type of code.
func codes(all []string) string {
	names := make([]string, len(all))
	for i, name := range all {
		names[i] = code(name)
	}
	return strings.Join(names, ", ")
}

func code(name string) string {
	if name == "" || strings.Contains(name, " ") && !strings.Contains(name, "`") { // a phrase
		return name
	}
	return "`" + name + "`"
}
