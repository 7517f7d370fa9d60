// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accesspolicy decides by CEL expressions which access users may request, and for clusters of which purposes.
package accesspolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// Spec has lists of rules. A list that is not set allows everything, an empty one nothing.
type Spec struct {
	// ClusterRequests are the rules for ClusterRequests. Their variables are request (the ClusterRequest), purpose and namespaceObject (the
	// Namespace of the request). Of a request, rules see only name, namespace and spec. The requester chooses the rest of its metadata, and could
	// pose as another user with it.
	ClusterRequests []Rule `json:"clusterRequests,omitempty"`
	// AccessRequests are the rules for AccessRequests. Their variables are request (the AccessRequest), cluster (the Cluster), clusterRequests (the
	// ClusterRequests that have the Cluster), namespaceObject (the Namespace of the request), roleRefs (all roles that it names) and permissions
	// (all roles that it defines), whether for a token or by OIDC. They do not see spec.requestRef: the request may also name a Cluster, which then
	// counts.
	AccessRequests []Rule `json:"accessRequests,omitempty"`
}

// Rule allows the requests for which its expression is true.
type Rule struct {
	// Name identifies the rule to users who are denied.
	Name string `json:"name,omitempty"`
	// Expression is a CEL expression, with the libraries of ValidatingAdmissionPolicies.
	Expression string `json:"expression"`
}

// Policy is a compiled Spec. It is safe for concurrent use. A nil Policy allows everything.
type Policy struct {
	// A list that is not restricted is nil.
	clusterRequests, accessRequests []compiledRule
}

type compiledRule struct {
	name    string
	program cel.Program
	// aboutRoles reports whether the rule uses the requested roles.
	aboutRoles bool
}

// Names of variables. CEL reserves the word namespace.
const (
	variableRequest         = "request"
	variablePurpose         = "purpose"
	variableNamespace       = "namespaceObject"
	variableCluster         = "cluster"
	variableClusterRequests = "clusterRequests"
	variableRoleRefs        = "roleRefs"
	variablePermissions     = "permissions"
)

// Compile compiles a configuration, or returns its errors. Without a configuration it returns a nil Policy, which restricts nothing.
func Compile(config *Spec, path *field.Path) (*Policy, field.ErrorList) {
	if config == nil {
		return nil, nil
	}
	clusterRequests, errs := compileRules(config.ClusterRequests, path.Child("clusterRequests"),
		cel.Variable(variableRequest, cel.DynType), cel.Variable(variablePurpose, cel.StringType), cel.Variable(variableNamespace, cel.DynType))
	accessRequests, more := compileRules(config.AccessRequests, path.Child("accessRequests"),
		cel.Variable(variableRequest, cel.DynType), cel.Variable(variableCluster, cel.DynType), cel.Variable(variableNamespace, cel.DynType),
		cel.Variable(variableClusterRequests, cel.ListType(cel.DynType)), cel.Variable(variableRoleRefs, cel.ListType(cel.DynType)), cel.Variable(variablePermissions, cel.ListType(cel.DynType)))
	return &Policy{clusterRequests: clusterRequests, accessRequests: accessRequests}, append(errs, more...)
}

func compileRules(configs []Rule, path *field.Path, variables ...cel.EnvOption) (rules []compiledRule, errs field.ErrorList) {
	if configs == nil {
		return nil, nil
	}
	rules = make([]compiledRule, 0, len(configs))
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(
		environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: variables})
	if err != nil {
		return nil, field.ErrorList{field.InternalError(path, err)}
	}
	env, err := base.Env(environment.NewExpressions)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(path, err)}
	}
	for i, config := range configs {
		at := path.Index(i).Child("expression")
		ast, issues := env.Compile(config.Expression)
		if issues.Err() != nil {
			errs = append(errs, field.Invalid(at, config.Expression, issues.Err().Error()))
			continue
		}
		if ast.OutputType() != cel.BoolType {
			errs = append(errs, field.Invalid(at, config.Expression, fmt.Sprintf("must be a bool, not %s", ast.OutputType())))
			continue
		}
		program, err := env.Program(ast, cel.CostLimit(celconfig.PerCallLimit), cel.InterruptCheckFrequency(celconfig.CheckFrequency))
		if err != nil {
			errs = append(errs, field.Invalid(at, config.Expression, err.Error()))
			continue
		}
		if config.Name == "" {
			config.Name = path.Index(i).String()
		}
		rules = append(rules, compiledRule{name: config.Name, program: program, aboutRoles: mentions(ast, variableRoleRefs, variablePermissions)})
	}
	return rules, errs
}

