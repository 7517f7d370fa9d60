// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// joined returns a cluster whose agent has no problems. Its bootstrap token has expired long ago, as is usual.
func joined(t *testing.T) *doctor.Managed {
	t.Helper()
	objects, err := deploy.Agent{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	m := &doctor.Managed{Now: now, SkewWithin: time.Second, Namespace: "ns", ClusterName: "rome", Renewed: new(now.Add(-time.Minute)), Lasts: time.Minute}
	for _, o := range objects {
		if strings.Contains(o.GetKind(), "Role") {
			m.Expected, m.Rights.Items = append(m.Expected, o), append(m.Rights.Items, o)
		}
	}
	m.Deployments.Items = []appsv1.Deployment{deployment("hub-agent", "v1.2.3")}
	m.Deployments.Seen, m.Pods.Seen, m.Rights.Seen = true, true, true
	m.Bootstrap = doctor.Way{Seen: true, Found: true, Tried: true, Server: "https://hub", Trouble: doctor.Refused}
	m.Identity = doctor.Way{Seen: true, Found: true, Tried: true, Server: "https://hub", Ends: new(now.Add(time.Hour))}
	return m
}

func pod(state corev1.ContainerState) []corev1.Pod {
	return []corev1.Pod{{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: state}}}}}
}

func TestManaged_Healthy(t *testing.T) {
	if r := joined(t).Check(); len(r.Findings) > 0 {
		t.Errorf("%+v", r.Findings)
	}
	if r := (&doctor.Managed{Now: now}).Check(); len(r.Findings) > 0 {
		t.Errorf("nothing was seen, and found: %+v", r.Findings)
	}
	// The user's machine may be in a different network than the agent.
	m := joined(t)
	m.Identity.Trouble = doctor.Network
	if r := m.Check(); len(r.Findings) > 0 {
		t.Errorf("the agent reaches the hub, and this machine does not: %+v", r.Findings)
	}
}

