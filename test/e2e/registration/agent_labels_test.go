// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestRegistration_AgentsLabelClusters runs examples 1 and 2 of the specification of sets with a real agent: by region, a label that the agent
// may always set, and by middleware, which requires a rule.
func TestRegistration_AgentsLabelClusters(t *testing.T) {
	m := newManaged(t, harness.Hub(t))
	harness.Must(harness.Kube(t, m.AdminConfig()).CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{corev1.LabelTopologyRegion: "apac"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///apac-a/i-1"},
	}, metav1.CreateOptions{}))(t)
	admin := harness.Ours(t, m.hub.AdminConfig())
	const middleware = harness.InfoPrefix + "middlewareEnabled"
	byLabel := &v1beta1.ManagedClusterSet{ObjectMeta: harness.Named("middlewareenabledset")}
	byLabel.Spec.ClusterSelector = v1beta1.ManagedClusterSelector{SelectorType: v1beta1.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{middleware: "true"}}}
	for _, set := range []*v1beta1.ManagedClusterSet{harness.ExclusiveSet("apacset", registration.LabelRegion, "apac"), byLabel} {
		harness.Must(admin.ClusterV1beta1().ManagedClusterSets().Create(t.Context(), set, metav1.CreateOptions{}))(t)
	}
	in := func(set string, there bool) {
		t.Helper()
		harness.Eventually(t, fmt.Sprintf("the cluster is in %s: %t", set, there), func(ctx context.Context) (bool, error) {
			members, err := admin.ViewV1alpha1().ClusterSetMembers().List(ctx, metav1.ListOptions{FieldSelector: "spec.clusterSet=" + set})
			return err == nil && (len(members.Items) == 1) == there, err
		})
	}

	stop := m.agent(t, "--detect-cluster-labels")
	harness.Eventually(t, "the cluster asks for a certificate", func(context.Context) (bool, error) { return len(m.requests(t)) == 1, nil })
	m.accepted(t, true)
	in("apacset", true)
	if got := m.cluster(t).Labels[registration.LabelCloud]; got != "Amazon" {
		t.Errorf("its cloud is %q", got)
	}
	stop()

	stop = m.agent(t, "--cluster-labels="+middleware+"=true", "--detect-cluster-labels")
	rule := `resourceNames: ["` + middleware + `:true"]`
	harness.Eventually(t, "an event says which rule is missing", func(ctx context.Context) (bool, error) {
		events, err := harness.Kube(t, m.AdminConfig()).CoreV1().Events(registration.AgentNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, event := range events.Items {
			if event.Reason == "ClusterLabelsRefused" && strings.Contains(event.Message, rule) {
				return true, nil
			}
		}
		return false, nil
	})
	agent := registration.ClusterUser(m.name, string(m.secret(t).Data[registration.KeyAgentName]))
	harness.Grant(t, m.hub, harness.Unique("middleware"), agent, harness.LabelRight(middleware+":true"))
	in("middlewareenabledset", true)
	in("apacset", true)
	stop()

	// Without the flags the labels are removed, and the cluster leaves the sets.
	m.agent(t)
	in("middlewareenabledset", false)
	in("apacset", false)
}
