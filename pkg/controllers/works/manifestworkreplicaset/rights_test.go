// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

// only allows these questions, and no others.
func only(questions ...string) func(string) (bool, error) {
	return func(q string) (bool, error) { return slices.Contains(questions, q), nil }
}

// bound returns a set with clusters, and a binding of it in the namespace.
func bound(set, namespace string, clusters ...string) (objs []client.Object) {
	objs = append(objs, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: set}},
		&clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}})
	for _, name := range clusters {
		objs = append(objs, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": set},
		}})
	}
	return objs
}

const (
	everywhere = "ann: create manifestworks"
	inSet      = `ann: create managedclustersets/manifestworks "s1"`
	inC1       = "ann: create manifestworks in namespace c1"
	inC2       = "ann: create manifestworks in namespace c2"
)

func TestRights_OneReviewForAllClusters(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", names(300)...)
	f.settle()
	if len(f.works()) != 300 || !slices.Equal(f.reviews, []string{everywhere}) {
		t.Errorf("%d works after %q", len(f.works()), f.reviews)
	}
	f.is(conditionAuthorized, "True", "AsExpected")
	// The reviews are repeated for another spec, and for the same one after a while.
	f.retext("two")
	f.settle()
	f.clock.SetTime(f.clock.Now().Add(allowedFor))
	f.decide("p", append(names(300), "d1")...)
	f.settle()
	if len(f.reviews) != 3 {
		t.Errorf("%q", f.reviews)
	}
}

func TestRights_OfAuthor(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		allows  []string
		write   []string
		says    string
	}{
		"none":                      {},
		"none in the set it is in":  {objects: bound("s1", "ns", "c1"), says: "in namespace c1, and does not have the role deployer of the set s1 (kubectl hub grant s1 --role deployer)"},
		"everywhere":                {allows: []string{everywhere}, write: []string{"create c1", "create c2"}},
		"in the namespace of one":   {allows: []string{inC1}, write: []string{"create c1"}},
		"in a set":                  {objects: bound("s1", "ns", "c1"), allows: []string{inSet}, write: []string{"create c1"}},
		"in a set, and of one":      {objects: bound("s1", "ns", "c1"), allows: []string{inSet, inC2}, write: []string{"create c1", "create c2"}},
		"in a set bound elsewhere":  {objects: bound("s1", "other", "c1"), allows: []string{inSet}},
		"in a set of other ones":    {objects: bound("s1", "ns", "c3"), allows: []string{inSet}},
		"of another user":           {allows: []string{"eve: create manifestworks"}},
		"to create something else":  {allows: []string{"ann: create pods", "ann: create manifestworks/status"}},
		"in the namespace of a set": {allows: []string{"ann: create manifestworks in namespace ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, append(test.objects, replicaSet("p"))...)
			f.allows = only(test.allows...)
			f.decide("p", "c1", "c2")
			f.expect(test.write...)
			if len(test.write) == 2 {
				f.is(conditionAuthorized, "True", "AsExpected")
				return
			}
			f.is(conditionAuthorized, "False", "NotAllowed")
			if c := f.condition(conditionAuthorized); !strings.Contains(c.Message, `user "ann", the author of the spec, may not create manifestworks in namespace c`) {
				t.Error(c.Message)
			} else if !strings.Contains(c.Message, test.says) || test.says == "" && strings.Contains(c.Message, "deployer") {
				t.Errorf("it says %s, want %q", c.Message, test.says)
			}
			f.is(rolledOut, "False", "Progressing")
		})
	}
}

