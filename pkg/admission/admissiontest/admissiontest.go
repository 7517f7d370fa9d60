// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admissiontest helps to test admission plugins. It has an authorizer that grants exact rules and records what it is called with, and
// requests as the API server creates them.
package admissiontest

import (
	"context"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// User is the user of the requests. Other users have no permissions.
var User = &user.DefaultInfo{
	Name: "ann", UID: "4711", Groups: []string{"team"}, Extra: map[string][]string{"example.com/scope": {"a"}},
}

// AdmittedConcurrently returns how many of n concurrent requests are admitted.
func AdmittedConcurrently(n int, request func(i int) error) int {
	var admitted atomic.Int32
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if request(i) == nil {
				admitted.Add(1)
			}
		})
	}
	all.Wait()
	return int(admitted.Load())
}

// Authorizer grants User its rules. It compares names literally as RBAC does.
type Authorizer struct {
	// Grants are the rules that User has.
	Grants []rbac.Permission
	// Denials are denied explicitly, where RBAC would have no opinion.
	Denials []rbac.Permission
	// Err is the error for anything that is not granted.
	Err error
	// Asked are the checked permissions, in order.
	Asked []rbac.Permission
	// Odd are requests that no RBAC rule for an API resource can match.
	Odd []authorizer.Attributes

	lock sync.Mutex
}

// Authorize implements authorizer.Authorizer.
func (f *Authorizer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	rule := rbac.Permission{
		Verb: a.GetVerb(), Group: a.GetAPIGroup(),
		Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(), Namespace: a.GetNamespace(),
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.Asked = append(f.Asked, rule)
	if !a.IsResourceRequest() || a.GetUser() != user.Info(User) {
		f.Odd = append(f.Odd, a)
		return authorizer.DecisionNoOpinion, "", nil
	}
	switch {
	case slices.Contains(f.Grants, rule):
		return authorizer.DecisionAllow, "", nil
	case slices.Contains(f.Denials, rule):
		return authorizer.DecisionDeny, "the policy says so", nil
	}
	return authorizer.DecisionNoOpinion, "", f.Err
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (f *Authorizer) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(f.Authorize(ctx, a))
}

// EvaluateConditions implements authorizer.Authorizer. RBAC has no conditions.
func (f *Authorizer) EvaluateConditions(
	context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// Names returns the names of the checked permissions.
func (f *Authorizer) Names() []string {
	var names []string
	for _, r := range f.Asked {
		names = append(names, r.Name)
	}
	return names
}

// Rule returns the permission on one name of a resource, or of a subresource written resource/subresource.
func Rule(verb, group, resource, name string) rbac.Permission {
	resource, subresource, _ := strings.Cut(resource, "/")
	return rbac.Permission{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Name: name}
}

// Label returns the permission on a label of clusters.
func Label(name string) rbac.Permission {
	return Rule("create", cluster.GroupName, "managedclusters/label", name)
}

// Labels returns the permissions on labels of clusters.
func Labels(names ...string) []rbac.Permission {
	var rules []rbac.Permission
	for _, name := range names {
		rules = append(rules, Label(name))
	}
	return rules
}

// Join returns the older permission on a set's label.
func Join(set string) rbac.Permission {
	return Rule("create", cluster.GroupName, "managedclustersets/join", set)
}

// Cluster returns a cluster with labels, written key, value, key, value.
func Cluster(name string, labels ...string) *cluster.ManagedCluster {
	c := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := 0; i < len(labels); i += 2 {
		metav1.SetMetaDataLabel(&c.ObjectMeta, labels[i], labels[i+1])
	}
	return c
}

// Request is a request as the API server passes it to admission. Without an old object it is a create.
type Request struct {
	Object, Old runtime.Object
	Resource    string
	Version     string
	Subresource string
	DryRun      bool
	// Group is the group of managedclusters if empty, and By is User if nil.
	Group string
	By    user.Info
}

// Attributes returns the attributes for a plugin.
func (r Request) Attributes() admission.Attributes {
	if r.Version == "" {
		r.Version = "v1"
	}
	if r.Resource == "" {
		r.Resource = "managedclusters"
	}
	if r.Group == "" {
		r.Group = cluster.GroupName
	}
	if r.By == nil {
		r.By = User
	}
	gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
	kind := reflect.TypeOf(r.Object).Elem().Name()
	operation, options := admission.Update, runtime.Object(&metav1.UpdateOptions{})
	if r.Old == nil {
		operation, options = admission.Create, &metav1.CreateOptions{}
	}
	m, err := meta.Accessor(r.Object)
	if err != nil {
		panic(err)
	}
	return admission.NewAttributesRecord(r.Object, r.Old, gv.WithKind(kind), m.GetNamespace(), m.GetName(),
		gv.WithResource(r.Resource), r.Subresource, operation, options, r.DryRun, r.By)
}

// Warnings records warnings.
type Warnings []string

// AddWarning implements warning.Recorder.
func (w *Warnings) AddWarning(_, text string) { *w = append(*w, text) }

// Validate runs a plugin's validation and returns its warnings.
func Validate(t *testing.T, plugin admission.ValidationInterface, a admission.Attributes) (Warnings, error) {
	t.Helper()
	var warnings Warnings
	if !plugin.Handles(a.GetOperation()) {
		return nil, nil
	}
	before := a.GetObject().DeepCopyObject()
	err := plugin.Validate(warning.WithWarningRecorder(t.Context(), &warnings), a, nil)
	if !sameLabels(before, a.GetObject()) {
		t.Error("validation changed the labels of what it validates")
	}
	return warnings, err
}

func sameLabels(a, b runtime.Object) bool {
	ma, _ := meta.Accessor(a)
	mb, _ := meta.Accessor(b)
	return maps.Equal(ma.GetLabels(), mb.GetLabels())
}

var ruleText = regexp.MustCompile(`\{apiGroups: [^}]*\}`)

// MissingRules returns the rules that a 403 names. It parses them as YAML of a ClusterRole.
func MissingRules(t *testing.T, err error) []rbac.Permission {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want a 403", err)
	}
	var rules []rbac.Permission
	for _, text := range ruleText.FindAllString(err.Error(), -1) {
		var rule rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict([]byte(text), &rule); err != nil {
			t.Fatalf("%s is no rule: %v", text, err)
		}
		if len(rule.APIGroups) != 1 || len(rule.Resources) != 1 || len(rule.Verbs) != 1 || len(rule.ResourceNames) != 1 {
			t.Fatalf("%s names not exactly one right", text)
		}
		rules = append(rules, Rule(rule.Verbs[0], rule.APIGroups[0], rule.Resources[0], rule.ResourceNames[0]))
	}
	return rules
}
