// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestAgents_FlappingLabelIsLimitedAndStatusIsNot verifies that label changes are rate-limited with a Retry-After response, and that status
// updates are not.
func TestAgents_FlappingLabelIsLimitedAndStatusIsNot(t *testing.T) {
	name, clusters := harness.Unique("flapping"), harness.Admin(t).ClusterV1().ManagedClusters()
	harness.NewManagedCluster(t, name, nil)
	harness.Must(clusters.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{}))(t)
	agent := wayIn{harness.Hub(t).HubAPIServerUserConfig(1, registration.ClusterUser(name, "a"), agentGroups(name)...)}
	own := ofClusters + "/" + name
	changes, late := 0, ""
	for ; late == ""; changes++ {
		c := harness.Must(clusters.Get(t.Context(), name, metav1.GetOptions{}))(t)
		c.APIVersion, c.Kind = "cluster.open-cluster-management.io/v1", "ManagedCluster"
		c.Labels[registration.LabelRegion] = fmt.Sprint("r", changes)
		switch code, body := agent.do(t, request{"PUT", own, c}); {
		case code == http.StatusTooManyRequests:
			late = body
		case code == http.StatusConflict: // the hub writes its status
			changes--
		case code != http.StatusOK || changes == 40:
			t.Fatalf("change %d: %d %s", changes, code, body)
		}
	}
	if changes <= 10 || !strings.Contains(late, `"retryAfterSeconds":10`) || !strings.Contains(late, "change its labels") {
		t.Errorf("refused after %d changes: %s", changes, late)
	}
	status := map[string]any{"status": map[string]any{"version": map[string]any{"kubernetes": "v1.35.0"}}}
	if code, body := agent.do(t, request{"PATCH", own + "/status", status}); code != http.StatusOK {
		t.Errorf("the status: %d %s", code, body)
	}
	after := harness.Must(clusters.Get(t.Context(), name, metav1.GetOptions{}))(t)
	if got, want := after.Labels[registration.LabelRegion], fmt.Sprint("r", changes-2); got != want || after.Status.Version.Kubernetes == "" {
		t.Errorf("the region is %s, want %s; the status %v", got, want, after.Status.Version)
	}
}
