// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// upgradable makes the agents those of a Deployment in the test's namespace, as kubectl hub join creates it. It returns the target of the Deployment.
func (w *world) upgradable() apply.Target {
	w.Helper()
	w.own = Own{Namespace: w.namespace, Repository: "clusterhub/hub-agent"}
	deployed, err := deploy.Agent{Image: "clusterhub/hub-agent:v1", Hub: "h", Namespace: w.namespace, Args: []string{"--cluster-name=c1"}}.Objects()
	if err != nil {
		w.Fatal(err)
	}
	for _, o := range deployed {
		if o.GetKind() == "Deployment" {
			w.apply(o)
		}
	}
	return apply.Target{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Namespace: w.namespace, Name: registration.AgentDeployment}
}

// apply applies a Deployment as kubectl hub join does.
func (w *world) apply(o *unstructured.Unstructured) {
	w.Helper()
	client := w.client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(o.GetNamespace())
	if _, err := client.Apply(w.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: deploy.ManagedBy, Force: true}); err != nil {
		w.Fatal(err)
	}
}

// upgrade returns the spec of a work that sets the image of the agent.
func (w *world) upgrade(image string, more ...string) workv1.ManifestWorkSpec {
	w.Helper()
	data, err := json.Marshal(registration.AgentImage(w.namespace, image))
	if err != nil {
		w.Fatal(err)
	}
	return w.spec(append([]string{string(data)}, more...)...)
}

// agent returns the image of the Deployment, and the rest without the fields that change with each write.
func (w *world) agent(t apply.Target) (image, rest string) {
	w.Helper()
	have := w.get(t)
	if have == nil {
		return "<none>", ""
	}
	image = registration.ImageOfAgent(have)
	if refs := have.GetOwnerReferences(); len(refs) > 0 {
		w.Errorf("the Deployment of the agent belongs to %v", refs)
	}
	text, err := json.Marshal([]any{have.Object["spec"], have.GetLabels(), have.GetAnnotations(), have.GetUID()})
	if err != nil {
		w.Fatal(err)
	}
	return image, strings.ReplaceAll(string(text), image, "IMAGE")
}

