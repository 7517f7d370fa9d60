// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package executeas guards the service account with whose permissions a work is applied in a cluster.
package executeas

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/component-base/featuregate"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "ManifestWorkExecuteAs"
	// Feature is the feature gate that also checks works without an executor.
	Feature featuregate.Feature = work.NilExecutorValidating
)

// Plugin rejects a change of the executor of a work by users who may not execute as the new one in the cluster. A work without an executor has the
// permissions of the agent. As in upstream, all users who may write works may write such a work, unless the feature gate is on: then they need
// permission to execute as work.AgentExecutor.
type Plugin struct {
	permission.Guard
	// withoutExecutor reports whether the feature gate is on.
	withoutExecutor bool
}

var (
	_ admission.ValidationInterface = &Plugin{}
	_ initializer.WantsFeatures     = &Plugin{}
)

// New returns the plugin. It needs an authorizer.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// InspectFeatureGates implements initializer.WantsFeatures.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.withoutExecutor = gates.Enabled(Feature)
}

// Validate implements admission.ValidationInterface. It checks every subresource. The error is upstream's 400, on which its clients rely.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	w, old, err := permission.Objects[work.ManifestWork](a, work.Resource("manifestworks"))
	if w == nil {
		return err
	}
	executor := w.Spec.Executor
	switch {
	case executor == nil && !p.withoutExecutor:
		return nil
	case a.GetOperation() == admission.Update && equality.Semantic.DeepEqual(executor, old.Spec.Executor):
		return nil
	}
	account, hint := &work.ManifestWorkSubjectServiceAccount{Name: strings.TrimPrefix(work.AgentExecutor, serviceaccount.MakeUsername("", ""))}, ", or an executor that the user may execute as"
	if executor != nil {
		account, hint = executor.Subject.ServiceAccount, ""
		if executor.Subject.Type != work.ExecutorSubjectTypeServiceAccount || account == nil {
			return apierrors.NewBadRequest("spec.executor.subject: executor service account can not be nil")
		}
	}
	// Permission (name: `system:serviceaccount:NAMESPACE:NAME`; namespace: of the work): `spec.executor` of a ManifestWork becomes this service account. With the feature gate NilExecutorValidating, a work without an executor is one of `system:serviceaccount::klusterlet-work-sa`.
	rule := rbac.Permission{
		Verb: "execute-as", Group: work.GroupName, Resource: "manifestworks", Namespace: w.Namespace,
		Name: serviceaccount.MakeUsername(account.Namespace, account.Name),
	}
	what := fmt.Sprintf("manipulate the Manifestwork with executor %s/%s in namespace %s", account.Namespace, account.Name, w.Namespace)
	d := p.Decide(a)
	held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), rule)
	if held != nil {
		d.Uses(rule)
		return d.End(ctx)
	}
	d.Lacks(what, rule, err)
	_ = d.End(ctx) // for auditors; the error is a different one
	message := fmt.Sprintf("user %s cannot %s: this needs the RBAC rule %s%s", a.GetUserInfo().GetName(), what, rule, hint)
	if err != nil {
		message += fmt.Sprintf(" (%v)", err)
	}
	return apierrors.NewBadRequest(message)
}
