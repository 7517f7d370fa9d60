// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spoke is the managed cluster, the one that the agent registers with a hub, and the flags that say how the agent reaches its
// clusters. What the agent remembers is not there: see package management.
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

// Timeout is for one request to the managed cluster, or to the management cluster.
const Timeout = 10 * time.Second

// IDRights are what Cluster.ID needs. An agent that has one namespace does without.
func IDRights(namespaceScoped bool) (needs rights.Rights) {
	if !namespaceScoped {
		needs.Own.Cluster = []rbacv1.PolicyRule{rights.Named(metav1.NamespaceSystem, rights.Rule("", "namespaces", "get"))}
	}
	return needs
}

// Cluster is the managed cluster.
type Cluster struct {
	Client kubernetes.Interface
	// Watching is a client whose requests do not end by themselves.
	Watching kubernetes.Interface
	Dynamic  dynamic.Interface
	// Config is how the cluster is reached, for clients of other kinds. It has no time limit.
	Config *rest.Config
	// Namespace is the agent's own there: what is in it, the hub has no say in.
	Namespace string
	// Home is where the agent's secrets are, if the management cluster is the same one and that is another namespace. The hub has no say
	// in that one either, and nothing of a work is ever there.
	Home string
	// NamespaceScoped says that the agent has rights in Namespace alone: nothing is asked of the cluster that needs others.
	NamespaceScoped bool
}

// ID is what identifies the cluster: the UID of its namespace kube-system.
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
