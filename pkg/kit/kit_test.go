// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": "c-" + name}}}
}

func read(t *testing.T, c client.Client) *corev1.Namespace {
	t.Helper()
	namespace := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, namespace); err != nil {
		t.Fatal(err)
	}
	return namespace
}

// Two controllers read the same object, and each adds a finalizer: the patch of the second would replace the list.
func TestPatch_DoesNotOverwriteOthers(t *testing.T) {
	for name, add := range map[string]func(context.Context, client.Client, *corev1.Namespace, string) (bool, error){
		"the object": func(ctx context.Context, c client.Client, namespace *corev1.Namespace, what string) (bool, error) {
			return Patch(ctx, c, namespace, func(n *corev1.Namespace) { n.Finalizers = append(n.Finalizers, what) })
		},
		"the status": func(ctx context.Context, c client.Client, namespace *corev1.Namespace, what string) (bool, error) {
			return PatchStatus(ctx, c, namespace, func(n *corev1.Namespace) {
				n.Status.Conditions = append(n.Status.Conditions, corev1.NamespaceCondition{Type: corev1.NamespaceConditionType(what)})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(newNamespace("a")).WithStatusSubresource(&corev1.Namespace{}).Build()
			first, second := read(t, c), read(t, c)
			if changed, err := add(t.Context(), c, first, "example.com/first"); err != nil || !changed {
				t.Fatal(changed, err)
			}
			if got := read(t, c); got.ResourceVersion != first.ResourceVersion || len(got.Finalizers)+len(got.Status.Conditions) != 1 {
				t.Errorf("the object is %v, and the server has %v", first, got)
			}
			changed, err := add(t.Context(), c, second, "example.com/second")
			if changed || !IsStale(err) || len(second.Finalizers)+len(second.Status.Conditions) > 0 {
				t.Errorf("changed %t, %v, and the object is %v", changed, err, second)
			}
			if err := c.Delete(t.Context(), second, AsRead(second)); !apierrors.IsConflict(err) {
				t.Errorf("deleted as it was read, with %v", err)
			}
			if changed, err := add(t.Context(), c, read(t, c), "example.com/second"); err != nil || !changed {
				t.Error(changed, err)
			}
			if got := read(t, c); len(got.Finalizers)+len(got.Status.Conditions) != 2 {
				t.Errorf("the server has %v", got)
			}
		})
	}
}

func TestPatch_EmptySendsNothing(t *testing.T) {
	c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(newNamespace("a")).Build(), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("it was sent")
		},
	})
	if changed, err := Patch(t.Context(), c, read(t, c), func(n *corev1.Namespace) { n.Labels = map[string]string{"of": "c-a"} }); changed || err != nil {
		t.Error(changed, err)
	}
	if _, err := Patch(t.Context(), c, read(t, c), func(n *corev1.Namespace) { n.Labels = nil }); err == nil {
		t.Error("a change is not sent either")
	}
}

// An API that is not served also responds with 404. That must not revoke a fleet.
func TestIsGone_UnservedAPIIsNotGone(t *testing.T) {
	resource := schema.GroupResource{Resource: "managedclusters"}
	notServed := apierrors.NewGenericServerResponse(404, "get", resource, "c1", "404 page not found", 0, true)
	if !apierrors.IsNotFound(notServed) {
		t.Fatal("the test has no point")
	}
	for err, want := range map[error][2]bool{
		notServed:                             {},
		fmt.Errorf("reading: %w", notServed):  {},
		apierrors.NewNotFound(resource, "c1"): {true, true},
		fmt.Errorf("reading: %w", apierrors.NewNotFound(resource, "c1")): {true, true},
		apierrors.NewConflict(resource, "c1", nil):                       {false, true},
		apierrors.NewAlreadyExists(resource, "c1"):                       {},
		apierrors.NewServiceUnavailable("away"):                          {},
	} {
		if got := [2]bool{IsGone(err), IsStale(err)}; got != want {
			t.Errorf("%v: gone, outdated: %v, want %v", err, got, want)
		}
		if gone, outdated := IgnoreGone(err) == nil, IgnoreStale(err) == nil; gone != want[0] || outdated != want[1] {
			t.Errorf("%v is ignored: %t, %t, want %v", err, gone, outdated, want)
		}
	}
}

func TestMessage_TruncatesAtCharacters(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("é", maxMessage/2):     strings.Repeat("é", maxMessage/2),
		"x" + strings.Repeat("é", maxMessage): "x" + strings.Repeat("é", (maxMessage-len("…")-1)/2) + "…",
	} {
		if got := Message(text); got != want || len(got) > maxMessage {
			t.Errorf("%d bytes, want %d: %s", len(got), len(want), got)
		}
	}
}

func TestWatch_LogsReconciledObject(t *testing.T) {
	a, b := newNamespace("a"), newNamespace("b")
	if got := ByLabel("of")(t.Context(), a); len(got) != 1 || got[0].String() != "/c-a" {
		t.Errorf("by the label: %v", got)
	}
	if got := ByLabel("other")(t.Context(), a); len(got) != 0 {
		t.Errorf("by a label that it does not have: %v", got)
	}
	c := fake.NewClientBuilder().WithObjects(a, b).Build()
	if got := Requests(t.Context(), c, &corev1.NamespaceList{}); len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
		t.Errorf("by a list: %v", got)
	}
	if got := Requests(t.Context(), c, &corev1.NamespaceList{}, client.MatchingLabels{"of": "c-b"}); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("by a list of some: %v", got)
	}
	if !Existence().Create(event.CreateEvent{Object: a}) || !Existence().Delete(event.DeleteEvent{Object: a}) ||
		Existence().Update(event.UpdateEvent{ObjectOld: a, ObjectNew: a}) {
		t.Error("want work when an object comes or goes, and none when it changes")
	}
}

func TestConflicts_AreRetriedSoon(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "namespaces"}, "a", errors.New("it has changed"))
	other := errors.New("broken")
	for name, test := range map[string]struct {
		err  error
		soon bool
	}{
		"none":                      {nil, false},
		"a conflict":                {conflict, true},
		"one of an object":          {fmt.Errorf("Namespace a: %w", conflict), true},
		"one in other words":        {fmt.Errorf("Namespace a: %w", WithMessage(conflict, "said")), true},
		"two":                       {errors.Join(conflict, conflict), true},
		"one and more":              {errors.Join(conflict, other), false},
		"more and one":              {errors.Join(other, conflict), false},
		"another":                   {other, false},
		"another in other words":    {WithMessage(apierrors.NewInternalError(other), "said"), false},
		"what is there already":     {apierrors.NewAlreadyExists(schema.GroupResource{Resource: "namespaces"}, "a"), false},
		"no conflict with its text": {errors.New(conflict.Error()), false},
	} {
		t.Run(name, func(t *testing.T) {
			later := reconcile.Result{RequeueAfter: time.Hour}
			result, err := RequeueConflicts(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return later, test.err
			})).Reconcile(t.Context(), reconcile.Request{})
			if test.soon && (err != nil || result.RequeueAfter != soon) || !test.soon && (err != test.err || result != later) {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
	if err := WithMessage(conflict, "said"); err.Error() != "said" || strings.Contains(fmt.Sprintf("%+v", err), "it has changed") {
		t.Errorf("the text is %v", err)
	}
}
