// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target is a cluster as a provider changes it: what gives rights in it is applied and taken away again, each with its owner.
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
	"github.com/clusterhub/clusterhub/pkg/remote"
)

// soon is how long a cluster may take to answer that others wait for.
const soon = 5 * time.Second

// mapper spares asking each cluster for what every cluster has.
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

// Target is a cluster as the provider changes it for one AccessRequest.
type Target struct {
	client.Client
	remote.Owner
}

// Soon is a cluster that has to answer soon, such as one that is to be removed, or looked through.
func Soon(config *rest.Config, labels client.MatchingLabels) (*Target, error) {
	config = rest.CopyConfig(config)
	config.Timeout = soon
	return New(config, remote.Owner{Labels: labels})
}

// New is the cluster that is reached in a way.
func New(config *rest.Config, owner remote.Owner) (*Target, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: rights.Scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Target{Client: c, Owner: owner}, nil
}

// applier changes the cluster for the request.
func (t *Target) applier() *remote.Applier {
	return &remote.Applier{Client: t.Client, Owner: t.Owner, Strategy: remote.Update}
}

// Make brings objects to what they should be, in their order; have are those that are there already.
func (t *Target) Make(ctx context.Context, wanted *rights.Rights, have map[remote.ID]client.Object) error {
	err := t.applier().ApplyAll(ctx, wanted.Objects, have, wanted.Namespaces...)
	var notOurs *remote.NotOurs
	var recreating *remote.Recreating
	switch {
	case errors.As(err, &notOurs):
		// The requester of access is not told how to hand the object over.
		return hub.Because(hub.ReasonNotManaged, fmt.Errorf("%s: it exists but does not contain the expected management labels, "+
			"so it is somebody else's and is left alone", notOurs.Object))
	case errors.As(err, &recreating):
		return hub.Because(hub.ReasonRecreating, err)
	}
	return err
}

// Cleanup deletes what was made for the request and is not to be kept. It returns the rest.
func (t *Target) Cleanup(ctx context.Context, keep []client.Object) (map[remote.ID]client.Object, error) {
	return t.applier().Prune(ctx, rights.Kinds, keep)
}
