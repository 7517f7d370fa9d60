// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spoke is the agent's own cluster, the one that it registers with a hub.
package spoke

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Timeout is for one request to the agent's own cluster.
const Timeout = 10 * time.Second

var (
	// IDRights are what Cluster.ID needs.
	IDRights = rights.Rights{Own: rights.Rules{Cluster: []rbacv1.PolicyRule{
		rights.Named(metav1.NamespaceSystem, rights.Rule("", "namespaces", "get"))}}}
	// TellRights are what Cluster.Tell needs.
	TellRights = rights.Rights{Own: rights.Rules{Namespace: []rbacv1.PolicyRule{rights.Rule("", "events", "create")}}}
)

// Cluster is the agent's own cluster.
type Cluster struct {
	Client kubernetes.Interface
	// Watching is a client whose requests do not end by themselves.
	Watching kubernetes.Interface
	Dynamic  dynamic.Interface
	// Config is how the cluster is reached, for clients of other kinds. It has no time limit.
	Config *rest.Config
	// Namespace is the agent's.
	Namespace string
}

// ID is what identifies the cluster: the UID of its namespace kube-system.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	namespace, err := c.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the cluster's id, the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// Tell logs something that an admin should know, and makes an event of it.
func (c *Cluster) Tell(ctx context.Context, eventType, reason, message string) {
	log := klog.FromContext(ctx)
	log.Info(message)
	now := metav1.Now()
	_, err := c.Client.CoreV1().Events(c.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hub-agent-", Namespace: c.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Namespace: c.Namespace, Name: registration.HubKubeconfigSecret},
		Type: eventType, Reason: reason, Message: message,
		Source:         corev1.EventSource{Component: "hub-agent"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		log.Info("The event could not be written", "reason", err.Error())
	}
}
