// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/author"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func replicaSet() *work.ManifestWorkReplicaSet {
	return &work.ManifestWorkReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: registrytest.Namespace, Name: "web"},
		Spec: work.ManifestWorkReplicaSetSpec{
			ManifestWorkTemplate: work.ManifestWorkSpec{Workload: work.ManifestsTemplate{Manifests: []work.Manifest{
				{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)}},
			}}},
			CascadeDeletionPolicy: work.Background,
			PlacementRefs: []work.LocalPlacementReference{{Name: "all", RolloutStrategy: cluster.RolloutStrategy{
				Type: cluster.All, All: &cluster.RolloutAll{RolloutConfig: cluster.RolloutConfig{ProgressDeadline: "None"}},
			}}},
		},
	}
}

// badRule sets a condition rule with invalid CEL.
func badRule(s *work.ManifestWorkReplicaSet) {
	s.Spec.ManifestWorkTemplate.ManifestConfigs = []work.ManifestConfigOption{{
		ResourceIdentifier: work.ResourceIdentifier{Resource: "configmaps", Name: "a"},
		ConditionRules:     []work.ConditionRule{{Type: work.CelConditionExpressionsType, Condition: "Ready", CelExpressions: []string{"object."}}},
	}}
}

func TestStorage(t *testing.T) {
	registrytest.Suite[*work.ManifestWorkReplicaSet]{
		Kind:           Kind,
		Valid:          replicaSet,
		Invalid:        []func(*work.ManifestWorkReplicaSet){func(s *work.ManifestWorkReplicaSet) { s.Name = strings.Repeat("a", 63) }, badRule},
		Change:         func(s *work.ManifestWorkReplicaSet) { s.Spec.CascadeDeletionPolicy = work.Foreground },
		InvalidChanges: []func(*work.ManifestWorkReplicaSet){func(s *work.ManifestWorkReplicaSet) { s.Spec.PlacementRefs = nil }, badRule},
		Status: func(s *work.ManifestWorkReplicaSet) {
			s.Status.Conditions = []metav1.Condition{
				{Type: "PlacementVerified", Status: "False", Reason: "PlacementDecisionEmpty", LastTransitionTime: metav1.Unix(1, 0)},
				{Type: "ManifestworkApplied", Status: "True", Reason: "AsExpected", LastTransitionTime: metav1.Unix(1, 0)},
			}
		},
		BadStatus:  func(s *work.ManifestWorkReplicaSet) { s.Status.Summary.Total = -1 },
		Columns:    "Name/0 Placement/0 Found/0 ManifestWorks/0 Applied/0 Age/1",
		Cells:      "web|PlacementDecisionEmpty|False|AsExpected|True|<unknown>",
		ShortNames: "mwrs",
	}.Run(t)
}

// TestAuthor: works of a set are created with the rights of its author, so only the server sets the author.
func TestAuthor(t *testing.T) {
	r := registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, nil)
	as := func(name string, groups ...string) context.Context {
		return request.WithUser(registrytest.Context(r), &user.DefaultInfo{
			Name: name, UID: "uid-" + name, Groups: groups, Extra: map[string][]string{"scopes": {"a", "b"}, user.CredentialIDKey: {"JTI=secret"}},
		})
	}
	wantAuthor := func(what string, s *work.ManifestWorkReplicaSet, name string, groups ...string) {
		t.Helper()
		want := author.Author{Username: name, UID: "uid-" + name, Groups: groups, Extra: map[string][]string{"scopes": {"a", "b"}}}
		var got author.Author
		record := s.Annotations[work.AuthorAnnotation]
		if err := json.Unmarshal([]byte(record), &got); err != nil || !reflect.DeepEqual(got, want) || strings.Contains(record, "secret") {
			t.Errorf("%s: %v, the author is %s, want %v", what, err, record, want)
		}
		if s.Annotations["mine"] != "kept" {
			t.Errorf("%s: other annotations are %v", what, s.Annotations)
		}
	}
	forge := func(s *work.ManifestWorkReplicaSet) {
		s.Annotations = map[string]string{work.AuthorAnnotation: `{"username":"admin","groups":["system:masters"]}`, "mine": "kept"}
	}

	s := replicaSet()
	forge(s)
	s = registrytest.Create(t, as("ann", "g"), r, s)
	wantAuthor("created with another author", s, "ann", "g")

	for name, c := range map[string]struct {
		change func(*work.ManifestWorkReplicaSet)
		update rest.Updater
	}{
		"forged":           {forge, r},
		"removed":          {func(s *work.ManifestWorkReplicaSet) { delete(s.Annotations, work.AuthorAnnotation) }, r},
		"labelled":         {func(s *work.ManifestWorkReplicaSet) { s.Labels = map[string]string{"a": "b"} }, r},
		"a finalizer":      {func(s *work.ManifestWorkReplicaSet) { s.Finalizers = []string{"example.com/a"} }, r},
		"a status":         {func(s *work.ManifestWorkReplicaSet) { s.Status.Summary.Total++; forge(s) }, r.Subresources["status"]},
		"spec by a status": {func(s *work.ManifestWorkReplicaSet) { s.Spec.CascadeDeletionPolicy = "x"; s.Status.Summary.Total++ }, r.Subresources["status"]},
	} {
		s = s.DeepCopy()
		c.change(s)
		updated, err := registrytest.Update(as("deputy"), c.update, s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s = updated
		wantAuthor(name, s, "ann", "g")
	}

	s = s.DeepCopy()
	forge(s)
	s.Spec.CascadeDeletionPolicy = work.Foreground
	s, err := registrytest.Update(as("bob"), r, s)
	if err != nil {
		t.Fatal(err)
	}
	wantAuthor("another spec", s, "bob")

	s = s.DeepCopy()
	s.Spec.CascadeDeletionPolicy = work.Background
	_, err = registrytest.Update(as("carl", strings.Repeat("g", 20_000)), r, s)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "fewer groups") {
		t.Errorf("a user with many groups: %v", err)
	}
	s, err = registrytest.Update(registrytest.Context(r), r, s)
	if err != nil || s.Annotations[work.AuthorAnnotation] != "" {
		t.Errorf("%v, without a user the author is %q", err, s.Annotations[work.AuthorAnnotation])
	}
}
