// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func unlabel(object client.Object) { object.SetLabels(nil) }

func touch(object client.Object) { object.SetAnnotations(map[string]string{"example.com/theirs": "x"}) }

func hold(object client.Object) { object.SetFinalizers([]string{"example.com/held"}) }

// TestApply: an object is applied, or the existing one stays as others left it, whatever they do at the same time.
func TestApply(t *testing.T) {
	const made, changed, recreated, untouched, waits = "made", "changed", "recreated", "untouched", "waits"
	for name, test := range map[string]struct {
		// there is the object at the first read, unless others replaced or deleted it before.
		there client.Object
		want  client.Object
		// verb is the write before which others act.
		meanwhile func(c *cluster)
		verb      string
		// result is the expected outcome.
		result string
	}{
		"nothing there":                              {want: role("get"), result: made},
		"another's object":                           {there: role("list"), want: role("get"), result: untouched},
		"another owner's object":                     {there: role("list", "them"), want: role("get"), result: untouched},
		"another's object that is the same":          {there: role("get"), want: role("get"), result: untouched},
		"ours, changed":                              {there: role("list", "us"), want: role("get"), result: changed},
		"another's namespace":                        {there: namespace("a"), want: namespace("a"), result: made},
		"a binding to another role":                  {there: binding("b", "us"), want: binding("a"), result: recreated},
		"another's binding to another role":          {there: binding("b"), want: binding("a"), result: untouched},
		"another's binding to the same role":         {there: binding("a"), want: binding("a"), result: untouched},
		"a ServiceAccount of a former owner":         {there: of("1", account("us")), want: account(), result: recreated},
		"another's ServiceAccount":                   {there: of("1", account()), want: account(), result: untouched},
		"somebody makes it before us":                {want: role("get"), meanwhile: func(c *cluster) { c.put(role("list")) }, verb: "make", result: untouched},
		"we make it before us":                       {want: role("get"), meanwhile: func(c *cluster) { c.put(role("list", "us")) }, verb: "make", result: changed},
		"somebody replaces it":                       {there: role("list", "us"), want: role("get"), meanwhile: func(c *cluster) { c.put(role("list")) }, verb: "change", result: untouched},
		"somebody takes our label":                   {there: role("list", "us"), want: role("get"), meanwhile: func(c *cluster) { c.change(role(""), unlabel) }, verb: "change", result: untouched},
		"somebody changes something else":            {there: role("list", "us"), want: role("get"), meanwhile: func(c *cluster) { c.change(role(""), touch) }, verb: "change", result: changed},
		"somebody deletes it":                        {there: role("list", "us"), want: role("get"), meanwhile: func(c *cluster) { c.remove(role("")) }, verb: "change", result: made},
		"the old binding is held":                    {there: binding("b", "us"), want: binding("a"), meanwhile: func(c *cluster) { c.change(binding(""), hold) }, verb: "delete", result: waits},
		"somebody replaces the old binding":          {there: binding("b", "us"), want: binding("a"), meanwhile: func(c *cluster) { c.put(binding("c")) }, verb: "delete", result: untouched},
		"somebody takes our label of the old one":    {there: binding("b", "us"), want: binding("a"), meanwhile: func(c *cluster) { c.change(binding(""), unlabel) }, verb: "delete", result: untouched},
		"somebody deletes the old binding":           {there: binding("b", "us"), want: binding("a"), meanwhile: func(c *cluster) { c.remove(binding("")) }, verb: "delete", result: recreated},
		"somebody is in the place of the old one":    {there: binding("b", "us"), want: binding("a"), meanwhile: func(c *cluster) { c.put(binding("c")) }, verb: "make", result: waits},
		"a former owner's account is made by others": {there: of("1", account("us")), want: account(), meanwhile: func(c *cluster) { c.put(account()) }, verb: "delete", result: untouched},
	} {
		for how, verbs := range map[string]map[string]string{
			"update": {"make": "create", "change": "update", "delete": "delete"}, "apply": {"make": "apply", "change": "apply", "delete": "delete"},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				c := newCluster(t, namespace("default"))
				a, want := &Applier{Client: c, Owner: us, Strategy: Update}, test.want
				if how == "apply" {
					a.Strategy, want = ServerSideApply("us"), given(t, want)
				}
				if test.there != nil {
					c.put(test.there)
				}
				have, err := a.Get(t.Context(), want)
				if err != nil {
					t.Fatal(err)
				}
				var before client.Object // as others left it
				if test.there != nil {
					before = c.get(test.want)
				}
				old := before
				if test.meanwhile != nil {
					c.meanwhile[verbs[test.verb]] = func() { test.meanwhile(c); before = c.get(test.want) }
				}
				looked := have
				if have != nil {
					looked = copyOf(have)
				}
				err = a.Apply(t.Context(), want, have)
				if len(c.meanwhile) > 0 {
					t.Fatalf("others have not come in between: %q", c.writes)
				}
				now, notOurs, recreating := c.get(test.want), (*NotOurs)(nil), (*Recreating)(nil)
				switch test.result {
				case untouched:
					if !errors.As(err, &notOurs) || notOurs.Object != IDOf(test.want) || !equality.Semantic.DeepEqual(now, before) {
						t.Errorf("%v, and it is %v, not %v", err, now, before)
					}
					return
				case waits:
					if !errors.As(err, &recreating) || recreating.Object != IDOf(test.want) || !strings.HasSuffix(err.Error(), "waits until the old one is deleted") ||
						now == nil || RoleRefOf(now) == RoleRefOf(test.want) {
						t.Errorf("%v, and it is %v", err, now)
					}
					return
				}
				if err != nil || now == nil {
					t.Fatalf("%v, after %q", err, c.writes)
				}
				if isNamespace(now) {
					if !equality.Semantic.DeepEqual(now, before) || len(c.writes) > 0 {
						t.Errorf("a namespace is not used as it is: %v, after %q", now, c.writes)
					}
					return
				}
				if !us.Owns(now) || us.formers(now) || now.GetAnnotations()[origin] != "2" || !sameContent(test.want, now) {
					t.Errorf("it is %v", now)
				}
				if same := old != nil && now.GetUID() == old.GetUID(); same && test.result == recreated {
					t.Error("it is the old one")
				}
				if test.result == changed && before.GetAnnotations()["example.com/theirs"] != now.GetAnnotations()["example.com/theirs"] {
					t.Error("the annotation of others is lost")
				}
				if want.GetLabels() != nil || want.GetResourceVersion() != "" || !equality.Semantic.DeepEqual(have, looked) {
					t.Errorf("what was given is changed: %v, %v", want, have)
				}
				// Again.
				c.writes = nil
				have, err = a.Observe(t.Context(), want)
				if err == nil {
					err = a.Apply(t.Context(), want, have)
				}
				if again := c.get(test.want); err != nil || how == "update" && len(c.writes) > 0 || !equality.Semantic.DeepEqual(again.GetUID(), now.GetUID()) {
					t.Errorf("again: %v, after %q it is %v", err, c.writes, again)
				}
			})
		}
	}
}

