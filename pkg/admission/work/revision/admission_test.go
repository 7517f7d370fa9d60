// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/work/revision"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// sets are the replica sets in the store. The cache must not be read.
type sets struct {
	*testing.T
	set *work.ManifestWorkReplicaSet
	err error
}

func (s sets) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if options.ResourceVersion != "" {
		s.Error("a cache is asked")
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.set == nil || name != s.set.Name || request.NamespaceValue(ctx) != s.set.Namespace {
		return nil, apierrors.NewNotFound(work.Resource("manifestworkreplicasets"), name)
	}
	return s.set.DeepCopy(), nil
}

func template(name string) work.ManifestWorkSpec {
	return work.ManifestWorkSpec{Workload: work.ManifestsTemplate{Manifests: []work.Manifest{
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + name + `"}}`)}},
	}}}
}

func set() *work.ManifestWorkReplicaSet {
	s := &work.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1234", Generation: 3}}
	s.Spec.ManifestWorkTemplate = template("a")
	s.Status.Conditions = []metav1.Condition{{Type: work.ManifestWorkReplicaSetConditionPlacementRolledOut, Status: metav1.ConditionTrue, ObservedGeneration: 3}}
	return s
}

func made() *work.ManifestWorkReplicaSetRevision {
	return &work.ManifestWorkReplicaSetRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: work.RevisionName("web", "1234", 3)},
		Spec:       work.ManifestWorkReplicaSetRevisionSpec{ReplicaSet: "web", ReplicaSetUID: "1234", Revision: 3, ManifestWorkTemplate: template("a")},
	}
}

// TestAdmission_RevisionMatchesRolledOutTemplate: a user who rolls back to a forged revision, maybe an admin of all clusters, would be the
// author of its content.
func TestAdmission_RevisionMatchesRolledOutTemplate(t *testing.T) {
	type revisionOf = work.ManifestWorkReplicaSetRevision
	for name, c := range map[string]struct {
		set  func(*work.ManifestWorkReplicaSet)
		made func(*revisionOf)
		want string
	}{
		"as it is":                 {},
		"another template":         {made: func(r *revisionOf) { r.Spec.ManifestWorkTemplate = template("b") }, want: "another manifestWorkTemplate"},
		"no template":              {made: func(r *revisionOf) { r.Spec.ManifestWorkTemplate = work.ManifestWorkSpec{} }, want: "another manifestWorkTemplate"},
		"an executor":              {made: func(r *revisionOf) { r.Spec.ManifestWorkTemplate.Executor = &work.ManifestWorkExecutor{} }, want: "another manifestWorkTemplate"},
		"an earlier set":           {set: func(s *work.ManifestWorkReplicaSet) { s.UID = "5678" }, want: "another UID"},
		"a later generation":       {set: func(s *work.ManifestWorkReplicaSet) { s.Generation = 4 }, want: "generation 4, not 3"},
		"of another set":           {set: func(s *work.ManifestWorkReplicaSet) { s.Name = "other" }, want: "exists in the namespace"},
		"of another namespace":     {set: func(s *work.ManifestWorkReplicaSet) { s.Namespace = "other" }, want: "exists in the namespace"},
		"a set on its way out":     {set: func(s *work.ManifestWorkReplicaSet) { s.DeletionTimestamp = new(metav1.Now()) }, want: "being deleted"},
		"a set without conditions": {set: func(s *work.ManifestWorkReplicaSet) { s.Status.Conditions = nil }, want: "is not True"},
		"not rolled out":           {set: func(s *work.ManifestWorkReplicaSet) { s.Status.Conditions[0].Status = metav1.ConditionFalse }, want: "is not True"},
		"rolled out before":        {set: func(s *work.ManifestWorkReplicaSet) { s.Status.Conditions[0].ObservedGeneration = 2 }, want: "is not True"},
		"another name":             {made: func(r *revisionOf) { r.Name = "web" }, want: "the name must be web-3-"},
		"a generated name":         {made: func(r *revisionOf) { r.Name, r.GenerateName = "", "web-" }, want: "the name must be web-3-"},
	} {
		s, r := set(), made()
		if c.set != nil {
			c.set(s)
		}
		if c.made != nil {
			c.made(r)
		}
		p := revision.New()
		p.ReplicaSets = sets{T: t, set: s}
		err := p.Validate(t.Context(), attributes(r), nil)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "Secret") {
			t.Errorf("%s: the refusal tells of the template: %v", name, err)
		}
	}
}

func attributes(r *work.ManifestWorkReplicaSetRevision) admission.Attributes {
	return at.Request{Object: r, Group: work.GroupName, Resource: "manifestworkreplicasetrevisions"}.Attributes()
}

func TestAdmission_RejectsWithoutCache(t *testing.T) {
	p := revision.New()
	if err := p.Validate(t.Context(), attributes(made()), nil); !apierrors.IsInternalError(err) {
		t.Errorf("before it has them: %v", err)
	}
	p.ReplicaSets = sets{T: t, err: errors.New("no etcd")}
	if err := p.Validate(t.Context(), attributes(made()), nil); !apierrors.IsInternalError(err) {
		t.Errorf("when they cannot be read: %v", err)
	}
	other := at.Request{Object: set(), Group: work.GroupName, Resource: "manifestworkreplicasets"}.Attributes()
	if err := revision.New().Validate(t.Context(), other, nil); err != nil {
		t.Errorf("what is no revision: %v", err)
	}
}
