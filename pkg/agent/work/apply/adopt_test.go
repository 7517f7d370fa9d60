// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

// TestAdopt applies a manifest with each policy and strategy to an existing object that equals the manifest or differs from it. It takes some hundred
// requests.
func TestAdopt(t *testing.T) {
	for _, strategy := range []string{Update, Replace, CreateOnly, ServerSideApply} {
		for _, policy := range []string{"", AdoptAlways, AdoptIfNoDiff, AdoptNever} {
			for _, value := range []string{"same", "other"} {
				t.Run(fmt.Sprintf("%s, %q, %s", strategy, policy, value), func(t *testing.T) {
					w := newWorld(t)
					a := w.work("a")
					var acquired []Acquisition
					a.Acquired = func(how Acquisition) { acquired = append(acquired, how) }
					m := w.configMap(UpdateStrategy{Type: strategy, Force: true}, "{k: same}")
					m.Adoption = policy
					was, err := w.client.Resource(configMaps).Namespace(w.namespace).Create(t.Context(),
						worktest.Parse("{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {k: "+value+"}}"), metav1.CreateOptions{})
					if err != nil {
						t.Fatal(err)
					}
					_, err = a.Apply(t.Context(), m, "")
					have := w.get(m.Target)
					refused := policy == AdoptNever || policy == AdoptIfNoDiff && value == "other" && strategy != CreateOnly
					if refused {
						if not := (*NotAdopted)(nil); !errors.As(err, &not) || len(acquired) > 0 || have.GetResourceVersion() != was.GetResourceVersion() {
							t.Fatalf("got %v, %v, and it has become %v", err, acquired, have.Object)
						}
						if want := "the field .data.k"; policy == AdoptIfNoDiff && !strings.Contains(err.Error(), want) {
							t.Errorf("%q does not name %s", err, want)
						}
						return
					}
					if err != nil || fmt.Sprint(acquired) != "[Adopted]" || !a.Owner.Owns(have) {
						t.Fatalf("got %v, %v, and it has become %v", err, acquired, have.Object)
					}
					// It is the work's now, whatever happens to it.
					m.Adoption = AdoptNever
					w.change(m.Target, func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"k": "third"} })
					w.apply(a, m)
					if fmt.Sprint(acquired) != "[Adopted]" {
						t.Errorf("the second time it is %v", acquired)
					}
				})
			}
		}
	}
}

// TestAdopt_KnownUID: an object that lost its reference is the work's by the recorded UID, and one that another client has created in its place is
// not.
func TestAdopt_KnownUID(t *testing.T) {
	w := newWorld(t)
	a := w.work("a")
	var acquired []Acquisition
	a.Acquired = func(how Acquisition) { acquired = append(acquired, how) }
	m := w.configMap(UpdateStrategy{}, "{k: v}")
	m.Adoption = AdoptNever
	made := w.apply(a, m)
	w.change(m.Target, func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	if _, err := a.Apply(t.Context(), m, ""); err == nil {
		t.Error("an object without a reference was adopted")
	}
	m.Known = made.GetUID()
	if have := w.apply(a, m); !a.Owner.Owns(have) || fmt.Sprint(acquired) != "[Created]" {
		t.Errorf("it has become %v: %v", have.Object, acquired)
	}
	m.Known = "another"
	w.change(m.Target, func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	if _, err := a.Apply(t.Context(), m, ""); err == nil {
		t.Error("an object with another UID was adopted")
	}
}

// TestAdopt_OfOtherWork: an object that another work created is shared, unless this work must not have it.
func TestAdopt_OfOtherWork(t *testing.T) {
	w := newWorld(t)
	a, b := w.work("a"), w.work("b")
	b.Acquired = func(how Acquisition) { t.Errorf("it is %s", how) }
	m := w.configMap(UpdateStrategy{}, "{k: v}")
	w.apply(a, m)
	m.Adoption = AdoptNever
	if _, err := b.Apply(t.Context(), m, ""); err == nil || b.Owner.Owns(w.get(m.Target)) {
		t.Errorf("it is shared: %v", err)
	}
	m.Adoption = AdoptIfNoDiff
	if have := w.apply(b, m); !a.Owner.Owns(have) || !b.Owner.Owns(have) {
		t.Errorf("it is not shared: %v", have.Object)
	}
}

// TestAdopt_Namespace: a Namespace that existed before stays when the work is deleted, unless the work sets that it is adopted.
func TestAdopt_Namespace(t *testing.T) {
	w := newWorld(t)
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	existing := func(text string) Manifest {
		m := w.manifest(namespaces, UpdateStrategy{}, "{apiVersion: v1, kind: Namespace, metadata: {name: "+w.namespace+", labels: {team: a}}}")
		m.Namespace, m.Adoption = "", text
		return m
	}
	a := w.work("a")
	acquired := Acquisition("")
	a.Acquired = func(how Acquisition) { acquired = how }
	for range 2 {
		if have := w.apply(a, existing("")); a.Owner.Owns(have) || acquired != AdoptedToStay || have.GetLabels()["team"] != "a" {
			t.Fatalf("it is %s, and has become %v", acquired, have.Object)
		}
	}
	if gone, err := a.Owner.Delete(t.Context(), w.client, existing("").Target, ""); !gone || err != nil || w.get(existing("").Target).GetDeletionTimestamp() != nil {
		t.Fatalf("it was deleted: %v, %v", gone, err)
	}
	if have := w.apply(a, existing(AdoptAlways)); !a.Owner.Owns(have) || acquired != Adopted {
		t.Fatalf("it is %s, and has become %v", acquired, have.Object)
	}
	// Objects that the work owns stay its own, whatever the policy is later.
	if have := w.apply(a, existing("")); !a.Owner.Owns(have) {
		t.Error("it is not owned any more")
	}
}