// mentions reports whether an expression uses one of the variables.
func mentions(ast *cel.Ast, variables ...string) bool {
	found := false
	celast.PostOrderVisit(ast.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		found = found || e.Kind() == celast.IdentKind && slices.Contains(variables, strings.TrimPrefix(e.AsIdent(), "."))
	}))
	return found
}

// RestrictsClusterRequests reports whether the policy has rules for ClusterRequests.
func (p *Policy) RestrictsClusterRequests() bool { return p != nil && p.clusterRequests != nil }

// RestrictsAccessRequests reports whether the policy has rules for AccessRequests.
func (p *Policy) RestrictsAccessRequests() bool { return p != nil && p.accessRequests != nil }

// ClusterRequestAllowed reports whether a request may be granted. If a rule fails, it returns an error, which is no decision: the request may be
// allowed once the rule is repaired.
func (p *Policy) ClusterRequestAllowed(ctx context.Context, request *v1alpha1.ClusterRequest, namespace *corev1.Namespace) (bool, error) {
	if !p.RestrictsClusterRequests() {
		return true, nil
	}
	return anyAllows(ctx, p.clusterRequests, map[string]any{
		variableRequest: visibleOf(request), variablePurpose: request.Spec.Purpose, variableNamespace: namespace,
	})
}

// AccessRequestAllowed reports whether a request may have the access that its spec names, to a Cluster that the holders have. If a rule fails, it
// returns an error, which is no decision: the request may be allowed once the rule is repaired.
func (p *Policy) AccessRequestAllowed(
	ctx context.Context, request *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, holders []v1alpha1.ClusterRequest,
	namespace *corev1.Namespace,
) (bool, error) {
	if !p.RestrictsAccessRequests() {
		return true, nil
	}
	roleRefs, permissions, clusterRequests := []any{}, []any{}, []any{}
	for i := range holders {
		clusterRequests = append(clusterRequests, visibleOf(&holders[i]))
	}
	addRoleRefs := func(refs []v1alpha1.RoleRef) {
		for i := range refs {
			roleRefs = append(roleRefs, &refs[i])
		}
	}
	addPermissions := func(requests []v1alpha1.PermissionsRequest) {
		for i := range requests {
			permissions = append(permissions, &requests[i])
		}
	}
	if token := request.Spec.Token; token != nil {
		addRoleRefs(token.RoleRefs)
		addPermissions(token.Permissions)
	}
	if oidc := request.Spec.OIDC; oidc != nil {
		addPermissions(oidc.Roles)
		for _, binding := range oidc.RoleBindings {
			addRoleRefs(binding.RoleRefs)
		}
	}
	rules := p.accessRequests
	if len(roleRefs) == 0 && len(permissions) == 0 {
		// Without roles, any condition on all roles is true.
		rules = slices.DeleteFunc(slices.Clone(rules), func(r compiledRule) bool { return r.aboutRoles })
	}
	visible := &v1alpha1.AccessRequest{ObjectMeta: identity(request), Spec: request.Spec}
	visible.Spec.RequestRef = nil
	return anyAllows(ctx, rules, map[string]any{
		variableRequest: visible, variableCluster: cluster, variableNamespace: namespace,
		variableClusterRequests: clusterRequests, variableRoleRefs: roleRefs, variablePermissions: permissions,
	})
}

func visibleOf(request *v1alpha1.ClusterRequest) *v1alpha1.ClusterRequest {
	return &v1alpha1.ClusterRequest{ObjectMeta: identity(request), Spec: request.Spec}
}

// identity returns the metadata that a requester can choose only with a permission for it.
func identity(request metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: request.GetNamespace(), Name: request.GetName()}
}

// anyAllows reports whether one of the rules is true. If none is, and some cannot be evaluated, it returns their errors.
func anyAllows(ctx context.Context, rules []compiledRule, variables map[string]any) (bool, error) {
	for name, value := range variables {
		plain, err := asMaps(value)
		if err != nil {
			return false, err
		}
		variables[name] = plain
	}
	var errs []error
	for _, rule := range rules {
		result, _, err := rule.program.ContextEval(ctx, variables)
		if err != nil {
			errs = append(errs, fmt.Errorf("the rule %q of the policy cannot be evaluated: %w", rule.name, err))
		} else if result.Value() == true {
			return true, nil
		}
	}
	return false, errors.Join(errs...)
}

// asMaps converts an object to what expressions see, by the names in its JSON.
func asMaps(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case []any:
		plain := make([]any, len(value))
		for i := range value {
			var err error
			plain[i], err = asMaps(value[i])
			if err != nil {
				return nil, err
			}
		}
		return plain, nil
	default:
		return runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	}
}
