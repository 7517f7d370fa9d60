// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

func TestUpdate(t *testing.T) {
	w := newWorld(t)
	a := w.work("a")
	m := w.configMap(UpdateStrategy{}, "{a: '1', b: '2'}")
	have := w.apply(a, m)
	if !a.Owner.Owns(have) || have.GetManagedFields()[0].Manager != DefaultManager {
		t.Errorf("it is made as %v", have.Object)
	}
	if len(w.made) != 1 || w.made[0] != m.Target {
		t.Errorf("these were announced: %v", w.made)
	}
	if again := w.apply(a, m); again.GetResourceVersion() != have.GetResourceVersion() || len(w.made) != 1 {
		t.Error("what is as wanted was written")
	}

	// Fields that others add stay, and fields of the manifest that they change do not.
	w.change(m.Target, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"foo": "bar"})
		o.SetFinalizers([]string{"example.com/foo"})
		o.Object["data"] = map[string]any{"a": "other", "c": "3"}
	})
	m.Object.SetAnnotations(map[string]string{"foo1": "bar1"})
	have = w.apply(a, m)
	w.expect(have, "map[foo:bar foo1:bar1]", "metadata", "annotations")
	w.expect(have, "[example.com/foo]", "metadata", "finalizers")
	w.expect(have, "map[a:1 b:2 c:3]", "data")
	w.change(m.Target, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })

	// Fields that are removed from the manifest are removed from the object.
	less := w.configMap(UpdateStrategy{}, "{a: '1'}")
	have = w.apply(a, less)
	w.expect(have, "map[foo:bar]", "metadata", "annotations")
	w.expect(have, "map[a:1 c:3]", "data")
}

func TestUpdate_PreservesServerAndControllerFields(t *testing.T) {
	w := newWorld(t)
	a := w.work("a")
	for _, m := range []Manifest{
		w.deployment(UpdateStrategy{}, 1),
		w.manifest(configMaps.GroupVersion().WithResource("persistentvolumeclaims"), UpdateStrategy{}, `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`),
		w.manifest(configMaps.GroupVersion().WithResource("services"), UpdateStrategy{}, "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}"),
		w.manifest(configMaps.GroupVersion().WithResource("pods"), UpdateStrategy{},
			"{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"),
		w.manifest(deployments.GroupVersion().WithResource("jobs"), UpdateStrategy{}, `
{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`),
	} {
		if m.Object.GetKind() == "Job" {
			m.Group = "batch"
		}
		if m.Object.GetKind() == "Pod" { // its account is created a moment later
			worktest.Eventually(t, "there is a ServiceAccount", func() bool {
				return w.get(Target{configMaps.GroupVersion().WithResource("serviceaccounts"), w.namespace, "default"}) != nil
			})
		}
		w.apply(a, m)
		before := w.apply(a, m) // a Job is stored differently after its first update
		after := w.apply(a, m)
		if before.GetResourceVersion() != after.GetResourceVersion() {
			t.Errorf("%s is written again", m.Target)
		}
		m.Object.SetLabels(map[string]string{"new": "label"})
		after = w.apply(a, m)
		if after.GetLabels()["new"] != "label" || after.GetUID() != before.GetUID() {
			t.Errorf("%s is not updated", m.Target)
		}
	}
}

func TestUpdate_ReportsImmutableFields(t *testing.T) {
	w := newWorld(t)
	a := w.work("a")
	bindings := configMaps.GroupVersion().WithResource("rolebindings")
	bindings.Group = "rbac.authorization.k8s.io"
	m := w.manifest(bindings, UpdateStrategy{}, `
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}`)
	w.apply(a, m)
	if err := unstructured.SetNestedField(m.Object.Object, "other", "roleRef", "name"); err != nil {
		t.Fatal(err)
	}
	if have, err := a.Apply(t.Context(), m, ""); !apierrors.IsInvalid(err) || have == nil {
		t.Errorf("a change of a role is %v, and what is there %v", err, have)
	}
}

