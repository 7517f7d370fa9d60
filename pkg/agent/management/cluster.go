// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package management is the cluster that keeps what an agent remembers: its secrets and its events, in one namespace. It is the managed
// cluster itself, unless the agent is detached; then it is the one that runs the agent's pods. Nothing of the hub is anywhere else.
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

// TellRights are what Cluster.Tell needs.
var TellRights = rights.Rights{Management: rights.Rules{Namespace: []rbacv1.PolicyRule{rights.Rule("", "events", "create")}}}

// Cluster is the cluster that keeps what the agent remembers.
type Cluster struct {
	Client kubernetes.Interface
	// Namespace is the one that has it.
	Namespace string
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