func TestManaged_Faults(t *testing.T) {
	none := doctor.Way{Seen: true}
	for name, test := range map[string]struct {
		change func(m *doctor.Managed)
		id     diagnosis.ID
		cause  string
		fix    string
	}{
		"no agent":    {func(m *doctor.Managed) { m.Deployments.Items = nil }, doctor.AgentMissing, "no agent", "kubectl hub get token --context <CONTEXT OF THE HUB>"},
		"scaled to 0": {func(m *doctor.Managed) { m.Deployments.Items[0].Spec.Replicas = new(int32(0)) }, doctor.AgentNotReady, "scaled to 0", "scale deployment hub-agent --replicas=1"},
		"no image": {func(m *doctor.Managed) {
			m.Deployments.Items[0].Status.AvailableReplicas = 0
			m.Pods.Items = pod(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}})
		}, doctor.AgentNotReady, "ImagePullBackOff: no such image.", "logs deployment/hub-agent"},
		"it has ended": {func(m *doctor.Managed) {
			m.Deployments.Items[0].Status.AvailableReplicas = 0
			m.Pods.Items = pod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "bad flag"}})
		}, doctor.AgentNotReady, "ended with 3: bad flag", "logs"},
		"no node": {func(m *doctor.Managed) {
			m.Deployments.Items[0].Status.AvailableReplicas = 0
			m.Pods.Items = []corev1.Pod{{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no nodes"}}}}}
		}, doctor.AgentNotReady, "Unschedulable: no nodes", "logs"},
		"no pod can be made": {func(m *doctor.Managed) {
			m.Deployments.Items[0].Status.AvailableReplicas = 0
			m.Events = []corev1.Event{{Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: "quota", LastTimestamp: ago(0)},
				{Type: corev1.EventTypeWarning, Reason: "Older", LastTimestamp: ago(time.Hour)}}
		}, doctor.AgentNotReady, "FailedCreate: quota", "logs"},
		"a role is missing": {func(m *doctor.Managed) {
			m.Rights.Items = without(append([]*unstructured.Unstructured{}, m.Rights.Items...), "ClusterRole", "clusterhub:hub-agent")
		}, doctor.AgentPermissionsMissing, "The ClusterRole does not exist", "--show clusterrole/clusterhub:hub-agent"},
		"nothing to begin with": {func(m *doctor.Managed) { m.Bootstrap, m.Identity = none, none }, doctor.BootstrapKubeconfigUnusable, "no kubeconfig", "get token"},
		"a kubeconfig that names a file": {func(m *doctor.Managed) {
			m.Bootstrap.Trouble, m.Bootstrap.Text, m.Identity = doctor.Unusable, "names a file.", none
		},
			doctor.BootstrapKubeconfigUnusable, "it names a file.", "get token"},
		"an expired token": {func(m *doctor.Managed) { m.Identity = none }, doctor.BootstrapTokenRefused, "does not accept its token", "get token"},
		"another CA":       {func(m *doctor.Managed) { m.Identity.Trouble = doctor.Distrusted }, doctor.HubDistrusted, "not issued by the CA", "get token"},
		"no way": {func(m *doctor.Managed) {
			m.Identity, m.Bootstrap.Trouble, m.Bootstrap.Text = none, doctor.Network, "connection refused"
			m.Deployments = doctor.List[appsv1.Deployment]{}
		}, doctor.HubUnreachable, "connection refused", "get token"},
		"a hub that is broken": {func(m *doctor.Managed) {
			m.Identity.Trouble, m.Identity.Text, m.Bootstrap = doctor.NotAnswered, "it answers 503", none
			m.Deployments = doctor.List[appsv1.Deployment]{}
		}, doctor.HubUnreachable, "it answers 503", "get token"},
		"an unknown identity": {func(m *doctor.Managed) {
			m.Identity.Trouble, m.Bootstrap.Trouble = doctor.Refused, doctor.NoTrouble
		},
			doctor.AgentIdentityRefused, "(401)", "get token"},
		"an identity that has ended": {func(m *doctor.Managed) {
			m.Identity.Ends, m.Bootstrap.Trouble = new(now.Add(-time.Hour)), doctor.NoTrouble
		}, doctor.AgentIdentityRefused, "expired on 2026-06-01T11:00:00Z", "get token"},
		"denied":       {func(m *doctor.Managed) { m.Refusal = registration.RefusalNotAccepted }, doctor.AgentRefused, "does not accept", "accept --clusters rome --context <CONTEXT OF THE HUB>"},
		"deleted":      {func(m *doctor.Managed) { m.Refusal = registration.RefusalNoCluster }, doctor.AgentRefused, "deleted", "get token"},
		"an old lease": {func(m *doctor.Managed) { m.Renewed = new(now.Add(-time.Hour)) }, doctor.AgentLeaseStale, "1h0m0s ago", "rollout restart"},
		"a clock":      {func(m *doctor.Managed) { m.Skew = time.Hour }, doctor.ClockSkew, "ahead of that of the cluster", "set-ntp"},
	} {
		m := joined(t)
		test.change(m)
		r := m.Check()
		if len(r.Findings) != 1 {
			t.Errorf("%s: %+v", name, r.Findings)
			continue
		}
		f := r.Findings[0]
		if f.ID != test.id || !strings.Contains(f.Cause, test.cause) || !strings.Contains(strings.Join(f.Fix, "\n"), test.fix) || f.Turn == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestManaged_NamesRunNoCommands verifies that the cluster name, which other users can write to the Secret, runs no commands.
func TestManaged_NamesRunNoCommands(t *testing.T) {
	m := joined(t)
	m.ClusterName, m.Refusal = "x; reboot", registration.RefusalNotAccepted
	if fix := m.Check().Findings[0].Fix[0]; fix != "kubectl hub accept --clusters 'x; reboot' --context <CONTEXT OF THE HUB>" {
		t.Error(fix)
	}
}

func TestAt(t *testing.T) {
	for from, want := range map[string]string{
		"kubectl get pods":                      "kubectl --context='a b' get pods",
		"kubectl hub doctor | kubectl apply -f": "kubectl hub --context='a b' doctor | kubectl --context='a b' apply -f",
		"A=$(kubectl get x) && kubectl get y":   "A=$(kubectl --context='a b' get x) && kubectl --context='a b' get y",
		"# kubectl get pods":                    "# kubectl get pods",
		"kubectl get pods --context <HUB>":      "kubectl get pods --context <HUB>",
	} {
		if got := diagnosis.At([]string{from}, "--context=a b")[0]; got != want {
			t.Errorf("%s: %s", from, got)
		}
		if got := diagnosis.At([]string{from})[0]; got != from {
			t.Errorf("%s: %s", from, got)
		}
	}
}

func TestRedacted(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Widget", "spec": map[string]any{"anything": "canary"},
		"metadata": map[string]any{"name": "w", "annotations": map[string]any{"a": "canary"}, "labels": map[string]any{"l": "v"}, "managedFields": []any{"canary"}}}}
	got := doctor.Redacted(o)
	if text := inJSON(t, got); strings.Contains(text, "canary") || !strings.Contains(text, `"annotationKeys":["a"]`) ||
		!strings.Contains(text, `"l":"v"`) {
		t.Error(text)
	}
}

func inJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
