// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publishing warns authors of edge deployments about their effects, as far as these are known without nodes, and rejects patterns that cannot
// be deployed.
package publishing

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/clusterhub/clusterhub/pkg/admission/edge/services"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "EdgePublishing"
	// maxWarnings is the largest number of warnings in a response, and maxFaults of errors for a pattern.
	maxWarnings, maxFaults = 24, 8
)

// Plugin warns about valid objects with surprising effects, and rejects patterns whose services cannot be deployed together. It runs after the plugin
// that decides which services may be used (serviceuse), and reads no others.
type Plugin struct {
	permission.Guard
	// Services lists the EdgeServices of the hub. If it is nil, policies and patterns are rejected.
	Services rest.Lister
	// reading limits the number of requests that read archives concurrently.
	reading chan struct{}
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer and the services.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update), reading: make(chan struct{}, maxReaders)}
}

// Validate implements admission.ValidationInterface. No subresource changes a spec. Only a changed spec is checked: a stored object can be labeled
// whatever has happened to its services.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	updating := a.GetOperation() == admission.Update
	if n, old, err := permission.Objects[edge.EdgeNode](a, edge.Resource("edgenodes")); n != nil || err != nil {
		if err == nil && (!updating || !equality.Semantic.DeepEqual(n.Spec, old.Spec)) {
			warn(ctx, ofNode(&n.Spec))
		}
		return err
	}
	if s, old, err := permission.Objects[edge.EdgeService](a, edge.Resource("edgeservices")); s != nil || err != nil {
		if err == nil && (!updating || !equality.Semantic.DeepEqual(s.Spec, old.Spec)) {
			warn(ctx, p.ofService(ctx, s))
		}
		return err
	}
	// Permission: the warnings about a DeploymentPolicy or DeploymentPattern contain details of a service in a different namespace that is not public.
	finder := services.NewFinder(p.Services, p.Authorizer, a.GetUserInfo(), a.GetNamespace())
	if d, old, err := permission.Objects[edge.DeploymentPolicy](a, edge.Resource("deploymentpolicies")); d != nil || err != nil {
		if err != nil || updating && equality.Semantic.DeepEqual(d.Spec, old.Spec) {
			return err
		}
		warnings, err := ofPolicy(ctx, finder, a.GetNamespace(), d)
		warn(ctx, warnings)
		return err
	}
	d, old, err := permission.Objects[edge.DeploymentPattern](a, edge.Resource("deploymentpatterns"))
	if d == nil || updating && equality.Semantic.DeepEqual(d.Spec, old.Spec) {
		return err
	}
	faults, warnings, err := p.ofPattern(ctx, finder, a.GetNamespace(), d)
	if err != nil {
		return err
	}
	warn(ctx, warnings)
	return refusal(a, faults)
}

// refusal returns the error for the faults of a pattern.
func refusal(a admission.Attributes, faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	var errs field.ErrorList
	for i, fault := range faults {
		if i == maxFaults {
			fault = fmt.Sprintf("%d more errors of this kind", len(faults)-i)
		}
		errs = append(errs, field.Invalid(field.NewPath("spec", "services"), field.OmitValueType{}, fault))
		if i == maxFaults {
			break
		}
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
}

func warn(ctx context.Context, warnings []string) {
	for i, text := range warnings {
		if i == maxWarnings {
			warning.AddWarning(ctx, "", fmt.Sprintf("%d more warnings", len(warnings)-i))
			return
		}
		warning.AddWarning(ctx, "", text)
	}
}
