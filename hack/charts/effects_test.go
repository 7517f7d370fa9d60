// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"
)

// effect is the change of the rendered objects when a value is set.
type effect struct {
	// set is the value, as YAML.
	set string
	// changes are the differences: each is a pattern for at least one, and there is no other. "+ Kind name" is an object that comes,
	// "- Kind name" one that goes, and "+ Kind name path: value" and "- Kind name path: value" are about one field. * is any text.
	changes []string
	// with are values that the value has no meaning without, as YAML.
	with string
}

// TestValues_AllHaveEffect: each value of the charts does what its case says, and nothing else.
func TestValues_AllHaveEffect(t *testing.T) {
	for chart, cases := range map[string]map[string]effect{Hub: hubEffects(), Agent: agentEffects()} {
		leaves := leavesOf(t, chart)
		for _, leaf := range leaves {
			if _, found := cases[leaf]; !found {
				t.Errorf("%s: no case says what the value %s does. Add a line to hack/charts/effects_%s_test.go, such as\n\t%q: {set: `…`, changes: []string{\"+ Deployment *\"}},\n"+
					"and run this test: it prints what the value changes.", chart, leaf, map[string]string{Hub: "hub", Agent: "agent"}[chart], leaf)
			}
		}
		before := &renders{chart: chart}
		for _, leaf := range slices.Sorted(maps.Keys(cases)) {
			if !slices.Contains(leaves, leaf) {
				t.Errorf("%s: there is no value %s", chart, leaf)
				continue
			}
			t.Run(chart+" "+leaf, func(t *testing.T) {
				t.Parallel()
				c := cases[leaf]
				var value any
				with := map[string]any{}
				if err := sigsyaml.Unmarshal([]byte(c.set), &value); err != nil {
					t.Fatal(err)
				}
				if err := sigsyaml.Unmarshal([]byte(c.with), &with); err != nil {
					t.Fatal(err)
				}
				// This is refused where agents usually are.
				namespace := namespaceOf(chart, map[string]string{"namespaceScoped": "namespace"}[leaf])
				old := before.get(t, namespace, c.with, with)
				compare(t, old, flat(t, chart, namespace, setAt(with, strings.Split(leaf, "."), value)), c.changes)
			})
		}
	}
}

// renders are the objects of a chart before a value is set, rendered once.
type renders struct {
	chart string
	lock  sync.Mutex
	done  map[string]map[string]map[string]int
}

func (r *renders) get(t *testing.T, namespace, with string, values map[string]any) map[string]map[string]int {
	t.Helper()
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.done == nil {
		r.done = map[string]map[string]map[string]int{}
	}
	key := namespace + " " + with
	if r.done[key] == nil {
		r.done[key] = flat(t, r.chart, namespace, values)
	}
	return r.done[key]
}

// flat are the objects of a chart, each as its fields with their values: how often it has each.
func flat(t *testing.T, chart, namespace string, values map[string]any) map[string]map[string]int {
	t.Helper()
	all := map[string]map[string]int{}
	for _, o := range objects(t, chart, namespace, values) {
		name := o.GetKind() + " " + o.GetName()
		if ns := o.GetNamespace(); ns != "" && ns != namespace {
			name = o.GetKind() + " " + ns + "/" + o.GetName()
		}
		if all[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		all[name] = map[string]int{}
		flatten(all[name], "", o.Object)
	}
	return all
}

func flatten(fields map[string]int, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			flatten(fields, strings.TrimPrefix(path+"."+key, "."), below)
		}
	case []any:
		for i, element := range v {
			at := path
			if m, ok := element.(map[string]any); ok {
				at = fmt.Sprintf("%s[%d]", path, i)
				if name, ok := m["name"].(string); ok {
					at = fmt.Sprintf("%s[%s]", path, name)
				}
			}
			flatten(fields, at, element)
		}
	default:
		fields[fmt.Sprintf("%s: %v", path, v)]++
	}
}

// compare wants exactly the differences that patterns say.
func compare(t *testing.T, before, after map[string]map[string]int, patterns []string) {
	t.Helper()
	var differences []string
	one := func(sign string, a, b map[string]map[string]int) {
		for name, fields := range b {
			if a[name] == nil {
				differences = append(differences, sign+name)
				continue
			}
			for field, n := range fields {
				if n > a[name][field] {
					differences = append(differences, sign+name+" "+field)
				}
			}
		}
	}
	one("- ", after, before)
	one("+ ", before, after)
	slices.Sort(differences)
	found := make([]bool, len(patterns))
	var unsaid []string
	for _, difference := range differences {
		said := false
		for i, pattern := range patterns {
			if matches(pattern, difference) {
				found[i], said = true, true
			}
		}
		if !said {
			unsaid = append(unsaid, difference)
		}
	}
	if len(unsaid) > 0 {
		t.Errorf("it also changes\n\t%s", strings.Join(unsaid, "\n\t"))
	}
	for i, pattern := range patterns {
		if !found[i] {
			t.Errorf("it does not change %q", pattern)
		}
	}
	if len(patterns) == 0 {
		t.Error("no change is wanted: then it is no value")
	}
}

