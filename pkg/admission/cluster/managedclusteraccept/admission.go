// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedclusteraccept guards spec.hubAcceptsClient, by which the hub accepts a cluster, and the annotations that determine the cluster's
// agent: whose certificate is approved, or which IAM role is accepted.
package managedclusteraccept

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ManagedClusterAccept"

// Plugin rejects requests to accept or deny a cluster, and to determine its agent, by users who may not.
type Plugin struct {
	permission.Guard
	namespaces corelisters.NamespaceLister
}

var (
	_ admission.ValidationInterface                = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
)

// New returns the plugin. It needs an authorizer and informers.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	namespaces := factory.Core().V1().Namespaces()
	p.namespaces = namespaces.Lister()
	p.SetReadyFunc(namespaces.Informer().HasSynced)
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.namespaces == nil {
		return errors.New(PluginName + " needs the namespaces of the hub")
	}
	return p.Guard.ValidateInitialization()
}

// Validate implements admission.ValidationInterface. It checks every subresource, because any of them could change the object.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := permission.Objects[cluster.ManagedCluster](a, cluster.Resource("managedclusters"))
	if updated == nil {
		return err
	}
	guarded := []string{registration.AnnotationRequesters}
	if a.GetOperation() == admission.Update {
		// An agent creates its cluster with its key or its ARN. After that, these matter as much as the requesters.
		guarded = append(guarded, registration.AnnotationAgentKey, registration.AnnotationManagedClusterARN,
			registration.AnnotationManagedClusterARNOfSeed)
	}
	changed := slices.DeleteFunc(guarded, func(annotation string) bool {
		return updated.Annotations[annotation] == old.Annotations[annotation]
	})
	toggled := updated.Spec.HubAcceptsClient != old.Spec.HubAcceptsClient
	if !toggled && len(changed) == 0 {
		return nil
	}
	// Permission: `spec.hubAcceptsClient` changes, or is true on creation; or an annotation that identifies the agent of the cluster changes.
	accept := permission.Accept(a)
	held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), accept...)
	what := "accept the cluster " + updated.Name + " (spec.hubAcceptsClient)"
	switch {
	case len(changed) > 0:
		what = "choose the identity of the agent of the cluster " + updated.Name + " (" + strings.Join(changed, ", ") + ")"
	case !updated.Spec.HubAcceptsClient:
		what = "deny the cluster " + updated.Name + " (spec.hubAcceptsClient)"
		if held == nil {
			// A cluster's own agent may leave, and may not rejoin by itself.
			var leaveErr error
			// Permission (resource: managedclusters/leave; name: the cluster): `spec.hubAcceptsClient` becomes false, by a user who may not accept the cluster.
			held, leaveErr = permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), permission.On(a, "update", "leave"))
			err = errors.Join(err, leaveErr)
		}
	}
	decision := p.Decide(a)
	if held != nil {
		decision.Uses(*held)
	} else {
		decision.Lacks(what, accept[0], err)
	}
	if err := decision.End(ctx); err != nil {
		return err
	}
	if !toggled || !updated.Spec.HubAcceptsClient {
		return nil
	}
	return p.checkNamespace(a, updated.Name)
}

// checkNamespace rejects a cluster whose namespace on the hub is being deleted, as upstream does: objects that are created there for the cluster
// would be lost.
func (p *Plugin) checkNamespace(a admission.Attributes, name string) error {
	if !p.WaitForReady() {
		return admission.NewForbidden(a, errors.New("the namespaces of the hub are not known yet, so no cluster can be accepted: try again in a few seconds"))
	}
	namespace, err := p.namespaces.Get(name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return admission.NewForbidden(a, fmt.Errorf("cluster namespace %q cannot be read, so the cluster is not accepted: %w", name, err))
	case namespace.Status.Phase == corev1.NamespaceTerminating || namespace.DeletionTimestamp != nil:
		return admission.NewForbidden(a, fmt.Errorf("cluster namespace %q is terminating: accept the cluster once the namespace is gone", name))
	}
	return nil
}
