// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"strings"
	"testing"
)

func TestSetMapping(t *testing.T) {
	other := strings.ReplaceAll(ours, "system:open-cluster-management:c", "x")
	for name, test := range map[string]struct{ document, want string }{
		"nothing":                        {"", ours},
		"white space":                    {"  \n", ours},
		"what EKS takes for empty":       {`""`, ours},
		"an empty list":                  {"[]\n", ours},
		"null":                           {"null\n", ours},
		"only a comment":                 {"# nobody yet\n", "# nobody yet\n\n" + ours},
		"other entries":                  {nodes, strings.ReplaceAll(nodes, "   #", " #") + ours},
		"a list in one line":             {"[{rolearn: a, groups: [b]}]\n", ""},
		"a comment at the end":           {"- rolearn: a\n# the end\n", ""},
		"it is there":                    {nodes + ours, nodes + ours},
		"in any case":                    {strings.Replace(strings.ToUpper(ours[:16]), "- ROLEARN", "- roleARN", 1) + ours[16:], ""},
		"with groups in any order":       {"- {groups: [system:open-cluster-management:managed-clusters, system:open-cluster-management:c], username: system:open-cluster-management:c, rolearn: " + role1AR + "}\n", ""},
		"another user":                   {strings.Replace(ours, "username: system:open-cluster-management:c", "username: admin", 1), ours},
		"a group more":                   {ours + "    - system:masters\n", ours},
		"no groups":                      {"- rolearn: " + role1AR + "\n  username: system:open-cluster-management:c\n", ours},
		"twice, the last wrong":          {ours + other, ours},
		"in other letters":               {strings.ReplaceAll(other, "role/ocm", "ROLE/OCM"), ours},
		"between others, with a comment": {"- rolearn: a\n# of the hub\n" + other + "- rolearn: b\n", "- rolearn: a\n# of the hub\n" + ours + "- rolearn: b\n"},
		"quoted":                         {strings.ReplaceAll(ours, role1AR, `"`+role1AR+`"`), ""},
		"aliases of others":              {"- &a\n  rolearn: a\n  groups: &g [b]\n- *a\n- rolearn: c\n  groups: *g\n", ""},
		"an alias of our own entry":      {"- &a {rolearn: " + role1AR + ", username: x}\n", ours},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := setMapping(test.document, role1AR, "c")
			if err != nil {
				t.Fatal(err)
			}
			if test.want != "" {
				mustEqual(t, "document", got, test.want)
			}
			// Once is enough, and all others are as they were.
			again, err := setMapping(got, role1AR, "c")
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "the next", again, got)
			mustEqual(t, "others", othersOf(t, got), othersOf(t, test.document))
			_, list, err := readMapRoles(got)
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for _, item := range list.Content {
				if isOf(item, role1AR) {
					count++
					mustEqual(t, "user", field(item, "username"), "system:open-cluster-management:c")
				}
			}
			mustEqual(t, "entries", count, 1)
			for _, line := range strings.Split(test.document, "\n") {
				if _, comment, ok := strings.Cut(line, "#"); ok && !strings.Contains(got, "#"+comment) {
					t.Errorf("the comment %q is lost in\n%s", comment, got)
				}
			}

			gone, err := dropMapping(got, role1AR, "c", false)
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "others after", othersOf(t, gone), othersOf(t, test.document))
			if strings.Contains(gone, role1AR) {
				t.Errorf("it is left in\n%s", gone)
			}
		})
	}
}

// othersOf returns what the document says of other roles.
func othersOf(t *testing.T, document string) (others []any) {
	t.Helper()
	_, list, err := readMapRoles(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Content {
		if !isOf(item, role1AR) {
			var v any
			if err := item.Decode(&v); err != nil {
				t.Fatal(err)
			}
			others = append(others, v)
		}
	}
	return others
}

func TestMapRoles_RefusesWhatItCannotRead(t *testing.T) {
	for name, document := range map[string]string{
		"no YAML":            "- a: [",
		"a map":              "rolearn: a\n",
		"a text":             "hello\n",
		"a list of texts":    "- rolearn\n",
		"a list in a list":   "- - rolearn: a\n",
		"two documents":      "- rolearn: a\n---\n- rolearn: b\n",
		"an item of nothing": "- rolearn: a\n-\n",
		"tabs":               "-\trolearn: a\n\tb: c\n",
		"a bad alias":        "- *a\n",
		// Others use what our own entry defines.
		"our anchor": "- rolearn: " + role1AR + "\n  username: x\n  groups: &g [a]\n- rolearn: b\n  groups: *g\n",
	} {
		if got, err := setMapping(document, role1AR, "c"); err == nil {
			t.Errorf("%s: got\n%s", name, got)
		}
		if got, err := dropMapping(document, role1AR, "c", true); err == nil {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

func TestSetMapping_RefusesTheEntryOfAnother(t *testing.T) {
	_, err := setMapping(ours, role1AR, "b")
	if err == nil || !strings.Contains(err.Error(), `belongs to the ManagedCluster "c"`) {
		t.Errorf("got %v", err)
	}
}

func TestDropMapping_TakesOnlyTheClusters(t *testing.T) {
	nobodys := strings.Replace(ours, "username: system:open-cluster-management:c", "username: x", 1)
	for name, test := range map[string]struct {
		document, cluster string
		mine              bool
		want              string
	}{
		"its own":                             {ours, "c", false, "[]\n"},
		"another's":                           {ours, "b", false, ours},
		"another's, also if the role is ours": {ours, "b", true, ours},
		"nobody's":                            {nobodys, "c", false, nobodys},
		"nobody's, if the role is ours":       {nobodys, "c", true, "[]\n"},
		"the same user by another role":       {strings.ReplaceAll(ours, role1AR, "x"), "c", true, strings.ReplaceAll(ours, role1AR, "x")},
		"both of two":                         {ours + ours, "c", true, "[]\n"},
	} {
		got, err := dropMapping(test.document, role1AR, test.cluster, test.mine)
		if err != nil || got != test.want {
			t.Errorf("%s: got %v,\n%s", name, err, got)
		}
	}
}
