// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package management accesses the cluster that stores the agent's state: its secrets and its events, in one namespace. It is the managed cluster
// itself, unless the agent is detached; then it is the cluster that runs the agent's pods. The agent stores no data of the hub elsewhere.
package management

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// TellRights are the rights that Cluster.Tell needs.
var TellRights = rights.Rights{Management: rights.Rules{Namespace: []rbacv1.PolicyRule{rights.Rule("", "events", "create")}}}

// Cluster is the cluster that stores the agent's state.
type Cluster struct {
	Client kubernetes.Interface
	// Namespace is the namespace of the state.
	Namespace string
}

// Report logs a message for an admin, and creates an event with it.
func (c *Cluster) Report(ctx context.Context, eventType, reason, message string) {
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
		log.Info("Could not record the event", "reason", err.Error())
	}
}