// TestAttack_UpgradeWorkDeletionRetainsAgent: whatever strategies and deletion options a work has, the Deployment of the agent gets another image and
// keeps all other fields, and it stays when the manifest is removed from the work, when the work is deleted, and when another client deletes the
// record.
func TestAttack_UpgradeWorkDeletionRetainsAgent(t *testing.T) {
	w := newWorld(t)
	deployment := w.upgradable()
	_, before := w.agent(deployment)
	beside := "{apiVersion: v1, kind: ConfigMap, metadata: {name: beside, namespace: " + worktest.Namespace(t) + "}}"
	stop := w.start(w.newAgent())
	still := func(want string) {
		t.Helper()
		w.eventually("the image", want, func() string { image, _ := w.agent(deployment); return image })
		if _, rest := w.agent(deployment); rest != before {
			t.Errorf("the Deployment was\n%s\nand is\n%s", before, rest)
		}
	}
	still("clusterhub/hub-agent:v1")
	version := 1
	for _, strategy := range []workv1.UpdateStrategyType{"", workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeReplace,
		workv1.UpdateStrategyTypeCreateOnly, workv1.UpdateStrategyTypeServerSideApply} {
		for _, option := range []*workv1.DeleteOption{nil, {PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground},
			{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}} {
			version++
			image := fmt.Sprintf("clusterhub/hub-agent:v%d", version)
			spec := w.upgrade(image, beside)
			spec.DeleteOption = option
			if strategy != "" {
				update := &workv1.UpdateStrategy{Type: strategy}
				if strategy == workv1.UpdateStrategyTypeServerSideApply {
					update.ServerSideApply = &workv1.ServerSideApplyConfig{FieldManager: "work-agent-other"}
				}
				spec.ManifestConfigs = []workv1.ManifestConfigOption{{ResourceIdentifier: workv1.ResourceIdentifier{
					Group: "apps", Resource: "deployments", Namespace: w.namespace, Name: registration.AgentDeployment}, UpdateStrategy: update}}
			}
			w.put("w", spec)
			w.eventually("what "+string(strategy)+" says", "True: True True", func() string {
				if said := w.said("w", workv1.WorkApplied); said == "True: True True" {
					return said
				}
				return w.message("w", 0, workv1.ManifestApplied) + "; " + w.message("w", 1, workv1.ManifestApplied)
			})
			still(image)

			w.put("w", w.spec(beside))
			w.eventually("the record", "beside", func() string { return w.recorded("w") })
			still(image)
			w.put("w", spec)
			w.eventually("the record", "beside hub-agent", func() string {
				if strings.Count(w.recorded("w"), " ") == 1 && !strings.Contains(w.recorded("w"), "*") {
					return "beside hub-agent"
				}
				return w.recorded("w")
			})
			w.delete("w")
			w.eventuallyGone("w")
			still(image)
		}
	}
	t.Log("Somebody deletes the record")
	w.put("w", w.upgrade("clusterhub/hub-agent:last"))
	w.eventuallySaid("w", workv1.WorkApplied, "True: True")
	record := w.record("w").GetUID()
	if err := w.client.Resource(apply.AppliedWorks).Delete(t.Context(), w.recordTarget("w").Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "there is another record", func() bool { r := w.record("w"); return r != nil && r.GetUID() != record })
	still("clusterhub/hub-agent:last")
	t.Log("Somebody has given the Deployment an owner, as an agent that does not know this might")
	w.change(deployment, func(have *unstructured.Unstructured) {
		have.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apply.WorkGroup + "/v1", Kind: apply.AppliedKind, Name: w.recordTarget("w").Name, UID: w.record("w").GetUID()}})
	})
	stop()
	w.start(w.newAgent())
	w.delete("w")
	w.eventuallyGone("w")
	still("clusterhub/hub-agent:last")
}

// TestAttack_WorkOnOwnAgent: without the flag no work may name the Deployment, and with it works may only set the image, with the rights
// that kubectl hub join --upgradable gives, and of no other Deployment.
func TestAttack_WorkOnOwnAgent(t *testing.T) {
	w := newWorld(t)
	deployment := w.upgradable()
	w.limited()
	w.make(worktest.Parse(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: upgrade}
rules: [{apiGroups: [apps], resources: [deployments], resourceNames: [hub-agent], verbs: [get, list, watch, patch]}]`), "roles", w.namespace)
	w.make(worktest.Parse(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: upgrade}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: upgrade}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: `+w.user+`}]`), "rolebindings", w.namespace)
	_, before := w.agent(deployment)
	container := `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ` + w.namespace + `, name: hub-agent}, spec: {template: {spec: {containers: [%s]}}}}`
	refused := w.spec(
		fmt.Sprintf(container, "{name: hub-agent, image: 'evil.example/hub-agent:v2'}"),
		"{apiVersion: v1, kind: Secret, metadata: {namespace: "+w.namespace+", name: hub-kubeconfig-secret}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: "+w.namespace+", name: other}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: "+w.namespace+"}}")
	more := w.spec(fmt.Sprintf(container, "{name: hub-agent, image: 'clusterhub/hub-agent:v2', args: [--works=false]}"))
	stop := w.start(w.newAgent())
	w.put("refused", refused)
	w.put("more", more)
	w.eventuallySaid("refused", workv1.WorkApplied, "False: False False False False")
	w.eventuallySaid("more", workv1.WorkApplied, "False: False")
	if got := w.message("refused", 0, workv1.ManifestApplied); !strings.Contains(got, "is not one of the repository clusterhub/hub-agent") {
		t.Errorf("another repository: %s", got)
	}
	if got := w.message("more", 0, workv1.ManifestApplied); !strings.Contains(got, "nothing else of its Deployment") {
		t.Errorf("arguments: %s", got)
	}
	w.put("more", w.upgrade("clusterhub/hub-agent:v2"))
	w.eventuallySaid("more", workv1.WorkApplied, "True: True")
	image, rest := w.agent(deployment)
	if image != "clusterhub/hub-agent:v2" || rest != before {
		t.Errorf("the image is %s, and the Deployment\n%s\nof\n%s", image, rest, before)
	}
	w.eventuallyIdle() // the rights include the watch
	t.Log("A second work gives way to the first")
	w.put("second", w.upgrade("clusterhub/hub-agent:v3"))
	w.eventuallySaid("second", workv1.WorkApplied, "False: False")
	stop()

	t.Log("Without the flag")
	w.own.Repository = ""
	w.start(w.newAgent())
	w.put("more", w.upgrade("clusterhub/hub-agent:v4"))
	w.eventuallySaid("more", workv1.WorkApplied, "False: False")
	if got := w.message("more", 0, workv1.ManifestApplied); !strings.Contains(got, "kubectl hub join --upgradable") {
		t.Errorf("it says %s", got)
	}
	if image, _ := w.agent(deployment); image != "clusterhub/hub-agent:v2" {
		t.Errorf("the image is %s", image)
	}
}

