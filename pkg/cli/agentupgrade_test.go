// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
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
		err := checkTolerates(placementTolerating(test.tolerations...))
		if test.lacks == "" && err != nil || test.lacks != "" && (err == nil || !strings.Contains(err.Error(), "does not tolerate the taint "+test.lacks)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newServer(t, placementTolerating(unreachable))
	config := kubeconfig(t, map[string]*fakeServer{"hub": s})
	if _, _, err := run(t, config, "agent", "upgrade", "--placement=fleet/stores", "--image=clusterhub/hub-agent:v2"); err == nil || len(s.paths()) != 1 {
		t.Errorf("it makes %v: %v", s.paths(), err)
	}
}

func TestAgentUpgrade(t *testing.T) {
	const path = "/apis/work.open-cluster-management.io/v1alpha1/namespaces/fleet/manifestworkreplicasets/agent-upgrade-stores"
	s := newServer(t, placementTolerating(clusterv1beta1.Toleration{Operator: clusterv1beta1.TolerationOpExists}))
	config := kubeconfig(t, map[string]*fakeServer{"hub": s})
	upgrade := func(more ...string) string {
		t.Helper()
		return mustRun(t, config, append([]string{"agent", "upgrade", "--placement=fleet/stores"}, more...)...)
	}
	says(t, upgrade("--image=clusterhub/hub-agent:v2", "--dry-run=client", "--output=yaml"), "kind: ManifestWorkReplicaSet", "image: clusterhub/hub-agent:v2",
		"propagationPolicy: Orphan", "type: ServerSideApply", "maxConcurrency: 10%", "progressDeadline: 10m", "minSuccessTime: 2m", "maxFailures: 0")
	if s.get(path) != nil {
		t.Fatal("a dry run makes it")
	}
	says(t, upgrade("--image=clusterhub/hub-agent:v2"), "manifestworkreplicaset/agent-upgrade-stores created", "kubectl hub rollout status agent-upgrade-stores -n fleet --wait")
	read := func() *workv1alpha1.ManifestWorkReplicaSet {
		t.Helper()
		set := &workv1alpha1.ManifestWorkReplicaSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.get(path).Object, set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	set := read()
	// The command must not create objects that the agent refuses.
	manifest := s.get(path)
	raw := set.Spec.ManifestWorkTemplate.Workload.Manifests[0].Raw
	if err := manifest.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	if err := registration.CheckAgentImage(manifest, "clusterhub/hub-agent"); err != nil {
		t.Errorf("the agent refuses %s: %v", raw, err)
	}
	set.Spec.ManifestWorkTemplate.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{Type: "ServiceAccount",
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "n", Name: "executor"}}}
	s.put(set)
	says(t, upgrade("--image=clusterhub/hub-agent:v3", "--max-concurrency=1"), "manifestworkreplicaset/agent-upgrade-stores configured")
	set = read()
	if !strings.Contains(string(set.Spec.ManifestWorkTemplate.Workload.Manifests[0].Raw), `"clusterhub/hub-agent:v3"`) || set.Spec.PlacementRefs[0].RolloutStrategy.Progressive.MaxConcurrency.IntValue() != 1 ||
		set.Spec.ManifestWorkTemplate.Executor == nil {
		t.Errorf("it becomes %+v", set.Spec)
	}
	says(t, upgrade("--image=clusterhub/hub-agent:v4", "--klusterlet=k1", "--name=ks"), "manifestworkreplicaset/ks created")

	set.Labels = nil
	s.put(set)
	for args, want := range map[string]string{
		"--image=clusterhub/hub-agent:v4":                             "does not upgrade the agents of placement stores",
		"--image=clusterhub/hub-agent":                                "--image must be an image of hub-agent with a tag or a digest",
		"--image=clusterhub/hub-agent:v4 --min-success-time=soon":     "--min-success-time: ",
		"--image=clusterhub/hub-agent:v4 --name=other --placement=no": "",
	} {
		_, _, err := run(t, config, append([]string{"agent", "upgrade", "--placement=fleet/stores"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestTopAgents_ShowsUpgrades(t *testing.T) {
	s, config := newTop(t)
	maps.DeleteFunc(s.objects, func(path string, _ map[string]any) bool { return strings.Contains(path, "/manifestworks/") }) // the fake supports no selectors
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "up", Labels: map[string]string{registration.LabelAgentUpgrade: "true"}}}
	template := func(image string) workv1.ManifestWorkSpec {
		raw, err := json.Marshal(registration.AgentImage(registration.AgentNamespace, image))
		if err != nil {
			t.Fatal(err)
		}
		return workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}}}
	}
	set.Spec.ManifestWorkTemplate = template("clusterhub/hub-agent:v2")
	s.put(set)
	put := func(cluster, image string, conditions ...metav1.Condition) {
		w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "up-1", Generation: 3,
			Labels: map[string]string{work.ReplicaSetLabel: "fleet.up"}}, Spec: template(image)}
		for _, c := range conditions {
			c.ObservedGeneration = 3
			w.Status.Conditions = append(w.Status.Conditions, c)
		}
		s.put(w)
	}
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message}
	}
	applied := condition(workv1.WorkApplied, "True", "")
	upgrades := func(want ...string) {
		t.Helper()
		stdout, _, err := run(t, config, "top", "agents", "--sort-by=upgrade")
		if err != nil {
			t.Fatal(err)
		}
		got := squeeze(stdout)
		says(t, got, want...)
		if strings.Contains(got, "\x1b") {
			t.Errorf("it prints %q", got)
		}
	}
	put("c0", "clusterhub/hub-agent:v1")
	put("c1", "clusterhub/hub-agent:v2", applied, condition(workv1.ManifestProgressing, "True", "0 of 1 replicas\x1b are updated"))
	put("c2", "clusterhub/hub-agent:v2", applied, condition(workv1.ManifestProgressing, "False", ""))
	upgrades("c1 true True 120m Unknown Unknown false v1.3.0 <none> v2: upgrading: progressing: 0 of 1 replicas", "v2: waits for its turn in the rollout", "v1.2.0 <none> v2: done")
	put("c1", "clusterhub/hub-agent:v2", applied, condition(workv1.ManifestProgressing, "True", ""), condition(workv1.ManifestDegraded, "True", "timed out"))
	put("c2", "clusterhub/hub-agent:v2", condition(workv1.WorkApplied, "False", "no work may name it"))
	upgrades("v2: failed: degraded: timed out", "v2: upgrading: not applied: no work may name it")
	s.refuse("GET /apis/work.open-cluster-management.io/v1alpha1/manifestworkreplicasets", forbidden("manifestworkreplicasets", "list"))
	if _, stderr, err := run(t, config, "top", "agents"); err != nil || !strings.Contains(stderr, "Not seen: upgrades of agents: ") {
		t.Errorf("%v, %s", err, stderr)
	}
}
