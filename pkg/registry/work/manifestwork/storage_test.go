// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func workOf(name string, raw ...string) *work.ManifestWork {
	w := &work.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: registrytest.Namespace, Name: name}}
	for _, r := range raw {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, work.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(r)}})
	}
	return w
}

// ready returns options with a condition rule for an expression.
func ready(expression string) []work.ManifestConfigOption {
	return []work.ManifestConfigOption{{
		ResourceIdentifier: work.ResourceIdentifier{Resource: "configmaps", Name: "a"},
		ConditionRules:     []work.ConditionRule{{Type: work.CelConditionExpressionsType, Condition: "Ready", CelExpressions: []string{expression}}},
	}}
}

const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`

func TestStorage(t *testing.T) {
	registrytest.Suite[*work.ManifestWork]{
		Kind:  Kind,
		Valid: func() *work.ManifestWork { return workOf("web", configMap) },
		Invalid: []func(*work.ManifestWork){
			func(w *work.ManifestWork) { w.Name = strings.Repeat("a", 189) },
			func(w *work.ManifestWork) { w.Spec.Workload.Manifests[0].Raw = []byte("[]") },
			func(w *work.ManifestWork) { w.Spec.ManifestConfigs = ready("object.") },
		},
		Change: func(w *work.ManifestWork) {
			w.Spec.DeleteOption = &work.DeleteOption{PropagationPolicy: work.DeletePropagationPolicyTypeOrphan}
		},
		InvalidChanges: []func(*work.ManifestWork){
			func(w *work.ManifestWork) { w.Spec.Executor = &work.ManifestWorkExecutor{} },
			func(w *work.ManifestWork) { w.Spec.ManifestConfigs = ready("object.") },
		},
		Status: func(w *work.ManifestWork) {
			w.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: "True", Reason: "AppliedManifestWorkComplete", LastTransitionTime: metav1.Unix(1, 0)}}
		},
		BadStatus: func(w *work.ManifestWork) {
			w.Status.ResourceStatus.Manifests = []work.ManifestCondition{{ResourceMeta: work.ManifestResourceMeta{Ordinal: -1}}}
		},
		Columns: "Name/0 Age/0",
		Cells:   "web|<unknown>",
	}.Run(t)
}

// TestCreate_RejectsManifestsAsUpstream: upstream's clients expect a 400 for invalid manifests. It names the field, like every rejection.
func TestCreate_RejectsManifestsAsUpstream(t *testing.T) {
	r := registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, nil)
	ctx := registrytest.Context(r)
	for name, w := range map[string]*work.ManifestWork{
		"manifests should not be empty":                                      workOf("none"),
		"duplicate manifest for resource /a with resource type v1.ConfigMap": workOf("twice", configMap, configMap),
	} {
		_, err := r.Create(ctx, w, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		status, ok := err.(apierrors.APIStatus)
		if !ok || !apierrors.IsBadRequest(err) || status.Status().Code != http.StatusBadRequest || !strings.Contains(err.Error(), name) ||
			len(status.Status().Details.Causes) != 1 || !strings.HasPrefix(status.Status().Details.Causes[0].Field, "spec.workload.manifests") {
			t.Errorf("got %v, want a 400 that says %s", err, name)
		}
	}

	created := registrytest.Create(t, ctx, r, workOf("web", `{"metadata": {"name": "a"}, "kind": "ConfigMap", "apiVersion": "v1"}`))
	if got := string(created.Spec.Workload.Manifests[0].Raw); got != configMap {
		t.Errorf("stored %s", got)
	}
	// The same manifest with another order of fields is no change of the spec.
	again := created.DeepCopy()
	again.Spec.Workload.Manifests[0].Raw = []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`)
	updated, err := registrytest.Update(ctx, r, again)
	if err != nil || updated.Generation != 1 || updated.ResourceVersion != created.ResourceVersion {
		t.Errorf("%v, the same manifest is generation %d in version %s, was %s", err, updated.Generation, updated.ResourceVersion, created.ResourceVersion)
	}
	again.Spec.Workload.Manifests = nil
	if _, err := registrytest.Update(ctx, r, again); !apierrors.IsBadRequest(err) {
		t.Errorf("an update to nothing: %v", err)
	}
	// More than other kinds may have.
	large := workOf("large", `{"apiVersion":"v1","data":{"a":"`+strings.Repeat("x", 500_000)+`"},"kind":"ConfigMap","metadata":{"name":"a"}}`)
	large = registrytest.Create(t, ctx, r, large)
	large.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: "True", Reason: "R", Message: strings.Repeat("x", 30_000), LastTransitionTime: metav1.Unix(1, 0)}}
	if _, err := registrytest.Update(ctx, r.Subresources["status"], large); err != nil {
		t.Error(err)
	}
	huge := workOf("huge", `{"a":"`+strings.Repeat("x", 2<<20)+`"}`)
	if _, err := r.Create(ctx, huge, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("2 MiB: %.200v", err)
	}
}
