// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/clusterhub/clusterhub/hack/charts"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestTakeOver installs a release over a hub that kustomize has deployed. No pod restarts.
func TestTakeOver(t *testing.T) {
	cluster := harness.Hub(t)
	h := newHelm(t, cluster, charts.Hub, charts.HubNamespace)
	harness.MustKubectlOf(t, cluster, "", "apply", "-k", harness.Overlay("base"))
	before := deployments(t, cluster)
	if _, err := h.install(nil); err == nil || !strings.Contains(err.Error(), "cannot be imported") {
		t.Errorf("without --take-ownership: %v", err)
	}
	r, err := h.install(nil, func(i *action.Install) { i.TakeOwnership, i.ForceConflicts = true, true })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, deployments(t, cluster)); diff != "" || len(before) == 0 {
		t.Errorf("the specs of %d Deployments (-before +after):\n%s", len(before), diff)
	}
	if err := h.uninstall(); err != nil {
		t.Fatal(err)
	}
	if left := bundled(h); len(left) > 0 || r.Manifest == "" {
		t.Errorf("uninstall leaves the APIServices %v", left)
	}
	clean(h)
}

// recordsService is the APIService of the agent's records.
const recordsService = "v1.work.open-cluster-management.io"

// TestTakeOver_BesideAgent: where a cluster has an agent before it becomes a hub, kube-apiserver has made an APIService for the agent's records,
// of a name that is one of the hub's.
func TestTakeOver_BesideAgent(t *testing.T) {
	cluster := harness.Hub(t)
	h, agent := newHelm(t, cluster, charts.Hub, charts.HubNamespace), newHelm(t, cluster, charts.Agent, charts.AgentNamespace)
	services := aggregator.NewForConfigOrDie(cluster.AdminConfig()).ApiregistrationV1().APIServices()
	own := func() {
		t.Helper()
		harness.Eventually(t, "kube-apiserver serves the records itself", func(ctx context.Context) (bool, error) {
			s, err := services.Get(ctx, recordsService, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return harness.Holds(s.Spec.Service == nil, s.Spec)
		})
	}
	harness.Must(agent.install(map[string]any{"works": map[string]any{"role": "view"}}))(t)
	own()
	if _, err := h.install(nil); err == nil || !strings.Contains(err.Error(), "cannot be imported") {
		t.Errorf("without --take-ownership: %v", err)
	}
	harness.Must(h.install(nil, func(i *action.Install) { i.TakeOwnership, i.ForceConflicts = true, true }))(t)
	if made := bundled(h); len(made) == 0 {
		t.Error("there are no APIServices of the hub")
	} else if _, found := made[recordsService]; !found {
		t.Errorf("the APIServices of the hub are %v", made)
	}
	if err := h.uninstall(); err != nil {
		t.Fatal(err)
	}
	own()
	if err := agent.uninstall(); err != nil {
		t.Fatal(err)
	}
	clean(agent)
	clean(h)
}

func deployments(t *testing.T, cluster *localhub.Instance) map[string]appsv1.DeploymentSpec {
	t.Helper()
	all := map[string]appsv1.DeploymentSpec{}
	for _, d := range harness.Must(harness.Kube(t, cluster.AdminConfig()).AppsV1().Deployments(charts.HubNamespace).List(t.Context(), metav1.ListOptions{}))(t).Items {
		all[d.Name] = d.Spec
	}
	return all
}