// TestUpgrade_NextVersionReportsStatus: the agent that sets the image stops right after the write, before it can report to the hub. The
// next agent continues, writes nothing again, and the work progresses until no pod of the old version is left.
func TestUpgrade_NextVersionReportsStatus(t *testing.T) {
	w := newWorld(t)
	deployment := w.upgradable()
	ended := make(chan struct{})
	w.around = func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
		select {
		case <-ended:
			return nil, errors.New("the process has ended")
		default:
		}
		response, err := next()
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") && err == nil && response.StatusCode == http.StatusOK {
			close(ended)
		}
		return response, err
	}
	stop := w.start(w.newAgent())
	spec := w.upgrade("clusterhub/hub-agent:v2")
	spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: w.namespace, Name: registration.AgentDeployment},
		ConditionRules: []workv1.ConditionRule{{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestProgressing},
			{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestDegraded}}}}
	w.put("w", spec)
	<-ended
	stop()
	if got := w.said("w", workv1.WorkApplied); got != "" {
		t.Fatalf("the version before says %s", got)
	}
	w.around = nil
	generation := w.get(deployment).GetGeneration()

	t.Log("Both versions run for a while")
	w.start(w.newAgent())
	w.start(w.newAgent())
	pods := func(status string) {
		t.Helper()
		data := fmt.Sprintf(`{"status":{"observedGeneration":%d,%s}}`, generation, status)
		if _, err := w.client.Resource(deployment.GroupVersionResource).Namespace(w.namespace).Patch(t.Context(), deployment.Name, types.MergePatchType,
			[]byte(data), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	says := func(conditionType, want string) {
		t.Helper()
		w.eventually(conditionType, want, func() string {
			c := meta.FindStatusCondition(w.work("w").Status.Conditions, conditionType)
			if c == nil {
				return "<none>"
			}
			return string(c.Status) + " " + w.message("w", 0, conditionType)
		})
	}
	pods(`"replicas":2,"updatedReplicas":1,"readyReplicas":2,"availableReplicas":2`)
	says(workv1.ManifestProgressing, "True 1 old replicas are still there")
	pods(`"replicas":2,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"timed out"}]`)
	says(workv1.ManifestDegraded, "True ProgressDeadlineExceeded: timed out")
	pods(`"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[]`)
	says(workv1.ManifestProgressing, "False 1 of 1 replicas are available")
	w.eventuallyIdle()
	if got := w.get(deployment).GetGeneration(); got != generation {
		t.Errorf("the Deployment was written again: generation %d, and %d", generation, got)
	}
}

// TestAttack_UpgradeWorkDeletionRetainsKlusterlet: a work that changes the Klusterlet of its agent does not own it. If it were deleted, hub-operator
// would remove the agent. Other Klusterlets are deleted with their work.
func TestAttack_UpgradeWorkDeletionRetainsKlusterlet(t *testing.T) {
	w := newWorld(t)
	resource := schema.GroupVersionResource{Group: "operator.open-cluster-management.io", Version: "v1", Resource: "klusterlets"}
	worktest.Serve(t, resource.Group, "Klusterlet", "Cluster")
	own, other := w.namespace, w.namespace+"-other"
	w.own = Own{Namespace: "agent", Klusterlet: own}
	klusterlet := func(name, image string) string {
		return fmt.Sprintf("{apiVersion: operator.open-cluster-management.io/v1, kind: Klusterlet, metadata: {name: %s}, spec: {workImagePullSpec: '%s'}}", name, image)
	}
	existing := worktest.Parse(klusterlet(own, "hub-agent:v1"))
	existing.Object["spec"].(map[string]any)["clusterName"] = "c1"
	if _, err := w.client.Resource(resource).Create(t.Context(), existing, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.client.Resource(resource).Delete(t.Context(), own, metav1.DeleteOptions{}) })
	w.start(w.newAgent())
	w.put("w", w.spec(klusterlet(own, "hub-agent:v2"), klusterlet(other, "hub-agent:v2")))
	w.eventuallySaid("w", workv1.WorkApplied, "True: True True")
	w.delete("w")
	w.eventuallyGone("w")
	have := w.get(apply.Target{GroupVersionResource: resource, Name: own})
	if have == nil || fmt.Sprint(have.Object["spec"]) != "map[clusterName:c1 workImagePullSpec:hub-agent:v2]" || len(have.GetOwnerReferences()) > 0 {
		t.Errorf("the Klusterlet of the agent is %v", have)
	}
	if have := w.get(apply.Target{GroupVersionResource: resource, Name: other}); have != nil {
		t.Errorf("the work has left the other Klusterlet: %v", have)
	}
}

