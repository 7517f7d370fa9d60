// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// TestRollout_ImageOnly changes the pods of a Klusterlet on a real API server: an image that does not start must leave the agent running, and pods
// of two hubs must not run at the same time.
func TestRollout_ImageOnly(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeDefault, nil)
	key := client.ObjectKey{Namespace: k.AgentNamespace(), Name: k.WorkDeployment()}
	for _, step := range []struct {
		name   string
		change func(*operatorv1.KlusterletSpec)
		image  string
		want   appsv1.DeploymentStrategyType
	}{
		{"an image", func(s *operatorv1.KlusterletSpec) { s.WorkImagePullSpec = "example.com/agent:1" }, "example.com/agent:1", appsv1.RollingUpdateDeploymentStrategyType},
		{"the next one, as the last does not start", func(s *operatorv1.KlusterletSpec) { s.WorkImagePullSpec = "example.com/agent:2" }, "example.com/agent:2",
			appsv1.RollingUpdateDeploymentStrategyType},
		{"something else", func(s *operatorv1.KlusterletSpec) {
			s.NodePlacement.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
		}, "example.com/agent:2", appsv1.RecreateDeploymentStrategyType},
		{"an image and something else", func(s *operatorv1.KlusterletSpec) {
			s.WorkImagePullSpec, s.NodePlacement.Tolerations = "example.com/agent:3", nil
		},
			"example.com/agent:3", appsv1.RecreateDeploymentStrategyType},
		{"an image once more", func(s *operatorv1.KlusterletSpec) { s.WorkImagePullSpec = "example.com/agent:4" }, "example.com/agent:4",
			appsv1.RollingUpdateDeploymentStrategyType},
	} {
		now := w.now(k)
		step.change(&now.Spec)
		if err := w.here.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		d := &appsv1.Deployment{}
		w.until(r, k, step.name+" is applied", func(k *operatorv1.Klusterlet) bool {
			return w.here.Get(t.Context(), key, d) == nil && d.Spec.Template.Spec.Containers[0].Image == step.image &&
				len(d.Spec.Template.Spec.Tolerations) == len(k.Spec.NodePlacement.Tolerations)
		})
		for range 3 { // it does not change again
			w.once(r, k)
		}
		if err := w.here.Get(t.Context(), key, d); err != nil {
			t.Fatal(err)
		}
		s := d.Spec.Strategy
		if s.Type != step.want || (s.RollingUpdate != nil) != (step.want == appsv1.RollingUpdateDeploymentStrategyType) {
			t.Errorf("after %s the strategy is %+v, expected %s", step.name, s, step.want)
		}
		if s.RollingUpdate != nil && s.RollingUpdate.MaxUnavailable.IntValue() != 0 {
			t.Errorf("after %s the old pod ends before the new one is ready: %+v", step.name, s)
		}
	}
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
}

// TestRollout_SeveralHubs: two agents could use different hubs.
func TestRollout_SeveralHubs(t *testing.T) {
	k := &operatorv1.Klusterlet{}
	k.Name, k.Spec.DeployOption.Mode = "k", operatorv1.InstallModeDefault
	for _, several := range []bool{false, true} {
		p, err := plan.New(k, "example.com/agent:1")
		if err != nil {
			t.Fatal(err)
		}
		have, err := plan.WithRollout(p.Pods[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err = plan.New(k, "example.com/agent:2")
		if err != nil {
			t.Fatal(err)
		}
		next, err := plan.WithRollout(p.Pods[0], have)
		if err != nil {
			t.Fatal(err)
		}
		strategy := next.Object["spec"].(map[string]any)["strategy"].(map[string]any)["type"]
		if want := map[bool]string{false: "RollingUpdate", true: "Recreate"}[several]; strategy != want {
			t.Errorf("with several hubs: %t, the strategy is %s, expected %s", several, strategy, want)
		}
		operatortest.SeveralHubs(k, "hub-a", "hub-b")
	}
}
