// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

var kinds = []schema.GroupVersionKind{
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
}

// TestPrune: our objects that are not desired are deleted, in the order of their kinds, and nothing else is.
func TestPrune(t *testing.T) {
	const all = "ClusterRole a, ClusterRoleBinding a, ServiceAccount default/a"
	both := []string{"delete ClusterRoleBinding a", "delete ServiceAccount default/a"}
	for name, test := range map[string]struct {
		owner  Owner
		there  []client.Object
		wanted []client.Object
		others func(c *cluster)
		// deletes lists the attempts, left what exists afterwards, and keeps what is returned as ours.
		deletes []string
		left    []client.Object
		keeps   []client.Object
	}{
		"all that is not wanted": {owner: us, there: []client.Object{role("get", "us"), binding("a", "us"), account("us")}, wanted: []client.Object{role("get")},
			deletes: both, left: []client.Object{role("")}, keeps: []client.Object{role("")}},
		"all": {owner: us, there: []client.Object{role("get", "us"), binding("a", "us"), account("us")},
			deletes: []string{both[0], "delete ClusterRole a", both[1]}},
		"what is others'": {owner: us, there: []client.Object{role("get", "them"), binding("a"), account("us")}, wanted: []client.Object{role("get")},
			deletes: both[1:], left: []client.Object{role(""), binding("")}},
		"a server that does not select": {owner: us, there: []client.Object{role("get", "them"), binding("a"), account("us")}, wanted: []client.Object{role("get")},
			others: func(c *cluster) { c.selectsNone = true }, deletes: both[1:], left: []client.Object{role(""), binding("")}},
		"what was made for a former owner": {owner: us, there: []client.Object{of("1", role("get", "us")), of("1", account("us"))}, wanted: []client.Object{role("get")},
			deletes: both[1:], left: []client.Object{role("")}, keeps: []client.Object{role("")}},
		"no owner": {there: []client.Object{role("get", "us"), binding("a")}, left: []client.Object{role(""), binding("")}},
		"somebody replaces it": {owner: us, there: []client.Object{binding("a", "us")}, others: func(c *cluster) {
			c.meanwhile["delete"] = func() { c.put(binding("b")) }
		}, deletes: both[:1], left: []client.Object{binding("")}},
		"somebody takes our label": {owner: us, there: []client.Object{binding("a", "us")}, others: func(c *cluster) {
			c.meanwhile["delete"] = func() { c.change(binding(""), unlabel) }
		}, deletes: both[:1], left: []client.Object{binding("")}},
		"somebody changes something else": {owner: us, there: []client.Object{binding("a", "us")}, others: func(c *cluster) {
			c.meanwhile["delete"] = func() { c.change(binding(""), touch) }
		}, deletes: []string{both[0], both[0]}},
		"somebody deletes it": {owner: us, there: []client.Object{binding("a", "us"), account("us")}, others: func(c *cluster) {
			c.meanwhile["delete"] = func() { c.remove(binding("")) }
		}, deletes: both},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, append(test.there, namespace("default"))...)
			if test.others != nil {
				test.others(c)
			}
			have, err := (&Applier{Client: c, Owner: test.owner, Strategy: Update}).Prune(t.Context(), kinds, test.wanted)
			if err != nil || len(c.meanwhile) > 0 {
				t.Fatal(err, c.meanwhile)
			}
			if !slices.Equal(c.writes, test.deletes) {
				t.Errorf("deletes %q, want %q", c.writes, test.deletes)
			}
			for _, object := range []client.Object{role(""), binding(""), account()} {
				left := slices.ContainsFunc(test.left, func(o client.Object) bool { return IDOf(o) == IDOf(object) })
				if (c.get(object) != nil) != left {
					t.Errorf("of %s, %s is %v", all, IDOf(object), c.get(object))
				}
			}
			keeps := map[ID]client.Object{}
			for _, object := range test.keeps {
				keeps[IDOf(object)] = c.get(object)
			}
			if !maps.EqualFunc(have, keeps, func(a, b client.Object) bool { return equality.Semantic.DeepEqual(a, b) }) {
				t.Errorf("keeps %v, want %v", have, keeps)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	for name, test := range map[string]struct {
		there client.Object
		// meanwhile acts as other clients before the deletion.
		meanwhile  func(c *cluster)
		ours, left bool
	}{
		"nothing there":         {},
		"another's":             {there: role("get"), left: true},
		"ours":                  {there: role("get", "us"), ours: true},
		"held":                  {there: role("get", "us"), meanwhile: func(c *cluster) { c.change(role(""), hold) }, ours: true, left: true},
		"changed":               {there: role("get", "us"), meanwhile: func(c *cluster) { c.change(role(""), touch) }, ours: true},
		"gone":                  {there: role("get", "us"), meanwhile: func(c *cluster) { c.remove(role("")) }, ours: true},
		"recreated by others":   {there: role("get", "us"), meanwhile: func(c *cluster) { c.put(role("get")) }, left: true},
		"recreated by us":       {there: role("get", "us"), meanwhile: func(c *cluster) { c.put(role("list", "us")) }, ours: true},
		"handed over to others": {there: role("get", "us"), meanwhile: func(c *cluster) { c.change(role(""), unlabel) }, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			if test.there != nil {
				c.put(test.there)
			}
			a := &Applier{Client: c, Owner: us}
			have, err := a.Get(t.Context(), role(""))
			if err != nil {
				t.Fatal(err)
			}
			if test.meanwhile != nil {
				c.meanwhile["delete"] = func() { test.meanwhile(c) }
			}
			ours, err := a.Delete(t.Context(), have)
			if err != nil || ours != test.ours || (c.get(role("")) != nil) != test.left {
				t.Errorf("%t, %v, and there is %v", ours, err, c.get(role("")))
			}
		})
	}
}

