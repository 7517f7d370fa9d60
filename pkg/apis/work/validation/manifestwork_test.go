// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds/boundstest"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/apis/work/install"
	"github.com/clusterhub/clusterhub/pkg/apis/work/validation"
)

var scheme = boundstest.Scheme(install.Install)

func configMap(namespace, name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"` + namespace + `","name":"` + name + `"}}`
}

func manifests(raw ...string) []work.Manifest {
	var list []work.Manifest
	for _, r := range raw {
		list = append(list, work.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(r)}})
	}
	return list
}

func workOf(raw ...string) *work.ManifestWork {
	return &work.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web", ResourceVersion: "1"},
		Spec:       work.ManifestWorkSpec{Workload: work.ManifestsTemplate{Manifests: manifests(raw...)}},
	}
}

// want compares the errors with "field: part of the text", all of them in their order.
func want(t *testing.T, what string, errs field.ErrorList, wants ...string) {
	t.Helper()
	ok := len(errs) == len(wants)
	for i := range wants {
		at, says, _ := strings.Cut(wants[i], ": ")
		ok = ok && errs[i].Field == at && strings.Contains(errs[i].Error(), says)
	}
	if !ok {
		t.Errorf("%s: got %v, want %q", what, errs, wants)
	}
}

// Upstream's webhook answers so, word for word.
func TestBadManifestWork_AsUpstream(t *testing.T) {
	const at = "spec.workload.manifests"
	for name, c := range map[string]struct {
		raw   []string
		wants []string
	}{
		"none":        {nil, []string{at + ": manifests should not be empty"}},
		"one":         {[]string{configMap("default", "test1")}, nil},
		"no name":     {[]string{configMap("default", "")}, []string{at + "[0].metadata.name: name must be set in manifest"}},
		"no metadata": {[]string{`{"apiVersion":"v1","kind":"ConfigMap"}`}, []string{at + "[0].metadata.name: name must be set in manifest"}},
		"a name in other letters": {[]string{`{"apiVersion":"v1","kind":"ConfigMap","Metadata":{"Name":"a"}}`},
			[]string{at + "[0].metadata.name: name must be set in manifest"}},
		"a generated name": {[]string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","generateName":"a-"}}`},
			[]string{at + "[0].metadata.generateName: generateName must not be set in manifest"}},
		"twice": {[]string{configMap("default", "test1"), configMap("default", "test1")},
			[]string{at + "[1]: duplicate manifest for resource default/test1 with resource type v1.ConfigMap"}},
		"in two namespaces": {[]string{configMap("default", "test1"), configMap("other", "test1")}, nil},
		"of two kinds":      {[]string{configMap("default", "test1"), strings.Replace(configMap("default", "test1"), "ConfigMap", "Secret", 1)}, nil},
	} {
		want(t, name, validation.BadManifestWork(workOf(c.raw...), &work.ManifestWork{}), c.wants...)
	}

	w := workOf(configMap("default", "test1"))
	w.Spec.Executor = &work.ManifestWorkExecutor{Subject: work.ManifestWorkExecutorSubject{Type: work.ExecutorSubjectTypeServiceAccount}}
	want(t, "an executor that is nobody", validation.BadManifestWork(w, &work.ManifestWork{}),
		"spec.executor.subject.serviceAccount: executor service account can not be nil")

	many := make([]string, 1025)
	for i := range many {
		many[i] = configMap("default", fmt.Sprint("a", i))
	}
	want(t, "too many", validation.BadManifestWork(workOf(many...), &work.ManifestWork{}), at+": must have at most 1024 items")

	// What was stored from before there was a bound may stay, so that its finalizers can go.
	stored := workOf(many...)
	if errs := validation.BadManifestWork(stored.DeepCopy(), stored); len(errs) > 0 {
		t.Errorf("unchanged: %v", errs)
	}
}

func TestValidateManifestWork_Manifests(t *testing.T) {
	const at = "spec.workload.manifests[0]"
	for raw, wants := range map[string][]string{
		`null`:                      {at + ": must be an object"},
		``:                          {at + ": must be an object"},
		`[]`:                        {at + ": must be an object"},
		`"a"`:                       {at + ": must be an object"},
		`{`:                         {at + ": must be an object"},
		`{"metadata":{"name":"a"}}`: {at + ".apiVersion: must not be empty", at + ".kind: must not be empty"},
		`{"apiVersion":1,"kind":{},"metadata":{"name":"a"}}`:                                           {at + ".apiVersion: must not be empty", at + ".kind: must not be empty"},
		`{"apiVersion":"a/b/c","kind":"A","metadata":{"name":"a"}}`:                                    {at + ".apiVersion: such as apps/v1"},
		`{"apiVersion":"v1","kind":"A b","metadata":{"name":"a"}}`:                                     {at + ".kind: letters"},
		`{"apiVersion":"v1","kind":"A","metadata":[]}`:                                                 {at + ".metadata: must be an object"},
		`{"apiVersion":"v1","kind":"A","metadata":{"name":1}}`:                                         {at + ".metadata: must be the metadata of an object"},
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a/b"}}`:                                     {at + ".metadata.name: may not contain"},
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"a b":"c"}}}`:                  {at + ".metadata.labels: name part must consist"},
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a:b"},"anything":{"b":[1,null,{"c":"d"}]}}`: nil,
		`{"apiVersion":"v1","kind":"List","metadata":{"name":"a"},"items":[]}`:                         {at + ".kind: write each of the items"},
		`{"apiVersion":"example.com/v1","kind":"AllowList","metadata":{"name":"a"}}`:                   nil,
	} {
		want(t, raw, boundstest.Created(t, scheme, workOf(raw), validation.ValidateManifestWork), wants...)
	}
}

