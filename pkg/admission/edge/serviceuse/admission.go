// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceuse guards the services of other namespaces that policies and patterns name: the hub deploys them to clusters for users who may not
// read them otherwise.
package serviceuse

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/admission/edge/services"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "EdgeServiceUse"
	// maxListed is the largest number of versions in an error.
	maxListed = 4
)

// Plugin rejects a policy or pattern that names a version of a service of another namespace that is not public, and that the user may not get. The
// error is the same if it does not exist. A service of the same namespace may be created later.
//
// A deleted version that the object named before is not rejected: otherwise a withdrawn version would prevent all other changes of the object. It
// grants nothing either. If it is created again, the hub checks the permissions of the last author of the spec before it deploys it.
type Plugin struct {
	permission.Guard
	// Services lists the EdgeServices of the hub. If it is nil, services of other namespaces are rejected.
	Services rest.Lister
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer and the services.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface. It checks every subresource, and only a changed spec: labels and finalizers can be written
// whatever has happened to the services.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	named, before, err := namedServices(a)
	if len(named) == 0 || err != nil {
		return err
	}
	// Permission: the spec of a DeploymentPolicy or DeploymentPattern names a service in a different namespace that is not public.
	finder := services.NewFinder(p.Services, p.Authorizer, a.GetUserInfo(), a.GetNamespace())
	var errs field.ErrorList
	for i := range named {
		w := &named[i]
		if w.Namespace == a.GetNamespace() {
			continue
		}
		_, missing, err := finder.Find(ctx, w)
		if err != nil {
			return admission.NewForbidden(a, fmt.Errorf("whether the services of other namespaces may be used cannot be decided: %w", err))
		}
		for _, index := range missing {
			if len(errs) == maxListed {
				break
			}
			if services.Names(before, w, w.Versions[index]) && finder.Gone(w, index) {
				continue
			}
			errs = append(errs, field.Invalid(w.VersionsPath.Index(index).Child("version"), w.Versions[index], fmt.Sprintf(
				"version %s of service %s for this architecture in namespace %s does not exist, or user %q may not use it: it must exist, and be public, "+
					"or this needs the RBAC rule %s", w.Versions[index], w.URL, w.Namespace, a.GetUserInfo().GetName(), services.Get(w.Namespace, ""))))
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	d := p.Decide(a)
	for _, rule := range finder.Used {
		d.Uses(rule)
	}
	return d.End(ctx)
}

// namedServices returns the services that a new spec names, and those that the old one named.
func namedServices(a admission.Attributes) (named, before []services.Wanted, err error) {
	update := a.GetOperation() == admission.Update
	if d, old, err := permission.Objects[edge.DeploymentPolicy](a, edge.Resource("deploymentpolicies")); d != nil || err != nil {
		if err != nil || update && equality.Semantic.DeepEqual(d.Spec, old.Spec) {
			return nil, nil, err
		}
		if update {
			before = services.OfPolicy(a.GetNamespace(), &old.Spec)
		}
		return services.OfPolicy(a.GetNamespace(), &d.Spec), before, nil
	}
	d, old, err := permission.Objects[edge.DeploymentPattern](a, edge.Resource("deploymentpatterns"))
	if d == nil || update && equality.Semantic.DeepEqual(d.Spec, old.Spec) {
		return nil, nil, err
	}
	if update {
		before = services.OfPattern(a.GetNamespace(), &old.Spec)
	}
	return services.OfPattern(a.GetNamespace(), &d.Spec), before, nil
}