// TestDelete_GivesUp: a client that changes an object again and again does not block Delete forever.
func TestDelete_GivesUp(t *testing.T) {
	c := newCluster(t, role("get", "us"))
	var again func()
	again = func() {
		c.change(role(""), func(o client.Object) { o.SetAnnotations(map[string]string{"n": string(c.newUID())}) })
		c.meanwhile["delete"] = again
	}
	c.meanwhile["delete"] = again
	ours, err := (&Applier{Client: c, Owner: us}).Delete(t.Context(), c.get(role("")))
	if ours || err == nil || len(c.writes) != tries {
		t.Errorf("%t, %v, after %d tries", ours, err, len(c.writes))
	}
}

// TestGet_ResultHasNoRequestedFields: the fields of the requested object do not appear in the result, since decoding JSON does not reset fields
// that a response omits.
func TestGet_ResultHasNoRequestedFields(t *testing.T) {
	c := interceptor.NewClient(newCluster(t), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			return json.Unmarshal([]byte(`{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "a"}}`), into)
		},
	})
	a := &Applier{Client: c, Owner: us, Strategy: Update}
	for _, want := range []client.Object{role("*", "us"), given(t, role("*", "us"))} {
		have, err := a.Get(t.Context(), want)
		if err != nil || have.GetName() != "a" || us.Owns(have) {
			t.Errorf("%v, %v", have, err)
		}
	}
}

func TestOwner_Owns(t *testing.T) {
	for name, test := range map[string]struct {
		owner Owner
		has   map[string]string
		want  bool
	}{
		"its labels":          {Owner{Labels: map[string]string{"a": "1", "b": "2"}}, map[string]string{"a": "1", "b": "2", "c": "3"}, true},
		"one of them":         {Owner{Labels: map[string]string{"a": "1", "b": "2"}}, map[string]string{"a": "1"}, false},
		"another value":       {Owner{Labels: map[string]string{"a": "1"}}, map[string]string{"a": "2"}, false},
		"nothing of an empty": {Owner{Labels: map[string]string{"a": ""}}, nil, false},
		"an empty one":        {Owner{Labels: map[string]string{"a": ""}}, map[string]string{"a": ""}, true},
		"nobody":              {Owner{}, map[string]string{"a": "1"}, false},
	} {
		if got := test.owner.Owns(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: test.has}}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestID(t *testing.T) {
	partial := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"}}
	partial.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
	for want, object := range map[string]client.Object{
		"ClusterRole a": role(""), "ServiceAccount default/a": given(t, account()), "Role web/a": partial,
		"*v1.ManagedCluster c1": &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
	} {
		if got := IDOf(object).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	theirs := given(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	theirs.SetAPIVersion("example.com/v1")
	if IDOf(theirs) == IDOf(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}}) {
		t.Error("two groups have the same objects")
	}
}
