// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"testing"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

var cases = map[string]func(*testing.T){
	"W009": func(t *testing.T) {
		newWorld(t, cm1).round().is("Applied", at(workApplied, 1)).is("Available", "True ResourcesAvailable: All resources are available (1)").
			manifest(0, "Applied", at(complete, 1)).manifest(0, "Available", "True ResourceAvailable: Resource is available (0)")
	},
	"W010": func(t *testing.T) {
		w := newWorld(t, cm1, cm2, cm3)
		w.refuses["cm1"] = errRefused
		w.round().is("Applied", "False AppliedManifestWorkFailed: Failed to apply manifest work (1)").
			is("Available", "False ResourcesNotAvailable: 1 of 3 resources are not available (1)").
			manifest(0, "Applied", "False AppliedManifestFailed: Failed to apply manifest: refused (1)").
			manifest(1, "Applied", at(complete, 1)).manifest(2, "Applied", at(complete, 1))
	},
	"W016": func(t *testing.T) {
		w := newWorld(t, deployment("deploy", 1), binding, account, role).round()
		if got := fmt.Sprint(w.applied); got != "[binding role account deploy]" {
			t.Errorf("applied %s", got)
		}
		for i, m := range w.status.ResourceStatus.Manifests {
			if int(m.ResourceMeta.Ordinal) != i || m.ResourceMeta.Name != w.manifests[i].GetName() {
				t.Errorf("%d is %+v", i, m.ResourceMeta)
			}
		}
	},
	"W017": func(t *testing.T) {
		thing := "{apiVersion: example.com/v1, kind: Thing, metadata: {name: thing}}"
		if got := fmt.Sprint(newWorld(t, thing, cm2, cm1).round().applied); got != "[cm2 cm1 thing]" {
			t.Errorf("applied %s", got)
		}
	},
	"W018": func(t *testing.T) {
		w := newWorld(t, cm1).round().is("Applied", at(workApplied, 1))
		w.edit("{apiVersion: v1, kind: ConfigMap, metadata: {name: cm1, namespace: ns}, data: {a: c}}").round().
			is("Applied", at(workApplied, 2)).is("Available", "True ResourcesAvailable: All resources are available (2)")
	},
	"W019": func(t *testing.T) {
		w := newWorld(t, binding).round()
		w.refuses["binding"] = errRefused
		w.edit(binding).round().is("Applied", "False AppliedManifestWorkFailed: Failed to apply manifest work (2)").
			is("Available", "True ResourcesAvailable: All resources are available (2)")
	},
	"W032": func(t *testing.T) {
		w := newWorld(t, deployment("deploy", 1)).configure(deploys + "updateStrategy: {type: CreateOnly}").round()
		w.edit(deployment("deploy", 3)).round().is("Applied", at(workApplied, 2))
		w.replicas("deploy", 1)
	},
	"W033": func(t *testing.T) {
		w := newWorld(t, cm1).configure(fmt.Sprintf(configMaps, "cm1") + "updateStrategy: {type: ReadOnly}\nfeedbackRules: [{type: JSONPaths, jsonPaths: [{name: a, path: .data.a}]}]")
		w.round().is("Applied", at(workApplied, 1))
		w.sets(cm1)
		w.round().values(0, "a=b")
		w.sets("{apiVersion: v1, kind: ConfigMap, metadata: {name: cm1, namespace: ns}, data: {a: c}}")
		w.round().values(0, "a=c")
		if len(w.applied) > 0 {
			t.Errorf("applied %v", w.applied)
		}
	},
	"W035": func(t *testing.T) { ignoresReplicas(t, "jsonPaths: [.spec.replicas]") },
	"W036": func(t *testing.T) { ignoresReplicas(t, "jsonPointers: [/spec/replicas]") },
	"W037": func(t *testing.T) {
		newWorld(t, deployment("deploy", 1)).configure(ignoring("jqPathExpressions: ['.spec | |']")).round().
			manifest(0, "Applied", `False AppliedManifestSSAIgnoreFieldError: Failed to process ignoreFields: JQ expression error in '.spec | |': failed to parse jq expression: unexpected token "|" (1)`)
	},
	"W038": func(t *testing.T) {
		w := newWorld(t, "{apiVersion: example.com/v1, kind: Thing, metadata: {name: deploy, creationTimestamp: null}, spec: {template: {metadata: {creationTimestamp: null, name: a}}}}").
			configure("resourceIdentifier: {group: example.com, resource: things, name: deploy}\nupdateStrategy: {type: ServerSideApply, serverSideApply: {force: true}}").round().round()
		if got := fmt.Sprint(w.cluster[key(w.manifests[0])]); got != "&{map[apiVersion:example.com/v1 kind:Thing metadata:map[name:deploy] spec:map[template:map[metadata:map[name:a]]]]}" {
			t.Errorf("the cluster got %s", got)
		}
	},
	"W039": func(t *testing.T) {
		w := newWorld(t, deployment("deploy", 3)).configure(deploys + "feedbackRules: [{type: WellKnownStatus}]").round().values(0)
		w.sets(scaled("deploy", 2, 3, 2))
		w.round().values(0, "ReadyReplicas=2", "Replicas=3", "AvailableReplicas=2").manifest(0, "StatusFeedbackSynced", "True StatusFeedbackSynced:  (0)")
		w.sets(scaled("deploy", 3, 3, 3))
		w.round().values(0, "ReadyReplicas=3", "Replicas=3", "AvailableReplicas=3")
	},
	"W040": func(t *testing.T) {
		w := conditionsByPath(t)
		w.round().values(0, "available=True").
			manifest(0, "StatusFeedbackSynced", "False StatusFeedbackSyncFailed: Sync status feedback failed with error the type []interface {} of the value for conditions is not found (0)")
	},
	"W041": func(t *testing.T) {
		w := newWorld(t, deployment("deploy", 1), account).configure(deploys+"feedbackRules: [{type: WellKnownStatus}]",
			"resourceIdentifier: {resource: serviceaccounts, namespace: ns, name: account}\nfeedbackRules: [{type: WellKnownStatus}]")
		w.sets(scaled("deploy", 1, 1, 1))
		w.round().values(0, "ReadyReplicas=1", "Replicas=1", "AvailableReplicas=1").values(1).
			manifest(1, "StatusFeedbackSynced", "False StatusFeedbackSyncFailed: Sync status feedback failed with error cannot find the wellknown statuses for resource with gvk /v1, Kind=ServiceAccount (0)")
	},
	"W042": func(t *testing.T) {
		newWorld(t, deployment("deploy", 1)).configure(deploys+"feedbackRules: [{type: JSONPaths, jsonPaths: [{name: a, version: v1beta1, path: .spec.replicas}, {name: b, path: .spec.replicas}]}]").round().
			values(0, "b=1").manifest(0, "StatusFeedbackSynced",
			"False StatusFeedbackSyncFailed: Sync status feedback failed with error version set in the path a is not matched for the related resource (0)")
	},
	"W043": func(t *testing.T) {
		w := conditionsByPath(t)
		w.raw = true
		w.round().values(0, "available=True", `conditions=[{"status":"True","type":"Available"}]`).manifest(0, "StatusFeedbackSynced", "True StatusFeedbackSynced:  (0)")
	},
	"W044": func(t *testing.T) {
		w := newWorld(t, deployment("deploy1", 1), deployment("deploy2", 2)).
			configure(deploys + "feedbackRules: [{type: WellKnownStatus}, {type: JSONPaths, jsonPaths: [{name: name, path: .metadata.name}]}]")
		w.sets(scaled("deploy1", 1, 1, 1))
		w.sets(scaled("deploy2", 2, 2, 2))
		w.round()
		w.values(0, "ReadyReplicas=1", "Replicas=1", "AvailableReplicas=1", "name=deploy1").values(1, "ReadyReplicas=2", "Replicas=2", "AvailableReplicas=2", "name=deploy2")
	},
	"W046": func(t *testing.T) {
		w := newWorld(t, deployment("deploy", 1)).configure(deploys + "feedbackRules: [{type: WellKnownStatus}]")
		w.sets(scaled("deploy", 1, 1, 1))
		before := w.round().round().find(0, "StatusFeedbackSynced").LastTransitionTime
		w.sets(scaled("deploy", 2, 2, 2))
		if after := w.round().find(0, "StatusFeedbackSynced").LastTransitionTime; !before.Before(&after) || !after.Time.Equal(w.now) {
			t.Errorf("it was %s, and is %s", before, after)
		}
	},
	"W047": func(t *testing.T) {
		w := newWorld(t, job).configure(jobs+"conditionRules: [{type: WellKnownConditions, condition: Complete}]").round().
			manifest(0, "Complete", "False ConditionRuleEvaluated: Job is not finished (1)")
		for _, condition := range []string{"Complete", "Failed"} {
			w.sets(withStatus("batch/v1, kind: Job", "job", "{conditions: [{type: "+condition+", status: 'True'}]}"))
			w.round().manifest(0, "Complete", "True ConditionRuleEvaluated: Job is finished (1)")
		}
	},
	"W048": func(t *testing.T) {
		w := newWorld(t, pod).configure("resourceIdentifier: {resource: pods, namespace: ns, name: pod}\nconditionRules: [{type: WellKnownConditions, condition: Complete}]")
		for _, phase := range []string{"Succeeded", "Failed"} {
			w.sets(withStatus("v1, kind: Pod", "pod", "{phase: "+phase+"}"))
			w.round().manifest(0, "Complete", "True ConditionRuleEvaluated: Pod is in phase "+phase+" (1)")
		}
	},
	"W049": func(t *testing.T) {
		newWorld(t, job).configure(jobs+"conditionRules: [{type: WellKnownConditions, condition: NotWellKnown}]").round().
			manifest(0, "NotWellKnown", "none").is("NotWellKnown", "none")
	},
	"W050": func(t *testing.T) {
		w := newWorld(t, job).configure(jobs + `conditionRules: [{type: CEL, condition: One, celExpressions: [object.status.active == 1], messageExpression: 'result ? "one" : "not one"'}]`)
		w.sets(withStatus("batch/v1, kind: Job", "job", "{active: 2}"))
		w.round().manifest(0, "One", "False ConditionRuleEvaluated: not one (1)")
		w.sets(withStatus("batch/v1, kind: Job", "job", "{active: 1}"))
		w.round().manifest(0, "One", "True ConditionRuleEvaluated: one (1)")
	},
	"W051": func(t *testing.T) {
		newWorld(t, cm1).configure(fmt.Sprintf(configMaps, "cm1")+"conditionRules: [{type: CEL, condition: A, celExpressions: [object.data.a]}]").round().
			manifest(0, "A", "False ConditionRuleExpressionError: expected bool result, got string (1)")
	},
	"W052": func(t *testing.T) { twoRules(t, "Complete", "False") },
	"W053": func(t *testing.T) { twoRules(t, "Progressing", "True") },
	"W054": func(t *testing.T) {
		w := newWorld(t, cm1, cm2).configure(fmt.Sprintf(configMaps, "cm1") + "conditionRules: [{type: CEL, condition: Complete, celExpressions: [object.data.a == 'done'], message: it is done}]").round()
		w.is("Complete", "False ConditionRulesAggregated: it is done (1)")
		w.edit("{apiVersion: v1, kind: ConfigMap, metadata: {name: cm1, namespace: ns}, data: {a: done}}", cm2).round().is("Complete", "True ConditionRulesAggregated: it is done (2)")
	},
	"W055": func(t *testing.T) {
		newWorld(t, cm1).round().edit().round().is("Available", "Unknown ResourcesStatusUnknown: cannot get any available resource  (2)")
	},
	"W056": func(t *testing.T) {
		w := newWorld(t, cm1, cm2).configure(fmt.Sprintf(configMaps, "*") + "updateStrategy: {type: ReadOnly}")
		w.sets(cm1)
		w.round().is("Available", "False ResourcesNotAvailable: 1 of 2 resources are not available (1)")
		w.gone(cm1)
		w.round().is("Available", "False ResourcesNotAvailable: 2 of 2 resources are not available (1)")
	},
}

