// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target changes a cluster for a provider: it applies the objects that grant rights in it, each with its owner, and deletes them.
package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// soon is the response timeout of a cluster for which others wait.
const soon = 5 * time.Second

// mapper maps the kinds that every cluster has, without discovery.
var mapper = func() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("Role"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	return mapper
}()

// Target is a cluster in which the provider changes the objects of one AccessRequest.
type Target struct {
	client.Client
	apply.Owner
}

// WithShortTimeout returns a cluster with a short response timeout, such as one that is being deleted or searched.
func WithShortTimeout(config *rest.Config, labels client.MatchingLabels) (*Target, error) {
	config = rest.CopyConfig(config)
	config.Timeout = soon
	return New(config, apply.Owner{Labels: labels})
}

// New returns the cluster of a configuration.
func New(config *rest.Config, owner apply.Owner) (*Target, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: rights.Scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Target{Client: c, Owner: owner}, nil
}

// applier returns an Applier for the request.
func (t *Target) applier() *apply.Applier {
	return &apply.Applier{Client: t.Client, Owner: t.Owner, Strategy: apply.Update}
}

// ApplyRights applies the objects of rights, in order; have are the existing ones.
func (t *Target) ApplyRights(ctx context.Context, wanted *rights.Rights, have map[apply.ID]client.Object) error {
	err := t.applier().ApplyAll(ctx, wanted.Objects, have, wanted.Namespaces...)
	var notOurs *apply.NotOurs
	var recreating *apply.Recreating
	switch {
	case errors.As(err, &notOurs):
		// The error does not tell the requester of access how to transfer the object.
		return hub.Because(hub.ReasonNotManaged, fmt.Errorf("%s: it exists but does not contain the expected management labels, "+
			"so it has another owner and is not changed", notOurs.Object))
	case errors.As(err, &recreating):
		return hub.Because(hub.ReasonRecreating, err)
	}
	return err
}

// Cleanup deletes what was created for the request and is not in keep. It returns the rest.
func (t *Target) Cleanup(ctx context.Context, keep []client.Object) (map[apply.ID]client.Object, error) {
	return t.applier().Prune(ctx, rights.Kinds, keep)
}
