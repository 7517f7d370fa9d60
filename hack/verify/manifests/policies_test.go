// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// compiled is a policy as API servers compile it.
func compiled(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	with, without := cel.OptionalVariableDeclarations{HasAuthorizer: true}, cel.OptionalVariableDeclarations{}
	var variables []cel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, with, environment.NewExpressions)
	var matches, validations, messages []cel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		matches = append(matches, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message cel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(matches, with, environment.NewExpressions),
		policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	validator := validating.NewValidator(compiler.CompileCondition(validations, with, environment.NewExpressions), matcher,
		compiler.CompileCondition(nil, with, environment.NewExpressions), compiler.CompileCondition(messages, without, environment.NewExpressions),
		policy.Spec.FailurePolicy, nil)
	if err := validator.CompileError(); err != nil {
		t.Errorf("%s: %v", policy.Name, err)
	}
	return validator
}

// decided is what the policies about ConfigMaps say of a write, "" when they let it pass.
func decided(t *testing.T, policies map[string]validating.Validator, account string, before, after *corev1.ConfigMap) string {
	t.Helper()
	operation, of := admission.Update, after
	var object, old runtime.Object
	switch {
	case before == nil:
		operation, object = admission.Create, after
	case after == nil:
		operation, old, of = admission.Delete, before, before
	default:
		object, old = after, before
	}
	kind, resource := corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithResource("configmaps")
	attributes := admission.NewAttributesRecord(object, old, kind, of.Namespace, of.Name, resource, "", operation, nil, false,
		&user.DefaultInfo{Name: "system:serviceaccount:clusterhub-system:" + account})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind}
	if object != nil {
		versioned.VersionedObject = admission.NewLazyObject(object)
	}
	if old != nil {
		versioned.VersionedOldObject = admission.NewLazyObject(old)
	}
	var said []string
	for name, policy := range policies {
		for _, d := range policy.Validate(t.Context(), resource, versioned, nil, nil, celconfig.RuntimeCELCostBudget, nil).Decisions {
			if d.Evaluation == validating.EvalError {
				t.Errorf("%s: %s", name, d.Message)
			}
			if d.Action == validating.ActionDeny {
				said = append(said, d.Message)
			}
		}
	}
	slices.Sort(said)
	return strings.Join(said, "; ")
}

// Of ConfigMaps, the controllers write what the hub remembers of clusters, each its part.
func TestPolicies_RestrictControllersToTheirRecords(t *testing.T) {
	policies := map[string]validating.Validator{}
	for _, o := range built(t, "base") {
		if policy, ok := o.(*admissionv1.ValidatingAdmissionPolicy); ok {
			validator := compiled(t, policy)
			rule := policy.Spec.MatchConstraints.ResourceRules[0]
			if slices.Contains(rule.APIGroups, "") && slices.Contains(rule.Resources, "configmaps") {
				policies[policy.Name] = validator
			}
		}
	}
	if len(policies) != 2 {
		t.Fatalf("there are %d policies about ConfigMaps, want 2", len(policies))
	}
	record := func(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "clusterhub-registration", Name: "c1", Labels: map[string]string{"open-cluster-management.io/cluster-name": "c1"},
		}, Data: map[string]string{"driver": "csr", "record": "", "cluster-uid": "a"}}
		if change != nil {
			change(c)
		}
		return c
	}
	data := func(key, value string) *corev1.ConfigMap {
		return record(func(c *corev1.ConfigMap) { c.Data[key] = value })
	}
	named := func(namespace, name string) *corev1.ConfigMap {
		return record(func(c *corev1.ConfigMap) {
			c.Namespace, c.Name, c.Labels["open-cluster-management.io/cluster-name"] = namespace, name, name
		})
	}
	const manager, approver, other = "hub-controller-manager", "hub-certificate-approver", "another"
	key := strings.Repeat("0a", 32)
	for name, test := range map[string]struct {
		before, after *corev1.ConfigMap
		may           []string
	}{
		"make":                {nil, record(nil), []string{manager}},
		"delete":              {record(nil), nil, []string{manager}},
		"change nothing":      {record(nil), record(nil), []string{manager, approver}},
		"grant":               {record(nil), data("granted", "2030-01-01T00:00:00Z"), []string{manager}},
		"empty":               {record(nil), record(func(c *corev1.ConfigMap) { c.Data = nil }), []string{manager}},
		"pin":                 {record(nil), data("key-sha256", key), []string{manager, approver}},
		"undecided":           {record(nil), data("key-sha256", "undecided"), []string{manager, approver}},
		"pinned when":         {record(nil), data("key-since", "2030-01-01T00:00:00Z"), []string{manager, approver}},
		"take the pin away":   {data("key-sha256", key), record(nil), []string{manager, approver}},
		"no key":              {record(nil), data("key-sha256", "00"), []string{manager}},
		"no time":             {record(nil), data("key-since", strings.Repeat("0", 65)), []string{manager}},
		"who may ask":         {record(nil), data("requesters", "eve"), []string{manager}},
		"forget the driver":   {record(nil), record(func(c *corev1.ConfigMap) { delete(c.Data, "driver") }), []string{manager}},
		"other data":          {record(nil), data("a", "b"), nil},
		"bytes":               {record(nil), record(func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"a": {0}} }), nil},
		"for ever":            {record(nil), record(func(c *corev1.ConfigMap) { c.Immutable = new(true) }), nil},
		"an owner":            {record(nil), record(func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{{UID: "gone"}} }), nil},
		"another label":       {record(nil), record(func(c *corev1.ConfigMap) { c.Labels["a"] = "b" }), nil},
		"no label":            {record(nil), record(func(c *corev1.ConfigMap) { c.Labels = nil }), nil},
		"label it again":      {record(func(c *corev1.ConfigMap) { c.Labels = nil }), record(nil), []string{manager}},
		"an annotation":       {record(nil), record(func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"a": "b"} }), []string{manager}},
		"of another":          {nil, record(func(c *corev1.ConfigMap) { c.Name = "c2" }), nil},
		"of no cluster":       {nil, named("clusterhub-registration", "a.b"), nil},
		"of a reserved name":  {nil, named("clusterhub-registration", "work"), nil},
		"in another place":    {nil, named("kube-system", "c1"), nil},
		"of AWS":              {named("kube-system", "aws-auth"), named("kube-system", "aws-auth"), []string{manager}},
		"delete that of AWS":  {named("kube-system", "aws-auth"), nil, nil},
		"delete Kubernetes' ": {named("clusterhub-registration", "kube-root-ca.crt"), nil, nil},
	} {
		for _, account := range []string{manager, approver} {
			if said := decided(t, policies, account, test.before, test.after); (said == "") != slices.Contains(test.may, account) {
				t.Errorf("%s: %s: refused by %q", name, account, said)
			}
		}
		if said := decided(t, policies, other, test.before, test.after); said != "" {
			t.Errorf("%s: another is refused by %q", name, said)
		}
	}
}