// TestUpgradable_FollowsJoin: a server accepts what kubectl hub join applies with and without --upgradable, in any order, even after a work
// has set the image: it would reject a strategy left by a previous join.
func TestUpgradable_FollowsJoin(t *testing.T) {
	w := newWorld(t)
	target := w.upgradable()
	join := func(upgradable bool) (strategy string) {
		t.Helper()
		objects, err := deploy.Agent{Image: "clusterhub/hub-agent:v1", Hub: "h", Namespace: w.namespace, Works: deploy.Works{Role: "admin"}, Upgradable: upgradable}.Objects()
		if err != nil {
			t.Fatal(err)
		}
		w.apply(objects[len(objects)-1])
		have := w.get(target)
		if args := fmt.Sprint(have.Object["spec"]); strings.Contains(args, "--upgrade-repository=clusterhub/hub-agent]") != upgradable {
			t.Errorf("the arguments are %v", args)
		}
		return fmt.Sprint(have.Object["spec"].(map[string]any)["strategy"])
	}
	const rolling, recreate = "map[rollingUpdate:map[maxSurge:1 maxUnavailable:0] type:RollingUpdate]", "map[type:Recreate]"
	if got := join(false); got != recreate {
		t.Errorf("without the flag the strategy is %s", got)
	}
	if got := join(true); got != rolling {
		t.Errorf("with the flag the strategy is %s", got)
	}
	stop := w.start(w.newAgent())
	w.put("w", w.upgrade("clusterhub/hub-agent:v2"))
	w.eventuallySaid("w", workv1.WorkApplied, "True: True")
	stop()
	if got := join(true); got != rolling {
		t.Errorf("after an upgrade the strategy is %s", got)
	}
	if got := join(false); got != recreate {
		t.Errorf("without the flag again, the strategy is %s", got)
	}
}
