// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgetest"
)

// asAgent enables the feature gate, with an author of the policy and its service who has only these permissions.
func asAgent(f *fixture, author string, allows ...string) (asked *[]string) {
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) {
		p.Annotations = map[string]string{edgev1alpha1.AuthorAnnotation: author}
	})
	f.serviceBy(author)
	f.settle() // applies the new generation of the service while the gate is off
	asked = &[]string{}
	f.gate = true
	f.Allows = func(s *authorizationv1.SubjectAccessReviewSpec) bool {
		a := s.ResourceAttributes
		q := fmt.Sprintf("%s: %s %s/%s %s in %q", s.User, a.Verb, a.Resource, a.Subresource, a.Name, a.Namespace)
		*asked = append(*asked, q)
		return slices.Contains(allows, q)
	}
	f.restart()
	return asked
}

// serviceBy sets the author of the service.
func (f *fixture) serviceBy(author string) {
	s := &edgev1alpha1.EdgeService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: edge.ServiceName("web", "1.0.0", "amd64")}}
	edgetest.Change(f.FakeHub, s, func(s *edgev1alpha1.EdgeService) {
		s.Annotations = map[string]string{edgev1alpha1.AuthorAnnotation: author}
	})
}

// toGreen has the service delivered into a different namespace.
func toGreen(f *fixture) {
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ClusterNamespace = "green" })
	edgetest.Change(f.FakeHub, f.placement(), func(p *edgev1alpha1.EdgePlacement) { p.Spec.Services[0].TargetNamespace = "green" })
}

// The agent creates the objects of an edge service: without the check, that would be a way for an author who may not have it do so.
func TestAttack_EdgeServiceWithoutAgentRight(t *testing.T) {
	const ann, inAll = `{"username":"ann"}`, `ann: execute-as manifestworks/ system:serviceaccount::klusterlet-work-sa in ""`
	for name, test := range map[string]struct {
		author string
		allows []string
		made   bool
	}{
		"everywhere":           {ann, []string{inAll}, true},
		"in the namespace":     {ann, []string{strings.Replace(inAll, `""`, `"one"`, 1)}, true},
		"in the set":           {ann, []string{`ann: execute-as managedclustersets/manifestworks set:system:serviceaccount::klusterlet-work-sa in ""`}, true},
		"none":                 {ann, nil, false},
		"in another namespace": {ann, []string{strings.Replace(inAll, `""`, `"shop"`, 1)}, false},
		"in another set":       {ann, []string{`ann: execute-as managedclustersets/manifestworks other:system:serviceaccount::klusterlet-work-sa in ""`}, false},
		"of another user":      {`{"username":"eve"}`, []string{inAll}, false},
		"of nobody":            {"", []string{inAll}, false},
		"of a group alone":     {`{"groups":["system:masters"]}`, []string{inAll}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			asAgent(f, test.author, test.allows...)
			toGreen(f)
			f.settle()
			if green := slices.ContainsFunc(f.work().Spec.Workload.Manifests, func(m workv1.Manifest) bool {
				return strings.Contains(string(m.Raw), `"green"`)
			}); green != test.made {
				t.Errorf("the work is written: %t, want %t", green, test.made)
			}
			if test.made {
				f.state("Delivering Delivering")
				return
			}
			// What was delivered before stays, and is named.
			f.state("Pending NotAllowed")
			if s := f.placement().Status; s.Work != f.work().Name || test.author == ann && !strings.Contains(s.Message, `user "ann"`) {
				t.Errorf("%+v", s)
			}
			// No work is created at first, either.
			if err := f.Delete(t.Context(), f.work()); err != nil {
				t.Fatal(err)
			}
			f.state("Pending NotAllowed")
			if n := len(f.works()); n > 0 {
				t.Errorf("%d works", n)
			}
		})
	}
}

// TestAttack_EdgeServiceWithoutAuthorRight verifies that the permission of the author of an EdgeService is checked: a user who may change
// one determines what the policies of other authors deliver.
func TestAttack_EdgeServiceWithoutAuthorRight(t *testing.T) {
	const right = `ann: execute-as manifestworks/ system:serviceaccount::klusterlet-work-sa in ""`
	for name, test := range map[string]struct{ author, want string }{
		"another user":            {`{"username":"eve"}`, `user "eve", the author of the spec of EdgeService`},
		"no record":               {"", "unknown author of the spec of EdgeService"},
		"a record without a user": {`{"groups":["system:masters"]}`, "unknown author of the spec of EdgeService"},
		"the same with a new uid": {`{"username":"ann","uid":"1"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			asAgent(f, `{"username":"ann"}`, right)
			f.serviceBy(test.author)
			if err := f.Delete(t.Context(), f.work()); err != nil {
				t.Fatal(err)
			}
			f.restart()
			f.settle()
			if message := f.placement().Status.Message; test.want != "" && (len(f.works()) > 0 || !strings.Contains(message, test.want)) {
				t.Errorf("%d works are written, and the message is %q, expected %q", len(f.works()), message, test.want)
			}
			if test.want == "" && len(f.works()) != 1 {
				t.Errorf("%d works, expected one: %s", len(f.works()), f.placement().Status.Message)
			}
		})
	}
}

// Without the gate no permission is checked, and with it only before something is written.
func TestRights_CheckedBeforeWrites(t *testing.T) {
	f := newFixture(t)
	asked := asAgent(f, `{"username":"ann"}`)
	f.settle()
	if len(*asked) > 0 {
		t.Errorf("asked %q, and there was nothing to write", *asked)
	}
	f.state("Delivering Delivering")
}