func TestCanonical_SingleInterpretationOfManifests(t *testing.T) {
	for raw, wants := range map[string]string{
		`{"b": 1, "a": [1.0, 12345678901, "<"] }`:             `{"a":[1,12345678901,"\u003c"],"b":1}`,
		`{"kind":"ConfigMap","kind":"Secret"}`:                `{"kind":"Secret"}`,
		`{"Kind":"ConfigMap","kind":"Secret","unknown":null}`: `{"Kind":"ConfigMap","kind":"Secret","unknown":null}`,
		`null`: `null`,
		`{`:    `{`,
	} {
		list := manifests(raw)
		validation.Canonical(list, nil)
		if got := string(list[0].Raw); got != wants {
			t.Errorf("%s became %s, want %s", raw, got, wants)
		}
	}
}

func TestValidateManifestWork_Fields(t *testing.T) {
	account := func(namespace, name string) *work.ManifestWorkExecutor {
		return &work.ManifestWorkExecutor{Subject: work.ManifestWorkExecutorSubject{
			Type: work.ExecutorSubjectTypeServiceAccount, ServiceAccount: &work.ManifestWorkSubjectServiceAccount{Namespace: namespace, Name: name},
		}}
	}
	id := work.ResourceIdentifier{Resource: "configmaps", Name: "*"}
	config := func(change func(*work.ManifestConfigOption)) func(*work.ManifestWork) {
		return func(w *work.ManifestWork) {
			c := work.ManifestConfigOption{ResourceIdentifier: id, FeedbackScrapeType: work.FeedbackPollType}
			change(&c)
			w.Spec.ManifestConfigs = []work.ManifestConfigOption{c}
		}
	}
	applied := func(change func(*work.ServerSideApplyConfig)) func(*work.ManifestWork) {
		return config(func(c *work.ManifestConfigOption) {
			s := &work.ServerSideApplyConfig{FieldManager: work.DefaultFieldManager}
			change(s)
			c.UpdateStrategy = &work.UpdateStrategy{Type: work.UpdateStrategyTypeServerSideApply, ServerSideApply: s}
		})
	}
	const configs = "spec.manifestConfigs[0]"
	for name, c := range map[string]struct {
		change func(*work.ManifestWork)
		wants  []string
	}{
		"nothing":          {func(*work.ManifestWork) {}, nil},
		"the longest name": {func(w *work.ManifestWork) { w.Name = strings.Repeat("a", 188) }, nil},
		"a longer name":    {func(w *work.ManifestWork) { w.Name = strings.Repeat("a", 189) }, []string{"metadata.name: at most 188 characters"}},
		"an executor":      {func(w *work.ManifestWork) { w.Spec.Executor = account("ns", "sa.x") }, nil},
		"an executor, empty": {func(w *work.ManifestWork) { w.Spec.Executor = account("", "") }, []string{
			"spec.executor.subject.serviceAccount.namespace: Required", "spec.executor.subject.serviceAccount.name: Required"}},
		"an executor in two namespaces": {func(w *work.ManifestWork) { w.Spec.Executor = account("ns:a", "sa") },
			[]string{"spec.executor.subject.serviceAccount.namespace: must be lower-case"}},
		"an executor of no kind": {func(w *work.ManifestWork) { w.Spec.Executor = &work.ManifestWorkExecutor{} },
			[]string{"spec.executor.subject.type: ServiceAccount"}},
		"no policy": {func(w *work.ManifestWork) {
			w.Spec.DeleteOption = &work.DeleteOption{}
		}, []string{"spec.deleteOption.propagationPolicy: Foreground"}},
		"a negative time": {func(w *work.ManifestWork) {
			w.Spec.DeleteOption = &work.DeleteOption{PropagationPolicy: work.DeletePropagationPolicyTypeOrphan, TTLSecondsAfterFinished: new(int64(-1))}
		}, []string{"spec.deleteOption.ttlSecondsAfterFinished: greater than or equal to 0"}},
		"an orphan without a name": {func(w *work.ManifestWork) {
			w.Spec.DeleteOption = &work.DeleteOption{PropagationPolicy: work.DeletePropagationPolicyTypeSelectivelyOrphan,
				SelectivelyOrphan: &work.SelectivelyOrphan{OrphaningRules: []work.OrphaningRule{{Resource: "pods"}}}}
		}, []string{"spec.deleteOption.selectivelyOrphans.orphaningRules[0].name: Required"}},
		"an object": {config(func(*work.ManifestConfigOption) {}), nil},
		"no object": {config(func(c *work.ManifestConfigOption) { c.ResourceIdentifier = work.ResourceIdentifier{} }),
			[]string{configs + ".resourceIdentifier.resource: Required", configs + ".resourceIdentifier.name: Required"}},
		"a scrape": {config(func(c *work.ManifestConfigOption) { c.FeedbackScrapeType = "Push" }), []string{configs + ".feedbackScrapeType: Poll"}},
		"feedback of no kind": {config(func(c *work.ManifestConfigOption) { c.FeedbackRules = []work.FeedbackRule{{}} }),
			[]string{configs + ".feedbackRules[0].type: WellKnownStatus"}},
		"feedback twice": {config(func(c *work.ManifestConfigOption) {
			c.FeedbackRules = []work.FeedbackRule{{Type: work.JSONPathsType, JsonPaths: []work.JsonPath{{Name: "a", Path: ".a"}, {Name: "a"}}}}
		}), []string{configs + ".feedbackRules[0].jsonPaths[1]: Duplicate", configs + ".feedbackRules[0].jsonPaths[1].path: Required"}},
		"a CEL rule without a condition": {config(func(c *work.ManifestConfigOption) {
			c.ConditionRules = []work.ConditionRule{{Type: work.CelConditionExpressionsType}}
		}),
			[]string{configs + ".conditionRules[0].condition: Required"}},
		"two rules for a condition": {config(func(c *work.ManifestConfigOption) {
			c.ConditionRules = []work.ConditionRule{{Condition: "A", Type: work.WellKnownConditionsType}, {Condition: "A", Type: work.CelConditionExpressionsType}}
		}), []string{configs + ".conditionRules[1]: Duplicate"}},
		"a rule of an unknown type": {config(func(c *work.ManifestConfigOption) {
			c.ConditionRules = []work.ConditionRule{{Condition: "A", Type: "Magic"}}
		}), []string{configs + ".conditionRules[0].type: CEL"}},
		"long CEL": {config(func(c *work.ManifestConfigOption) {
			c.ConditionRules = []work.ConditionRule{{Condition: "A", Type: work.CelConditionExpressionsType, CelExpressions: []string{strings.Repeat("a", 4097)}}}
		}), []string{configs + ".conditionRules[0].celExpressions[0]: may not be more than 4096"}},
		"an adoption": {config(func(c *work.ManifestConfigOption) { c.Adoption = "Sometimes" }),
			[]string{configs + ".adoption: Always"}},
		"a strategy": {config(func(c *work.ManifestConfigOption) { c.UpdateStrategy = &work.UpdateStrategy{Type: "Recreate"} }),
			[]string{configs + ".updateStrategy.type: CreateOnly"}},
		"an agent's manager": {applied(func(s *work.ServerSideApplyConfig) { s.FieldManager = "work-agent-x" }), nil},
		"another's manager":  {applied(func(s *work.ServerSideApplyConfig) { s.FieldManager = "kubelet" }), []string{configs + ".updateStrategy.serverSideApply.fieldManager: must begin with work-agent"}},
		"nothing that is left out": {applied(func(s *work.ServerSideApplyConfig) {
			s.IgnoreFields = []work.IgnoreField{{Condition: work.IgnoreFieldsConditionOnSpokeChange}}
		}), []string{configs + ".updateStrategy.serverSideApply.ignoreFields[0].jsonPaths: must name a field"}},
		"left out twice": {applied(func(s *work.ServerSideApplyConfig) {
			f := work.IgnoreField{Condition: work.IgnoreFieldsConditionOnSpokeChange, JSONPointers: []string{"/spec"}}
			s.IgnoreFields = []work.IgnoreField{f, f}
		}), []string{configs + ".updateStrategy.serverSideApply.ignoreFields[1]: Duplicate"}},
	} {
		w, old := workOf(configMap("default", "a")), workOf(configMap("default", "a"))
		c.change(w)
		errs := boundstest.Created(t, scheme, w, validation.ValidateManifestWork)
		want(t, name, errs, c.wants...)
		if c.wants != nil && strings.HasPrefix(c.wants[0], "spec") {
			want(t, name+" by an update", boundstest.Updated(t, scheme, w, old, validation.ValidateManifestWorkUpdate), c.wants...)
		}
	}
}
