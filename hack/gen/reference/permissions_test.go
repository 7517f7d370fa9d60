// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRequiredRights_AllDocumented tries what fails the build: a place that asks for a right and does not say when, one of which not all can be read, and a
// comment about a right that is not asked for any more.
func TestRequiredRights_AllDocumented(t *testing.T) {
	const head = "package x\n\nimport \"github.com/clusterhub/clusterhub/pkg/apis/cluster\"\n\nconst PluginName = \"Weather\"\n\nfunc f(verb string) any {\n"
	const rule = "return rbac.Permission{Verb: \"create\", Group: cluster.GroupName, Resource: \"managedclusters\", Subresource: \"rain\", Name: name}\n}\n"
	for name, test := range map[string]struct{ text, want, refused string }{
		"told":           {"// Permission (name: the cloud): it rains.\n" + rule, "it rains create managedclusters/rain cluster.open-cluster-management.io the cloud Weather", ""},
		"on the object":  {"// Permission: it rains.\nreturn p.Require(ctx,\npermission.On(a, \"delete\", \"\"))\n}\n", "it rains delete that of the object that of the object the object Weather", ""},
		"not told":       {rule, "", "asks for a right: say above it"},
		"without a name": {"// Permission: it rains.\n" + rule, "", "the name is none that can be read here"},
		"a variable":     {"// Permission (name: the cloud): it rains.\n" + strings.Replace(rule, "\"create\"", "verb", 1), "", "the verb is none that can be read here"},
		"a wrong key":    {"// Permission (nam: the cloud): it rains.\n" + rule, "", "expected keys of verb, resource, name, namespace"},
		"asked no more":  {"// Permission: it rains.\nreturn nil\n}\n", "", "stands above nothing that asks for a right"},
		"handed on":      {"return authorizer.AttributesRecord{Verb: q.verb, Name: q.name, APIVersion: \"v1\", ResourceRequest: true}\n}\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			folder := filepath.Join(root, "pkg", "admission", "x")
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "x.go"), []byte(head+test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := askedFor(root)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got the error %v, want one with %q", err, test.refused)
				}
				return
			}
			var got []string
			for _, a := range all {
				got = append(got, strings.Join([]string{a.when, a.verb, a.resource, a.group, a.name, a.by}, " "))
			}
			if said := strings.Join(got, "\n"); err != nil || said != test.want {
				t.Errorf("got %q and the error %v, want %q", said, err, test.want)
			}
		})
	}
}

// TestPermissions_AreComplete counts what the page must have in another way than it is made: plugins that ask for rights, and roles.
func TestPermissions_AreComplete(t *testing.T) {
	page, err := permissionsPage(root)
	if err != nil {
		t.Fatal(err)
	}
	asking := matches(t, `permission\.NewGuard(PluginName`, "pkg/admission", "*admission.go")
	for _, file := range asking {
		if plugin := pluginOf(filepath.Dir(filepath.Join(root, file))); plugin == "" || !strings.Contains(page, "| `"+plugin+"` |\n") {
			t.Errorf("the page has no right that the plugin %q of %s asks for", plugin, file)
		}
	}
	roles := 0
	for _, kind := range []string{"ClusterRole", "Role"} {
		of := len(matches(t, "^kind: "+kind+"$", "artifacts/deploy", "*.yaml"))
		if written := strings.Count(page, "\n#### "+kind+" "); written != of {
			t.Errorf("the page has %d of the kind %s, and the manifests have %d", written, kind, of)
		}
		roles += of
	}
	if len(asking) < 10 || roles < 30 {
		t.Errorf("only %d plugins ask for rights, and there are only %d roles", len(asking), roles)
	}
}

// matches has a file's name for each line that matches.
func matches(t *testing.T, pattern, folder, files string) []string {
	t.Helper()
	command := exec.Command("grep", "-rh", "--with-filename", "--include="+files, "-e", pattern, folder)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		name, _, _ := strings.Cut(line, ":")
		names = append(names, name)
	}
	return names
}