// TestApply_PreservesLabels verifies that an object has its own labels beside those of its owner: Kubernetes aggregates roles by labels.
func TestApply_PreservesLabels(t *testing.T) {
	for how, strategy := range map[string]Strategy{"update": Update, "apply": ServerSideApply("us")} {
		t.Run(how, func(t *testing.T) {
			c, labelled := newCluster(t), role("get")
			labelled.Labels = map[string]string{"aggregated": "yes"}
			if err := (&Applier{Client: c, Owner: us, Strategy: strategy}).Apply(t.Context(), given(t, labelled), nil); err != nil {
				t.Fatal(err)
			}
			if now := c.get(role("")); !us.Owns(now) || now.GetLabels()["aggregated"] != "yes" {
				t.Errorf("its labels are %v", now.GetLabels())
			}
		})
	}
}

func (c *cluster) remove(object client.Object) {
	c.t.Helper()
	if err := c.behind.Delete(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// sameContent reports whether Update would not change the object.
func sameContent(want, have client.Object) bool {
	now := copyOf(have)
	return copyContent(want, now) == nil && equality.Semantic.DeepEqual(have, now) && RoleRefOf(have) == RoleRefOf(want)
}

// TestUpdate_ReplacesContentOfOthers: no content that others put into our object stays, but their metadata does.
func TestUpdate_ReplacesContentOfOthers(t *testing.T) {
	theirs := role("*", "us")
	theirs.AggregationRule = &rbacv1.AggregationRule{}
	theirs.Labels["theirs"] = "x"
	theirs.Finalizers = []string{"example.com/theirs"}
	nobody := binding("a")
	nobody.Subjects = nil
	bindings := &rbacv1.RoleBinding{ObjectMeta: account("us").ObjectMeta, RoleRef: nobody.RoleRef, Subjects: binding("a").Subjects}
	noBindings := &rbacv1.RoleBinding{ObjectMeta: account().ObjectMeta, RoleRef: nobody.RoleRef}
	local, noRules := &rbacv1.Role{ObjectMeta: account("us").ObjectMeta, Rules: role("*").Rules}, &rbacv1.Role{ObjectMeta: account().ObjectMeta}
	secrets := account("us")
	secrets.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "theirs"}}
	c := newCluster(t, namespace("default"), theirs, binding("a", "us"), bindings, local, secrets)
	a := &Applier{Client: c, Owner: us, Strategy: Update}
	wanted := []client.Object{role("get"), nobody, noBindings, noRules, account()}
	if err := a.ApplyAll(t.Context(), wanted, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range wanted {
		if now := c.get(want); !sameContent(want, now) || !us.Owns(now) {
			t.Errorf("it is %v", now)
		}
	}
	if now := c.get(theirs).(*rbacv1.ClusterRole); now.Labels["theirs"] != "x" || len(now.Finalizers) != 1 || now.AggregationRule != nil {
		t.Errorf("it is %v", now)
	}
	if now := c.get(secrets).(*corev1.ServiceAccount); len(now.ImagePullSecrets) != 1 {
		t.Errorf("it is %v", now)
	}
}

func TestStrategies_RejectUnsupported(t *testing.T) {
	config := &corev1.ConfigMap{ObjectMeta: account("us").ObjectMeta, Data: map[string]string{"a": "b"}}
	c := newCluster(t, namespace("default"), config)
	for name, strategy := range map[string]Strategy{"cannot be updated": Update, "only unstructured objects can": ServerSideApply("us")} {
		a := &Applier{Client: c, Owner: us, Strategy: strategy}
		if err := a.Apply(t.Context(), config, c.get(config)); err == nil || !strings.Contains(err.Error(), name) || len(c.writes) > 0 {
			t.Errorf("%v, after %q", err, c.writes)
		}
	}
}

// TestApply_Adopts: an existing object whose name has only one purpose becomes ours, except namespaces.
func TestApply_Adopts(t *testing.T) {
	c := newCluster(t, role("list"), binding("b"), namespace("a", "them"))
	a := &Applier{Client: c, Owner: us, Adopt: true, Strategy: Update}
	for _, want := range []client.Object{role("get"), namespace("a")} {
		have, err := a.Observe(t.Context(), want)
		if err == nil {
			err = a.Apply(t.Context(), want, have)
		}
		if now := c.get(want); err != nil || us.Owns(now) == isNamespace(now) || !isNamespace(now) && !sameContent(want, now) {
			t.Errorf("%v: it is %v", err, now)
		}
	}
	a.Owner = Owner{}
	if err := a.Apply(t.Context(), role("watch"), nil); err != nil || !sameContent(role("watch"), c.get(role(""))) {
		t.Errorf("without an owner: %v", err)
	}
	a.Owner = us
	if err := a.Apply(t.Context(), binding("a"), nil); slices.Contains(c.writes, "delete ClusterRoleBinding a") {
		t.Errorf("another's binding is deleted: %v", err)
	}
}

// TestApplyAll_StopsAtFirstError: a role of another owner is not granted by a binding that comes after it.
func TestApplyAll_StopsAtFirstError(t *testing.T) {
	c := newCluster(t, namespace("default"), role("*"))
	a := &Applier{Client: c, Owner: us, Strategy: Update}
	err := a.ApplyAll(t.Context(), []client.Object{account(), role("get"), binding("a")}, nil)
	if !errors.As(err, new(*NotOurs)) || !strings.HasPrefix(err.Error(), "ClusterRole a: it already exists") || !strings.Contains(err.Error(), label+"=us") {
		t.Errorf("got %v", err)
	}
	if _, err := a.Observe(t.Context(), role("get")); !errors.As(err, new(*NotOurs)) {
		t.Errorf("a look at it: %v", err)
	}
	if c.get(account()) == nil || c.get(binding("")) != nil {
		t.Errorf("after %q", c.writes)
	}
}

// TestApplyAll_CreatesNamespaces: missing namespaces are created without an owner if requested.
func TestApplyAll_CreatesNamespaces(t *testing.T) {
	c := newCluster(t)
	a := &Applier{Client: c, Owner: us, Strategy: Update}
	if err := a.ApplyAll(t.Context(), []client.Object{account()}, nil, "other"); !apierrors.IsNotFound(err) || c.get(namespace("default")) != nil {
		t.Errorf("a namespace is made that nobody wants: %v", err)
	}
	c.writes = nil
	if err := a.ApplyAll(t.Context(), []client.Object{account(), role("get")}, nil, "other", "default"); err != nil {
		t.Fatal(err)
	}
	want := []string{"create ServiceAccount default/a", "create Namespace default", "create ServiceAccount default/a", "create ClusterRole a"}
	if made := c.get(namespace("default")); !slices.Equal(c.writes, want) || len(made.GetLabels()) > 0 || c.get(namespace("other")) != nil {
		t.Errorf("after %q, the namespace is %v", c.writes, made)
	}
	c.writes = nil
	have := map[ID]client.Object{IDOf(account()): c.get(account()), IDOf(role("")): c.get(role(""))}
	if err := a.ApplyAll(t.Context(), []client.Object{account(), role("get")}, have, "default"); err != nil || len(c.writes) > 0 {
		t.Errorf("again: %v, after %q", err, c.writes)
	}
	c.remove(account())
	c.remove(namespace("default"))
	touch(have[IDOf(account())]) // so that there is something to write
	if err := a.ApplyAll(t.Context(), []client.Object{account()}, have, "default"); err != nil || c.get(account()) == nil {
		t.Errorf("when all is gone: %v, after %q", err, c.writes)
	}
}
