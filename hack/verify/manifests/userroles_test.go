// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/setroles"
)

// grantsTable is the section of docs/permissions.md with what each ClusterRole grants. It is written by hand: docs/reference/permissions.md is
// generated from the manifests, and follows a rule that was dropped by mistake.
const grantsTable = "\n## What each role grants\n"

// TestClusterRoles_MatchDocs compares the ClusterRoles of a hub that no manifest binds to a ServiceAccount, and those of a
// set, with the table. The rights of the servers are compared with what controllers state.
func TestClusterRoles_MatchDocs(t *testing.T) {
	const chart = "../../../artifacts/charts/clusterhub/templates/hub/rbac.yaml"
	template, err := os.ReadFile(chart)
	if err != nil {
		t.Fatal(err)
	}
	// No rule and no label for aggregation depends on a value.
	lines := slices.DeleteFunc(bytes.SplitAfter(template, []byte("\n")), func(line []byte) bool { return bytes.Contains(line, []byte("{{")) })
	documented := documentedGrants(t)
	for source, objects := range map[string][]runtime.Object{
		"artifacts/deploy/base": built(t, "base"),
		"artifacts/charts":      decoded(t, bytes.Join(lines, nil)),
	} {
		got := grantsOf(append(objects, rolesOfASet(t)...))
		for grant := range documented.Difference(got) {
			t.Errorf("docs/permissions.md lists what %s does not have: %s", source, grant)
		}
		for grant := range got.Difference(documented) {
			t.Errorf("%s has what docs/permissions.md does not list: %s", source, grant)
		}
	}
}

// rolesOfASet returns the ClusterRoles that kubectl hub grant makes for a set that selects by the label clusterset.
func rolesOfASet(t *testing.T) (all []runtime.Object) {
	t.Helper()
	set := &v1beta1.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "SET"}}
	for _, role := range setroles.All {
		rules, err := setroles.Rules(set, role)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: setroles.Name(set.Name, role)}, Rules: rules})
	}
	return all
}

// grantsOf returns one line for each right of each ClusterRole that is not bound to a ServiceAccount, and one for the users who have the role.
func grantsOf(objects []runtime.Object) sets.Set[string] {
	ofServers, ofAll := sets.New[string](), sets.New[string]()
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			for _, s := range o.Subjects {
				switch {
				case s.Kind == rbacv1.ServiceAccountKind:
					ofServers.Insert(o.RoleRef.Name)
				case s.Kind == rbacv1.GroupKind && s.Name == user.AllAuthenticated:
					ofAll.Insert(o.RoleRef.Name)
				}
			}
		case *rbacv1.RoleBinding:
			ofServers.Insert(o.RoleRef.Name)
		}
	}
	grants := sets.New[string]()
	for _, o := range objects {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok || ofServers.Has(role.Name) {
			continue
		}
		var holders []string
		for _, of := range []string{"admin", "edit", "view"} {
			if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+of] == "true" {
				holders = append(holders, "`"+of+"`")
			}
		}
		holder := strings.Join(holders, ", ")
		switch {
		case holder == "" && ofAll.Has(role.Name):
			holder = "all users"
		case holder == "":
			holder = "whom it is bound to"
		}
		grants.Insert(heldBy(role.Name, holder))
		for _, rule := range role.Rules {
			for r := range eachOf("", rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs) {
				grants.Insert(grant(role.Name, r.verb, spelled(r), r.name))
			}
			for r := range eachOf("", []string{""}, rule.NonResourceURLs, nil, rule.Verbs) {
				grants.Insert(grant(role.Name, r.verb, r.resource, ""))
			}
		}
	}
	return grants
}

func heldBy(role, holder string) string { return role + ": held by " + holder }

func grant(role, verb, resource, name string) string {
	return strings.TrimSuffix(role+": "+verb+" "+resource+" "+name, " ")
}

// spelled returns the resource of a right as kubectl takes it: RESOURCE.GROUP/SUBRESOURCE.
func spelled(r right) string {
	resource, subresource, ok := strings.Cut(r.resource, "/")
	resource = strings.TrimSuffix(resource+"."+r.group, ".")
	if ok {
		resource += "/" + subresource
	}
	return resource
}

// documentedRows calls do with the five cells of each row of the table in a section of docs/permissions.md.
func documentedRows(t *testing.T, section string, do func(cells []string)) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), section)
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 {
			t.Fatalf("a row has %d columns, want 5: %s", len(cells), line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		do(cells)
	}
}

// eachGrant returns the lines of the cells for resources, names and verbs.
func eachGrant(holder, resources, names, verbs string) sets.Set[string] {
	list := func(cell string) []string { return strings.Split(strings.ReplaceAll(cell, "`", ""), ", ") }
	all, named := sets.New[string](), list(names)
	if names == "all" {
		named = []string{""}
	}
	for _, resource := range list(resources) {
		for _, name := range named {
			for _, verb := range list(verbs) {
				all.Insert(grant(holder, verb, resource, name))
			}
		}
	}
	return all
}

// documentedGrants returns the lines of grantsOf for the table of ClusterRoles.
func documentedGrants(t *testing.T) sets.Set[string] {
	t.Helper()
	grants := sets.New[string]()
	documentedRows(t, grantsTable, func(cells []string) {
		role := strings.Trim(cells[0], "`")
		grants.Insert(heldBy(role, cells[1]))
		grants = grants.Union(eachGrant(role, cells[2], cells[3], cells[4]))
	})
	if len(grants) < 100 {
		t.Fatalf("docs/permissions.md has a table of %d grants", len(grants))
	}
	return grants
}

// TestServers_RightsMatchDocs compares the rights of the ServiceAccounts of a hub with the table of the servers. No
// controller states those of hub-apiserver and of the provider.
func TestServers_RightsMatchDocs(t *testing.T) {
	documented := sets.New[string]()
	documentedRows(t, "\n## What the servers of a hub may do\n", func(cells []string) {
		documented = documented.Union(eachGrant(strings.Trim(cells[0], "`")+" "+strings.ReplaceAll(cells[4], "`", ""), cells[1], cells[2], cells[3]))
	})
	// The roles of Kubernetes that the manifests bind.
	objects := append(append(built(t, "base"), built(t, "cluster-provider")...),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:auth-delegator"}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"create"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}},
			{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}}}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication-reader"}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"extension-apiserver-authentication"}}}})
	got := sets.New[string]()
	for account, namespace := range map[string]string{"hub-apiserver": "clusterhub-system", "hub-controller-manager": "clusterhub-system",
		"hub-certificate-approver": "clusterhub-system", "cluster-provider-kubeconfig": "openmcp-system"} {
		rights := granted(objects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
		for r := range rights {
			where := "everywhere"
			if r.namespace != "" {
				where = "in " + r.namespace
				if everywhere := (right{group: r.group, resource: r.resource, name: r.name, verb: r.verb}); rights.Has(everywhere) {
					continue
				}
			}
			got.Insert(grant(account+" "+where, r.verb, spelled(r), r.name))
		}
	}
	for missing := range documented.Difference(got) {
		t.Errorf("docs/permissions.md lists what the manifests do not grant: %s", missing)
	}
	for more := range got.Difference(documented) {
		t.Errorf("the manifests grant what docs/permissions.md does not list: %s", more)
	}
	if len(documented) < 100 {
		t.Errorf("docs/permissions.md has a table of %d rights", len(documented))
	}
}
