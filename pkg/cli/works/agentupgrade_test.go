// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/works"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func placementTolerating(tolerations ...clusterv1beta1.Toleration) *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "stores"}, Spec: clusterv1beta1.PlacementSpec{Tolerations: tolerations}}
}

// TestAttack_LostClusterStaysInRollout: a cluster whose agent does not come back becomes unreachable. A placement that does not tolerate this
// drops the cluster, and a rollout that observes no failure continues with the next clusters.
func TestAttack_LostClusterStaysInRollout(t *testing.T) {
	unreachable := clusterv1beta1.Toleration{Key: registration.TaintUnreachable, Operator: clusterv1beta1.TolerationOpExists}
	unavailable := clusterv1beta1.Toleration{Key: registration.TaintUnavailable, Operator: clusterv1beta1.TolerationOpExists}
	brief, some := unreachable, unreachable
	brief.TolerationSeconds, some.Effect = new(int64(60)), "PreferNoSelect"
	for name, test := range map[string]struct {
		tolerations []clusterv1beta1.Toleration
		lacks       string
	}{
		"none":           {nil, registration.TaintUnreachable},
		"one":            {[]clusterv1beta1.Toleration{unreachable}, registration.TaintUnavailable},
		"for a minute":   {[]clusterv1beta1.Toleration{brief, unavailable}, registration.TaintUnreachable},
		"of one effect":  {[]clusterv1beta1.Toleration{some, unavailable}, registration.TaintUnreachable},
		"both":           {[]clusterv1beta1.Toleration{unavailable, unreachable}, ""},
		"all there are":  {[]clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}}, ""},
		"equal to empty": {[]clusterv1beta1.Toleration{{Key: registration.TaintUnreachable, Operator: clusterv1beta1.TolerationOpEqual}, unavailable}, registration.TaintUnreachable},
	} {
		err := works.CheckTolerates(placementTolerating(test.tolerations...))
		if test.lacks == "" && err != nil || test.lacks != "" && (err == nil || !strings.Contains(err.Error(), "does not tolerate the taint "+test.lacks)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := clitest.NewServer(t, placementTolerating(unreachable))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	if _, _, err := clitest.Run(t, config, "agent", "upgrade", "--placement=fleet/stores", "--image=clusterhub/hub-agent:v2"); err == nil || len(s.Paths()) != 1 {
		t.Errorf("it makes %v: %v", s.Paths(), err)
	}
}

func TestAgentUpgrade(t *testing.T) {
	const path = "/apis/work.open-cluster-management.io/v1alpha1/namespaces/fleet/manifestworkreplicasets/agent-upgrade-stores"
	s := clitest.NewServer(t, placementTolerating(clusterv1beta1.Toleration{Operator: clusterv1beta1.TolerationOpExists}))
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
	upgrade := func(more ...string) string {
		t.Helper()
		return clitest.MustRun(t, config, append([]string{"agent", "upgrade", "--placement=fleet/stores"}, more...)...)
	}
	clitest.Says(t, upgrade("--image=clusterhub/hub-agent:v2", "--dry-run=client", "--output=yaml"), "kind: ManifestWorkReplicaSet", "image: clusterhub/hub-agent:v2",
		"propagationPolicy: Orphan", "type: ServerSideApply", "maxConcurrency: 10%", "progressDeadline: 10m", "minSuccessTime: 2m", "maxFailures: 0")
	if s.Get(path) != nil {
		t.Fatal("a dry run makes it")
	}
	clitest.Says(t, upgrade("--image=clusterhub/hub-agent:v2"), "manifestworkreplicaset/agent-upgrade-stores created", "kubectl hub rollout status agent-upgrade-stores -n fleet --wait")
	read := func() *workv1alpha1.ManifestWorkReplicaSet {
		t.Helper()
		set := &workv1alpha1.ManifestWorkReplicaSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.Get(path).Object, set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	set := read()
	// The command must not create objects that the agent refuses.
	manifest := s.Get(path)
	raw := set.Spec.ManifestWorkTemplate.Workload.Manifests[0].Raw
	if err := manifest.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	if err := registration.CheckAgentImage(manifest, "clusterhub/hub-agent"); err != nil {
		t.Errorf("the agent refuses %s: %v", raw, err)
	}
	set.Spec.ManifestWorkTemplate.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{Type: "ServiceAccount",
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "n", Name: "executor"}}}
	s.Put(set)
	clitest.Says(t, upgrade("--image=clusterhub/hub-agent:v3", "--max-concurrency=1"), "manifestworkreplicaset/agent-upgrade-stores configured")
	set = read()
	if !strings.Contains(string(set.Spec.ManifestWorkTemplate.Workload.Manifests[0].Raw), `"clusterhub/hub-agent:v3"`) || set.Spec.PlacementRefs[0].RolloutStrategy.Progressive.MaxConcurrency.IntValue() != 1 ||
		set.Spec.ManifestWorkTemplate.Executor == nil {
		t.Errorf("it becomes %+v", set.Spec)
	}
	clitest.Says(t, upgrade("--image=clusterhub/hub-agent:v4", "--klusterlet=k1", "--name=ks"), "manifestworkreplicaset/ks created")

	set.Labels = nil
	s.Put(set)
	for args, want := range map[string]string{
		"--image=clusterhub/hub-agent:v4":                             "does not upgrade the agents of placement stores",
		"--image=clusterhub/hub-agent":                                "--image must be an image of hub-agent with a tag or a digest",
		"--image=clusterhub/hub-agent:v4 --min-success-time=soon":     "--min-success-time: ",
		"--image=clusterhub/hub-agent:v4 --name=other --placement=no": "",
	} {
		_, _, err := clitest.Run(t, config, append([]string{"agent", "upgrade", "--placement=fleet/stores"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
