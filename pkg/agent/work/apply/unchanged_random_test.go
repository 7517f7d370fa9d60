// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// random generates specs of things, and changes of them.
type random struct{ *rand.Rand }

func (r random) text() string { return []string{"a", "b", "c"}[r.IntN(3)] }
func (r random) some() bool   { return r.IntN(2) == 0 }
func (r random) number() any {
	return []any{int64(1), int64(1) << 53, int64(1)<<53 + 1, int64(-1), int64(0)}[r.IntN(5)]
}

func (r random) list(unique bool, item func() any) (items []any) {
	for range r.IntN(4) {
		one := item()
		if !unique || !containsKey(items, one) || r.IntN(40) == 0 {
			items = append(items, one)
		}
	}
	return items
}

// containsKey reports whether an item of a list has the same key as the given one.
func containsKey(items []any, one any) bool {
	key := func(item any) string {
		if m, ok := item.(map[string]any); ok {
			return fmt.Sprint(m["name"], m["port"], m["protocol"])
		}
		return fmt.Sprint(item)
	}
	for _, item := range items {
		if key(item) == key(one) {
			return true
		}
	}
	return false
}

func (r random) texts() map[string]any {
	m := map[string]any{}
	for range r.IntN(3) {
		m[r.text()] = r.text()
	}
	return m
}

func (r random) field(name string) any {
	text := func() any { return r.text() }
	switch name {
	case "number":
		return r.number()
	case "ratio":
		return []any{0.1, 1.5, int64(2)}[r.IntN(3)]
	case "either":
		return []any{int64(1), "1", "a"}[r.IntN(3)]
	case "labels", "atomic":
		return r.texts()
	case "named":
		m := map[string]any{}
		for range r.IntN(3) {
			below := r.texts()
			delete(below, "c")
			m[r.text()] = below
		}
		return m
	case "list":
		return r.list(false, text)
	case "set":
		return r.list(true, text)
	case "items":
		return r.list(true, func() any {
			item := map[string]any{"name": r.text()}
			for _, key := range []string{"value", "size"} {
				if r.some() {
					item[key] = r.text()
				}
			}
			if r.some() {
				item["set"] = r.list(true, text)
			}
			return item
		})
	case "ports":
		return r.list(true, func() any {
			return map[string]any{"port": int64(r.IntN(2)), "protocol": []string{"TCP", "UDP"}[r.IntN(2)], "name": r.text()}
		})
	case "any":
		return map[string]any{r.text(): r.texts(), r.text(): r.number(), r.text(): r.list(false, text)}
	}
	if name == "nothing" && r.some() {
		return nil
	}
	return r.text()
}

var randomFields = []string{"text", "defaulted", "number", "ratio", "either", "labels", "named", "atomic", "nothing", "list", "set", "items", "ports", "any"}

func (r random) anyField() string { return randomFields[r.IntN(len(randomFields))] }

func (r random) spec() map[string]any {
	spec := map[string]any{}
	for range 1 + r.IntN(5) {
		name := r.anyField()
		spec[name] = r.field(name)
	}
	return spec
}

// patch returns a change by another client to a thing that has a spec.
func (r random) patch(spec map[string]any) (manager string, how types.PatchType, patch map[string]any) {
	name := r.anyField()
	if r.IntN(3) > 0 {
		name = slices.Sorted(maps.Keys(spec))[r.IntN(len(spec))]
	}
	manager, how = "somebody", types.MergePatchType
	if r.IntN(8) == 0 {
		manager = DefaultManager
	}
	var value any
	switch r.IntN(4) {
	case 0: // removed
	case 1:
		value = spec[name]
	case 2:
		how = types.ApplyPatchType
		fallthrough
	default:
		value = r.field(name)
	}
	if manager == DefaultManager {
		how = types.MergePatchType
	}
	return manager, how, map[string]any{"spec": map[string]any{name: value}}
}

// TestUnchanged_RandomObjects: whatever is applied, and changed by others, no write is skipped that would change anything.
func TestUnchanged_RandomObjects(t *testing.T) {
	const rounds, seed = 300, 1
	w := newWorld(t)
	resource, a := w.things(), w.work("a")
	client := w.client.Resource(resource).Namespace(w.namespace)
	r := random{rand.New(rand.NewPCG(seed, seed))}
	skipped, idle := 0, 0
	for round := range rounds {
		spec := r.spec()
		m := w.thing(resource, fmt.Sprintf("spec: {}, metadata: {name: x%d}", round))
		m.Object.Object["spec"] = runtime.DeepCopyJSONValue(spec)
		if _, err := a.Apply(t.Context(), m, ""); err != nil {
			continue // an item is in a list twice
		}
		log := []any{spec}
		for range r.IntN(3) {
			manager, how, patch := r.patch(spec)
			options := metav1.PatchOptions{FieldManager: manager}
			if how == types.ApplyPatchType {
				patch["apiVersion"], patch["kind"] = m.Object.GetAPIVersion(), "Thing"
				options.Force = new(true)
			}
			data, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Patch(t.Context(), m.Name, how, data, options) // the schema may reject it
			log = append(log, manager, how, string(data), err)
		}
		m.Reported = r.some()
		if !m.Reported {
			name := r.anyField()
			next := runtime.DeepCopyJSON(spec)
			next[name] = r.field(name)
			if r.some() {
				delete(next, name)
			}
			m.Object.Object["spec"] = next
			log = append(log, next)
		}
		got := w.judge(a, m)
		if !got.changes {
			idle++
		}
		if got.skipped {
			skipped++
			if got.changes {
				t.Errorf("round %d: it is left out, and the server would change something: %v", round, log)
			}
		}
	}
	t.Logf("%d of %d applies that change nothing are left out", skipped, idle)
	if skipped < idle/2 {
		t.Errorf("%d of %d applies that change nothing are left out, want more than half", skipped, idle)
	}
}