func TestApply_SkipsUnchanged(t *testing.T) {
	w := newWorld(t)
	a := w.work("a")
	m := w.deployment(UpdateStrategy{}, 1)
	last := Fingerprint(w.apply(a, m))
	if err := unstructured.SetNestedField(m.Object.Object, int64(5), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if have, err := a.Apply(t.Context(), m, last); err != nil || Fingerprint(have) != last {
		t.Errorf("something was written: %v", err)
	}
	w.change(m.Target, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"other": "label"}) })
	have, err := a.Apply(t.Context(), m, last)
	if err != nil {
		t.Fatal(err)
	}
	w.expect(have, 5, "spec", "replicas")
}

func TestCreateOnly(t *testing.T) {
	w := newWorld(t)
	a, b := w.work("a"), w.work("b")
	m := w.deployment(UpdateStrategy{Type: CreateOnly}, 1)
	w.apply(a, m)
	have := w.apply(b, w.deployment(UpdateStrategy{Type: CreateOnly}, 3))
	w.expect(have, 1, "spec", "replicas")
	if !a.Owner.Owns(have) || !b.Owner.Owns(have) {
		t.Errorf("the owners are %v", have.GetOwnerReferences())
	}
	m.Orphaned = true
	have = w.apply(a, m)
	if a.Owner.Owns(have) || !b.Owner.Owns(have) {
		t.Errorf("the owners are %v", have.GetOwnerReferences())
	}
}

func TestReadOnly_WritesNothing(t *testing.T) {
	w := newWorld(t)
	a := w.work("a")
	m := w.configMap(UpdateStrategy{Type: ReadOnly}, "{a: '1'}")
	if have := w.apply(a, m); have != nil || w.get(m.Target) != nil || len(w.made) > 0 {
		t.Error("something is made")
	}
	before := w.apply(w.work("b"), w.configMap(UpdateStrategy{}, "{a: '2'}"))
	if have := w.apply(a, m); have.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("something is written")
	}
}

func TestServerSideApply(t *testing.T) {
	w := newWorld(t)
	a := w.work("a")
	ssa := UpdateStrategy{Type: ServerSideApply}
	before := w.apply(a, w.deployment(ssa, 1))
	if after := w.apply(a, w.deployment(ssa, 1)); after.GetResourceVersion() != before.GetResourceVersion() || after.GetGeneration() != 1 {
		t.Error("what is as wanted was written")
	}
	w.change(w.deployment(ssa, 1).Target, func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, int64(2), "spec", "replicas")
		_ = unstructured.SetNestedField(o.Object, int64(7), "spec", "minReadySeconds")
	})
	if _, err := a.Apply(t.Context(), w.deployment(ssa, 3), ""); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "somebody") {
		t.Errorf("fields of another manager: %v", err)
	}
	ssa.Force = true
	have := w.apply(a, w.deployment(ssa, 3))
	w.expect(have, 3, "spec", "replicas")
	w.expect(have, 7, "spec", "minReadySeconds")
	if !a.Owner.Owns(have) || len(have.GetOwnerReferences()) != 1 {
		t.Errorf("the owners are %v", have.GetOwnerReferences())
	}
	orphan := w.deployment(ssa, 3)
	orphan.Orphaned = true
	have = w.apply(a, orphan)
	if a.Owner.Owns(have) {
		t.Error("an orphan is owned")
	}
	have = w.apply(a, w.deployment(ssa, 3))
	if !a.Owner.Owns(have) {
		t.Error("what is no orphan any more is not owned")
	}
}