func (w *world) replicas(name string, want int64) {
	w.t.Helper()
	o := w.cluster[key(w.parse(deployment(name, 1)))]
	if got := o.Object["spec"].(map[string]any)["replicas"]; got != want {
		w.t.Errorf("%s has %v replicas, want %d", name, got, want)
	}
}

func ignoring(fields string) string {
	return deploys + "updateStrategy: {type: ServerSideApply, serverSideApply: {force: true, ignoreFields: [{condition: OnSpokePresent, " + fields + "}]}}"
}

func ignoresReplicas(t *testing.T, fields string) {
	w := newWorld(t, deployment("deploy", 1)).configure(ignoring(fields)).round()
	w.replicas("deploy", 1)
	w.sets(deployment("deploy", 2))
	w.edit(deployment("deploy", 3)).round().is("Applied", at(workApplied, 2))
	w.replicas("deploy", 2)
	if w.cluster[key(w.manifests[0])].GetAnnotations()[workv1.ManifestConfigSpecHashAnnotationKey] == "" {
		t.Error("there is no hash")
	}
}

func conditionsByPath(t *testing.T) *world {
	w := newWorld(t, deployment("deploy", 1)).configure(deploys +
		`feedbackRules: [{type: JSONPaths, jsonPaths: [{name: available, path: '.status.conditions[?(@.type=="Available")].status'}, {name: conditions, path: .status.conditions}]}]`)
	w.sets(scaled("deploy", 1, 1, 1))
	return w
}

// twoRules has one manifest with a rule that is true, and one with a rule that is false.
func twoRules(t *testing.T, condition, want string) {
	newWorld(t, cm1, cm2).configure(fmt.Sprintf(configMaps, "cm1")+"conditionRules: [{type: CEL, condition: "+condition+", celExpressions: ['true']}]",
		fmt.Sprintf(configMaps, "cm2")+"conditionRules: [{type: CEL, condition: "+condition+", celExpressions: ['false']}]").round().
		is(condition, want+" ConditionRulesAggregated: Aggregated from 2 manifest conditions (1)")
}