func matches(pattern, text string) bool {
	return regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(text)
}

// leavesOf are the paths of a chart's values, as they are in the schema.
func leavesOf(t *testing.T, chart string) (paths []string) {
	t.Helper()
	values := map[string]any{}
	if err := sigsyaml.Unmarshal(must(os.ReadFile(filepath.Join(Dir(root, chart), "values.yaml")))(t), &values); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		block, ok := value.(map[string]any)
		if !ok || len(block) == 0 || open(path[strings.LastIndex(path, ".")+1:]) {
			paths = append(paths, path)
			return
		}
		for key, below := range block {
			walk(strings.TrimPrefix(path+"."+key, "."), below)
		}
	}
	walk("", values)
	return paths
}

// setAt are the values with one more.
func setAt(values map[string]any, path []string, value any) map[string]any {
	values = maps.Clone(values)
	if values == nil {
		values = map[string]any{}
	}
	if len(path) == 1 {
		values[path[0]] = value
		return values
	}
	below, _ := values[path[0]].(map[string]any)
	values[path[0]] = setAt(below, path[1:], value)
	return values
}

// component are pods whose values are in one block.
type component struct {
	// key is the block of values.
	key string
	// deployment, containers and account are patterns for their names.
	deployment, containers, account string
	image                           string
	// priority is the class by default.
	priority string
	// with are values that it takes.
	with string
}

// effects are those of the values that each component has.
func (c component) effects() map[string]effect {
	pod := "Deployment " + c.deployment + " spec.template."
	container := pod + "spec." + c.containers + "."
	image := func(to string) []string {
		return []string{"- " + container + "image: " + c.image + ":v0.0.0", "+ " + container + "image: " + to}
	}
	none := []string(nil)
	if c.priority != "" {
		none = []string{"- " + pod + "spec.priorityClassName: " + c.priority}
	}
	all := map[string]effect{}
	for path, e := range map[string]effect{
		"image.registry":    {`r.example.com/x`, image("r.example.com/x/" + c.image + ":v0.0.0"), ""},
		"image.repository":  {`other/image`, image("other/image:v0.0.0"), ""},
		"image.tag":         {`v9`, image(c.image + ":v9"), ""},
		"image.digest":      {`sha256:` + strings.Repeat("a", 64), image(c.image + "@sha256:" + strings.Repeat("a", 64)), ""},
		"image.pullPolicy":  {`Always`, []string{"+ " + container + "imagePullPolicy: Always"}, ""},
		"resources":         {`{limits: {cpu: 9}}`, []string{"+ " + container + "resources.limits.cpu: 9"}, ""},
		"nodeSelector":      {`{a: b}`, []string{"+ " + pod + "spec.nodeSelector.a: b"}, ""},
		"tolerations":       {`[{key: a}]`, []string{"+ " + pod + "spec.tolerations[0].key: a"}, ""},
		"affinity":          {`{nodeAffinity: {a: b}}`, []string{"+ " + pod + "spec.affinity.nodeAffinity.a: b"}, ""},
		"podLabels":         {`{a: b}`, []string{"+ " + pod + "metadata.labels.a: b"}, ""},
		"podAnnotations":    {`{a: b}`, []string{"+ " + pod + "metadata.annotations.a: b"}, ""},
		"extraArgs":         {`[--v=9]`, []string{"+ " + container + "args: --v=9"}, ""},
		"extraEnv":          {`[{name: A}]`, []string{"+ " + container + "env[A].name: A"}, ""},
		"extraVolumes":      {`[{name: a}]`, []string{"+ " + pod + "spec.volumes[a].name: a"}, ""},
		"extraVolumeMounts": {`[{name: a}]`, []string{"+ " + container + "volumeMounts[a].name: a"}, ""},
		"priorityClassName": {`mine`, append(none, "+ "+pod+"spec.priorityClassName: mine"), ""},
		// TestHub_CustomServiceAccounts verifies where each name is used.
		"serviceAccount.name":        {`mine`, []string{"- * *" + c.account + "*", "- ServiceAccount " + c.account, "+ *mine*"}, ""},
		"serviceAccount.create":      {`false`, []string{"- ServiceAccount " + c.account}, ""},
		"serviceAccount.annotations": {`{a: b}`, []string{"+ ServiceAccount " + c.account + " metadata.annotations.a: b"}, ""},
	} {
		e.with = c.with
		all[strings.TrimPrefix(c.key+"."+path, ".")] = e
	}
	return all
}