// Naming an executor uses its rights in the cluster, which takes a permission of its own.
func TestRights_ExecutorNeedsPermission(t *testing.T) {
	set := replicaSet("p")
	set.Spec.ManifestWorkTemplate.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "a", Name: "b"},
	}}
	const asExecutor = `ann: execute-as manifestworks "system:serviceaccount:a:b"`
	for name, test := range map[string]struct {
		allows []string
		write  []string
	}{
		"none":           {allows: []string{everywhere}},
		"everywhere":     {allows: []string{everywhere, asExecutor}, write: []string{"create c1", "create c2"}},
		"not to write":   {allows: []string{asExecutor}},
		"in one":         {allows: []string{everywhere, asExecutor + " in namespace c1"}, write: []string{"create c1"}},
		"in a set":       {allows: []string{everywhere, `ann: execute-as managedclustersets/manifestworks "s1:system:serviceaccount:a:b"`}, write: []string{"create c1"}},
		"of another set": {allows: []string{everywhere, `ann: execute-as managedclustersets/manifestworks "s2:system:serviceaccount:a:b"`}},
		"as another one": {allows: []string{everywhere, `ann: execute-as manifestworks "system:serviceaccount:a:c"`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, append(bound("s1", "ns", "c1"), set.DeepCopy())...)
			f.allows = only(test.allows...)
			f.decide("p", "c1", "c2")
			f.expect(test.write...)
		})
	}
}

// With the feature gate, the agent is an executor as well. hub-controller-manager may execute as every user, so the permission of the author is
// checked nowhere else.
func TestRights_WithoutExecutor(t *testing.T) {
	const asAgent = `ann: execute-as manifestworks "system:serviceaccount::klusterlet-work-sa"`
	for name, test := range map[string]struct {
		allows []string
		write  []string
	}{
		"none":            {allows: []string{everywhere}},
		"everywhere":      {allows: []string{everywhere, asAgent}, write: []string{"create c1", "create c2"}},
		"not to write":    {allows: []string{asAgent}},
		"in one":          {allows: []string{everywhere, asAgent + " in namespace c1"}, write: []string{"create c1"}},
		"in a set":        {allows: []string{everywhere, `ann: execute-as managedclustersets/manifestworks "s1:system:serviceaccount::klusterlet-work-sa"`}, write: []string{"create c1"}},
		"as another one":  {allows: []string{everywhere, `ann: execute-as manifestworks "system:serviceaccount:a:b"`}},
		"of another user": {allows: []string{everywhere, strings.Replace(asAgent, "ann", "eve", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, append(bound("s1", "ns", "c1"), replicaSet("p"))...)
			f.process.ChecksAgentExecutor = true
			f.allows = only(test.allows...)
			f.decide("p", "c1", "c2")
			f.expect(test.write...)
			if len(test.write) < 2 {
				f.is(conditionAuthorized, "False", "NotAllowed")
			}
		})
	}
}

// A user who may not execute as the agent gains nothing from the sets of a user who may: neither a new template nor the removal of the executor
// reaches a cluster.
func TestAttack_ExecutorFromTemplateOfOthers(t *testing.T) {
	executor := &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "a", Name: "b"},
	}}
	for name, before := range map[string]*workv1.ManifestWorkExecutor{"another template": nil, "the executor goes": executor} {
		t.Run(name, func(t *testing.T) {
			set := replicaSet("p")
			set.Spec.ManifestWorkTemplate.Executor = before
			f := newFixture(t, set)
			f.process.ChecksAgentExecutor = true
			f.decide("p", "c1")
			f.settle()
			f.allows = only("eve: create manifestworks", `eve: execute-as manifestworks "system:serviceaccount:a:b"`)
			change(f, key, func(set *workv1alpha1.ManifestWorkReplicaSet) {
				set.Annotations[work.AuthorAnnotation], set.Spec.ManifestWorkTemplate = `{"username":"eve"}`, template("two")
			})
			f.decide("p", "c1", "c2")
			f.expect()
			if got := f.texts(); !slices.Equal(got, []string{"c1 one"}) {
				t.Errorf("%q", got)
			}
			const says = `user "eve", the author of the spec, may not execute-as manifestworks "system:serviceaccount::klusterlet-work-sa" in namespace c1, ` +
				"which executes works without an executor: set an executor in the template"
			if c := f.condition(conditionAuthorized); !strings.Contains(c.Message, says) {
				t.Error(c.Message)
			}
		})
	}
}