// TestServerSideApply_OfTwoWorks: both works have the same manager by default, and the second must not drop the first one's owner reference.
func TestServerSideApply_OfTwoWorks(t *testing.T) {
	w := newWorld(t)
	a, b := w.work("a"), w.work("b")
	ssa := UpdateStrategy{Type: ServerSideApply, Force: true}
	w.apply(a, w.deployment(ssa, 1))
	have := w.apply(b, w.deployment(ssa, 1))
	if !a.Owner.Owns(have) || !b.Owner.Owns(have) {
		t.Errorf("the owners are %v", have.GetOwnerReferences())
	}
	var contested *Contested
	if _, err := b.Apply(t.Context(), w.deployment(ssa, 2), ""); !errors.As(err, &contested) || contested.Rival != "a" {
		t.Errorf("it is wanted differently: %v", err)
	}
	have = w.apply(a, w.deployment(ssa, 4))
	w.expect(have, 4, "spec", "replicas")
	// With a manager of its own, the server decides which fields it owns.
	own := UpdateStrategy{Type: ServerSideApply, Manager: "work-agent-b"}
	if _, err := b.Apply(t.Context(), w.deployment(own, 2), ""); !apierrors.IsConflict(err) {
		t.Errorf("a field of the other's: %v", err)
	}
	// The second has applied the first one's owner reference, too. It is removed all the same when the first orphans the object.
	own.Force = true
	w.apply(b, w.deployment(own, 4))
	orphaned := w.deployment(ssa, 4)
	orphaned.Orphaned = true
	have = w.apply(a, orphaned)
	if a.Owner.Owns(have) || !b.Owner.Owns(have) {
		t.Errorf("the owners are %v", have.GetOwnerReferences())
	}
}

func TestContested(t *testing.T) {
	w := newWorld(t)
	a, b := w.work("a"), w.work("b")
	same := w.configMap(UpdateStrategy{}, "{a: '1'}")
	w.apply(a, same)
	have := w.apply(b, same)
	if !a.Owner.Owns(have) || !b.Owner.Owns(have) {
		t.Fatalf("the owners are %v", have.GetOwnerReferences())
	}
	differently := w.configMap(UpdateStrategy{}, "{a: '2'}")
	var contested *Contested
	have, err := b.Apply(t.Context(), differently, "")
	if !errors.As(err, &contested) || contested.Rival != "a" {
		t.Fatalf("it is wanted differently: %v", err)
	}
	w.expect(have, "map[a:1]", "data")
	// The first may, and when it is deleted, the second may.
	have = w.apply(a, w.configMap(UpdateStrategy{}, "{a: '3'}"))
	w.expect(have, "map[a:3]", "data")
	if err := a.Owner.Release(t.Context(), w.client, same.Target); err != nil {
		t.Fatal(err)
	}
	have = w.apply(b, differently)
	w.expect(have, "map[a:2]", "data")
	// A reference whose work does not exist blocks no other work.
	a.Rival = func(context.Context, metav1.OwnerReference) (string, error) { return "", nil }
	have = w.apply(a, same)
	w.expect(have, "map[a:1]", "data")
}

// TestApply_Unseen: an object that is created without a read is not created twice, and an existing one is applied as usual.
func TestApply_Unseen(t *testing.T) {
	for _, strategy := range []string{Update, CreateOnly, ServerSideApply, ReadOnly} {
		t.Run(strategy, func(t *testing.T) {
			w := newWorld(t)
			m := w.configMap(UpdateStrategy{Type: strategy}, "{k: v}")
			m.Unseen = true
			made, err := w.work("a").Apply(t.Context(), m, "")
			if err != nil || (made == nil) != (strategy == ReadOnly) {
				t.Fatalf("made is %v: %v", made, err)
			}
			if strategy == ReadOnly {
				return
			}
			again, err := w.work("b").Apply(t.Context(), m, "")
			if err != nil || again.GetUID() != made.GetUID() || len(again.GetOwnerReferences()) != 2 {
				t.Errorf("again it is %v: %v", again, err)
			}
			other := w.configMap(UpdateStrategy{Type: Update}, "{k: w}")
			other.Unseen = true
			if _, err := w.work("c").Apply(t.Context(), other, ""); err == nil || !strings.Contains(err.Error(), "which had it first") {
				t.Errorf("another work has its way: %v", err)
			}
		})
	}
}
