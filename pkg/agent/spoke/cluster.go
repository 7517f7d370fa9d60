// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spoke accesses the managed cluster, which the agent registers with a hub, and defines the flags for the access to the agent's clusters. The
// agent's state is elsewhere: see package management.
package spoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/rights"
)

// Timeout bounds one request to the managed cluster, or to the management cluster.
const Timeout = 10 * time.Second

// IDRights returns the rights that Cluster.ID needs. An agent that has one namespace does not use it.
func IDRights(namespaceScoped bool) (needs rights.Rights) {
	if !namespaceScoped {
		needs.Own.Cluster = []rbacv1.PolicyRule{rights.Named(metav1.NamespaceSystem, rights.Rule("", "namespaces", "get"))}
	}
	return needs
}

// Cluster is the managed cluster.
type Cluster struct {
	Client kubernetes.Interface
	// Watching is a client whose requests have no timeout.
	Watching kubernetes.Interface
	Dynamic  dynamic.Interface
	// Config is the configuration for other kinds of clients. It has no timeout.
	Config *rest.Config
	// Namespace is the agent's own namespace there. The hub cannot change objects in it.
	Namespace string
	// Home is the namespace of the agent's secrets, if the management cluster is the same cluster and that is a different namespace. The hub cannot
	// change objects in it either, and works never have objects there.
	Home string
	// NamespaceScoped means that the agent has rights in Namespace alone, and sends no request that needs others.
	NamespaceScoped bool
}

// ID returns the ID of the cluster: the UID of its namespace kube-system.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	if c.NamespaceScoped {
		return "", errors.New("an agent with --namespace-scoped does not read the cluster's id, so --cluster-name must be set")
	}
	namespace, err := c.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the cluster's id, the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}
