// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func (o *doctorOptions) diagnoseManaged(ctx context.Context, r *answers.Reader) (*doctor.Report, error) {
	m := &doctor.Managed{Namespace: o.namespace, Skew: r.Skew, SkewWithin: r.Within}
	m.Deployments = answers.Typed[appsv1.Deployment](r.List(ctx, answers.GVR("apps", "v1", "deployments"), o.namespace, metav1.ListOptions{}))
	m.Pods = answers.Typed[corev1.Pod](r.List(ctx, answers.GVR("", "v1", "pods"), o.namespace, metav1.ListOptions{LabelSelector: deploy.AgentLabel + "=" + deploy.AgentName}))
	events, seen := r.List(ctx, answers.GVR("", "v1", "events"), o.namespace, metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning})
	m.Events = answers.Typed[corev1.Event](events, seen).Items
	agent := o.agentOf(m)
	if agent != nil {
		expected, err := agent.Objects()
		if err != nil {
			return nil, err
		}
		m.Expected = answers.OfKinds(expected, doctor.RightsKinds)
		m.Rights = r.Named(ctx, m.Expected, answers.RightsResources)
	}
	if secret := o.secret(ctx, r, registration.BootstrapSecret, &m.Bootstrap); secret != nil {
		m.Bootstrap = bootstrapConnection(ctx, secret)
	}
	if secret := o.secret(ctx, r, registration.HubKubeconfigSecret, &m.Identity); secret != nil {
		way, config := identityConnection(ctx, secret)
		m.Identity = way
		m.ClusterName, m.Refusal = string(secret.Data[registration.KeyClusterName]), string(secret.Data[registration.KeyRefusal])
		if way.Found && !way.Tried && way.Trouble == doctor.NoTrouble {
			r.Unseen = append(r.Unseen, "the connection to the hub with the identity of the agent: only its pod has the identity")
		}
		if config != nil && way.Trouble == doctor.NoTrouble && m.ClusterName != "" {
			getLease(ctx, config, m)
		}
	}
	for _, way := range []*doctor.Way{&m.Bootstrap, &m.Identity} {
		if way.Trouble == doctor.Network || way.Trouble == doctor.NotAnswered {
			r.Unseen = append(r.Unseen, fmt.Sprintf("the hub %s: it cannot be reached from this machine: %s", way.Server, way.Text))
		}
	}
	if m.Renewed == nil {
		r.Unseen = append(r.Unseen, "the lease on the hub: it could not be read")
	}
	m.Now = r.Now()
	return m.Check(), nil
}

// agentOf returns the deployed agent with the fields that determine its permissions, or nil if they are unknown.
func (o *doctorOptions) agentOf(m *doctor.Managed) *deploy.Agent {
	for i := range m.Deployments.Items {
		d := &m.Deployments.Items[i]
		if d.Name != deploy.AgentName {
			continue
		}
		name, _ := kit.AgentFlag(d, deploy.ClusterNameFlag)
		if m.ClusterName == "" {
			m.ClusterName = name
		}
		return &deploy.Agent{Namespace: o.agentNamespace(), Scoped: d.Labels[deploy.LabelScope] == deploy.ScopeNamespace}
	}
	return nil
}

// secret returns a Secret of the agent. Its data stays in memory: neither findings nor archives contain it.
func (o *doctorOptions) secret(ctx context.Context, r *answers.Reader, name string, way *doctor.Way) *corev1.Secret {
	object, err := r.Get(ctx, answers.GVR("", "v1", "secrets"), o.namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		way.Seen = true
		return nil
	case err != nil:
		r.Miss("secret "+name, err)
		return nil
	}
	list := answers.Typed[corev1.Secret](itemsOf(object), true)
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

func itemsOf(o *unstructured.Unstructured) []unstructured.Unstructured {
	return []unstructured.Unstructured{*o}
}
