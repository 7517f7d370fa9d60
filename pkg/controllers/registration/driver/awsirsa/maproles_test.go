// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"strings"
	"testing"
)

func setMapping(text, arn, cluster string) (string, error) {
	m, err := readMapRoles(text)
	if err == nil {
		err = m.set(arn, cluster)
	}
	if err != nil {
		return "", err
	}
	return m.write()
}

func dropMapping(text, arn, cluster string, mine bool) (string, error) {
	m, err := readMapRoles(text)
	if err != nil {
		return "", err
	}
	m.drop(arn, cluster, mine)
	return m.write()
}

func TestSetMapping(t *testing.T) {
	other := strings.ReplaceAll(ours, "system:open-cluster-management:c", "x")
	for name, test := range map[string]struct{ document, want string }{
		"nothing":                        {"", ours},
		"white space":                    {"  \n", ours},
		"what EKS takes for empty":       {`""`, ours},
		"an empty list":                  {"[]\n", ours},
		"null":                           {"null\n", ours},
		"only a comment":                 {"# nobody yet\n", "# nobody yet\n\n" + ours},
		"other entries":                  {nodes, nodes + ours},
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
			// A second call changes nothing, and all other entries are unchanged.
			again, err := setMapping(got, role1AR, "c")
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "the next", again, got)
			mustEqual(t, "others", othersOf(t, got), othersOf(t, test.document))
			m, err := readMapRoles(got)
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for _, item := range m.list.Content {
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

// othersOf returns the entries of other roles.
func othersOf(t *testing.T, document string) (others []any) {
	t.Helper()
	m, err := readMapRoles(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range m.list.Content {
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

func TestMapRoles_RejectsUnreadable(t *testing.T) {
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

func TestSetMapping_RejectsForeignEntry(t *testing.T) {
	_, err := setMapping(ours, role1AR, "b")
	if err == nil || !strings.Contains(err.Error(), `belongs to the ManagedCluster "c"`) {
		t.Errorf("got %v", err)
	}
}

func TestDropMapping_RemovesOnlyEntryOfCluster(t *testing.T) {
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

// Entries of others are preserved byte by byte, however they are written: spaces, quotes, comments, empty lines, carriage returns.
func TestMapRoles_PreservesFormattingOfOthers(t *testing.T) {
	const (
		a = "- rolearn:   'a'   # one\n  groups:\n  - \"x\"\n  -   y\n"
		b = "-\n  rolearn: >-\n    b\n    c\n  username: |\n    x\n\n    # no comment\n"
	)
	mine := strings.Replace(ours, "username: system:open-cluster-management:c", "username: x", 1)
	indented := func(s string, by string) string {
		return by + strings.TrimSuffix(strings.ReplaceAll(s, "\n", "\n"+by), by)
	}
	for name, test := range map[string]struct{ document, set, drop string }{
		"at the end":                     {a, a + ours, a},
		"after a comment":                {a + "# the end\n\n", a + "# the end\n\n" + ours, a + "# the end\n\n"},
		"without a line's end":           {strings.TrimSuffix(a, "\n"), a + ours, a},
		"in the place of a wrong one":    {a + mine + "\n# of a\n" + a, a + ours + "\n# of a\n" + a, a + "\n# of a\n" + a},
		"in the place of two":            {mine + a + mine + "# of b\n", ours + a + "# of b\n", a + "# of b\n"},
		"below a document's mark":        {"# head\n---\n" + a, "# head\n---\n" + a + ours, "# head\n---\n" + a},
		"of indented entries":            {indented(a, "    "), indented(a+ours, "    "), indented(a, "    ")},
		"with a dash on a line":          {"-\n  rolearn: a\n", "-\n  rolearn: a\n" + ours, "-\n  rolearn: a\n"},
		"with texts of many lines":       {a + strings.Replace(b, "-\n  rolearn", "- rolearn", 1), a + strings.Replace(b, "-\n  rolearn", "- rolearn", 1) + ours, ""},
		"of carriage returns":            {strings.ReplaceAll(a, "\n", "\r\n"), strings.ReplaceAll(a, "\n", "\r\n") + ours, strings.ReplaceAll(a, "\n", "\r\n")},
		"with names of what comes later": {"- &x {rolearn: a}\n- *x\n", "- &x {rolearn: a}\n- *x\n" + ours, "- &x {rolearn: a}\n- *x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := setMapping(test.document, role1AR, "c")
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "set", set, test.set)
			if test.drop == "" {
				test.drop = test.document
			}
			dropped, err := dropMapping(set, role1AR, "c", false)
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "dropped", dropped, test.drop)
		})
	}
}

// FuzzMapRoles verifies that all entries of others keep their meaning, whatever an admin has written.
func FuzzMapRoles(f *testing.F) {
	for _, seed := range []string{nodes, nodes + ours, ours, "[]", "- &a {rolearn: a}\n- *a\n", "- rolearn: |\n    a\n    # b\n", "- {a: b}\n...\n", "- {0}\n..."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) {
		m, err := readMapRoles(document)
		if err != nil || m.list.Decode(&[]any{}) != nil {
			return
		}
		set, err := setMapping(document, role1AR, "c")
		if err != nil {
			return
		}
		mustEqual(t, "others after it was set", othersOf(t, set), othersOf(t, document))
		if again, err := setMapping(set, role1AR, "c"); err != nil || again != set {
			t.Errorf("the next is %q, %v", again, err)
		}
		dropped, err := dropMapping(set, role1AR, "c", false)
		if err != nil {
			t.Fatal(err)
		}
		mustEqual(t, "others after it was dropped", othersOf(t, dropped), othersOf(t, document))
	})
}
