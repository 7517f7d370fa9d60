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

// permissionsPage returns the page about the permissions that the code checks, and those that the roles in artifacts/deploy grant.
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
	b.WriteString("The permissions that the programs of a hub check, and those that each role grants. [Permissions](../permissions.md) describes what a\n" +
		"permission allows in effect, and who should have it.\n\n## Checked permissions\n\n" +
		"The kube-apiserver of the hub checks the verb on the object, as for any other resource. The programs of the hub check these permissions in\n" +
		"addition. Of several rows of one plugin for one change, one permission is sufficient; if several plugins check it, one for each is required.\n\n| when | verb | resource | API group | name | checked by |\n|---|---|---|---|---|---|\n")
	for _, a := range asked {
		name := a.name
		if a.namespace != "" {
			name = strings.TrimPrefix(name+"; namespace: "+a.namespace, "; ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", a.when, code(a.verb), code(a.resource), code(a.group), inCell(name), code(a.by))
	}
	b.WriteString("\n## Roles\n\nThe roles in [`artifacts/deploy`](../operating.md#deploying), by folder. Every hub has those of `base`.\n")
	for _, f := range folders {
		fmt.Fprintf(&b, "\n### Folder %s\n", f.name)
		paragraph(&b, f.text)
		for _, r := range f.roles {
			fmt.Fprintf(&b, "\n#### %s\n", titled(f, r))
			paragraph(&b, r.text)
			paragraph(&b, givenTo(r, folders))
			if len(r.rules) == 0 {
				paragraph(&b, "Its rules are aggregated from other roles.")
				continue
			}
			b.WriteString("\n| verbs | resources | API groups | names | |\n|---|---|---|---|---|\n")
			for i, rule := range r.rules {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", codes(rule.Verbs), codes(append(rule.Resources, rule.NonResourceURLs...)), groupsOf(rule), codes(rule.ResourceNames), r.why[i])
			}
		}
		if own := foreign(f, folders); own != "" {
			paragraph(&b, "Bindings to other roles:")
			b.WriteString("\n" + own)
		}
	}
	statements(&b)
	err = sets(&b)
	return b.String(), err
}

// sets adds the roles of a set, by the example of one that selects by its label.
func sets(b *strings.Builder) error {
	b.WriteString("\n## Roles of a set\n\n`kubectl hub grant` creates them for a set and binds them to [the subjects of its flags](../permissions.md#roles-for-a-set). " +
		"These are the roles\nof a set SET that selects its clusters by the label `clusterset`.\n")
	for _, name := range slices.Backward(setroles.All) {
		rules, err := setroles.Rules(&v1beta1.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "SET"}}, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\n### ClusterRole %s\n\n| verbs | resources | API groups | names |\n|---|---|---|---|\n", setroles.Name("SET", name))
		for _, rule := range rules {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", codes(rule.Verbs), codes(rule.Resources), groupsOf(rule), codes(rule.ResourceNames))
		}
	}
	return nil
}

// titled returns the kind and the name of a role, and its namespace if it has one.
func titled(f folder, r role) string {
	if r.namespace == "" {
		return "ClusterRole " + r.name
	}
	return "Role " + r.name + " in " + r.namespace
}

// foreign returns the bindings of a folder to roles that are in no folder.
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
	if name == "" || strings.Contains(name, " ") && (!strings.Contains(name, "`") || strings.HasSuffix(name, "`")) { // a phrase, which may end with code
		return name
	}
	return "`" + name + "`"
}