func TestRights_WithoutAuthorNothingIsWritten(t *testing.T) {
	for _, recorded := range []string{"", "ann", `{"username":""}`, `{"groups":["system:masters"]}`, `["ann"]`} {
		set := replicaSet("p")
		set.Annotations[work.AuthorAnnotation] = recorded
		if recorded == "" {
			set.Annotations = nil
		}
		f := newFixture(t, set)
		f.decide("p", "c1")
		f.expect()
		f.is(conditionAuthorized, "False", "AuthorUnknown")
		if len(f.reviews) > 0 {
			t.Errorf("asked: %q", f.reviews)
		}
	}
	// Works that were written before stay as they are.
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1", "c2")
	f.settle()
	change(f, key, func(set *workv1alpha1.ManifestWorkReplicaSet) {
		set.Annotations, set.Labels["a"], set.Spec.ManifestWorkTemplate = nil, "b", template("two")
	})
	f.decide("p", "c1", "c3")
	f.expect()
	if got := f.texts(); !slices.Equal(got, []string{"c1 one", "c2 one"}) {
		t.Errorf("%q", got)
	}
}

// A user with fewer rights changes the spec: existing works stay as they are, and no other user's rights are used.
func TestRights_LastAuthorCounts(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1", "c2")
	f.settle()
	f.report("Applied Available", "c1", "c2")
	f.settle()
	f.allows = only("eve: create manifestworks in namespace c2", everywhere)
	change(f, key, func(set *workv1alpha1.ManifestWorkReplicaSet) {
		set.Annotations[work.AuthorAnnotation], set.Labels["a"], set.Spec.ManifestWorkTemplate = `{"username":"eve"}`, "b", template("two")
	})
	f.expect("update c2")
	if got := f.texts(); !slices.Equal(got, []string{"c1 one", "c2 two"}) {
		t.Errorf("%q", got)
	}
	c := f.condition(conditionAuthorized)
	if want := `user "eve", the author of the spec, may not create manifestworks in namespace c1; nothing is written to 1 clusters: c1`; c.Message != want {
		t.Error(c.Message)
	}
}

// The revocation of a right soon applies to works that are not written yet, and a new right after a while.
func TestRights_Change(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p"), 1))
	f.decide("p", "c1", "c2")
	f.expect("create c1")
	f.allows = only()
	f.clock.SetTime(f.clock.Now().Add(allowedFor))
	f.report("Applied Available", "c1")
	f.expect()
	f.is(conditionAuthorized, "False", "NotAllowed")
	f.allows = only(everywhere)
	f.expect()
	f.pass(deniedFor)
	f.expect("create c2")
}

// If the review fails, nothing is allowed.
func TestRights_ReviewErrorDenies(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.allows = func(string) (bool, error) { return true, errors.New("connection refused") }
	f.decide("p", "c1")
	f.tell()
	f.once()
	if len(f.there()) > 0 || len(f.queue.all) == 0 {
		t.Errorf("%d works, asked again: %v", len(f.there()), f.queue.all)
	}
}

// An author who may not write to most of many clusters costs a bounded number of questions.
func TestRights_ReviewsAreRateLimited(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p"), 1))
	f.allows = only(inC2)
	f.decide("p", names(400)...)
	f.tell()
	f.once()
	if len(f.reviews) != maxReviews {
		t.Fatalf("%d questions in a round", len(f.reviews))
	}
	f.expect("create c2")
	// While the cluster has the only slot, there are no questions about others.
	if asked := len(f.reviews); asked > 200 {
		t.Errorf("%d questions", asked)
	}
	f.report("Applied Available", "c2")
	f.expect()
	asked := len(f.reviews)
	if asked < 400 || asked > 410 {
		t.Errorf("%d questions", asked)
	}
	f.pass(deniedFor)
	f.expect()
	if more := len(f.reviews) - asked; more > 1 {
		t.Errorf("%d questions again", more)
	}
}

func TestRights_ReviewHasAllOfAuthor(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1")
	f.settle()
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "ann", UID: "1", Groups: []string{"team"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: "work.open-cluster-management.io", Version: "*", Resource: "manifestworks"},
	}
	if diff := cmp.Diff(want, f.asked); diff != "" {
		t.Error(diff)
	}
}
