// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdeletion

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// requests are all existing requests.
type requests struct {
	rest.Lister
	t     *testing.T
	items []openmcp.AccessRequest
	err   error
}

func (r *requests) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	if _, ok := ctx.Deadline(); !ok || request.NamespaceValue(ctx) != "" || options.ResourceVersion != "0" {
		r.t.Error("lists without a deadline, in one namespace, or past the cache")
	}
	list := &openmcp.AccessRequestList{}
	for _, item := range r.items {
		if options.FieldSelector.Matches(fields.Set{
			"spec.clusterRef.name": item.Spec.ClusterRef.Name, "spec.clusterRef.namespace": item.Spec.ClusterRef.Namespace,
		}) {
			list.Items = append(list.Items, item)
		}
	}
	return list, r.err
}

func accessTo(namespace, cluster string, names ...string) (items []openmcp.AccessRequest) {
	for _, name := range names {
		in, name, _ := strings.Cut(name, "/")
		items = append(items, openmcp.AccessRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name},
			Spec:       openmcp.AccessRequestSpec{ClusterRef: &openmcp.ObjectReference{Namespace: namespace, Name: cluster}},
		})
	}
	return items
}

// visible allows the user to list accessrequests in namespaces, and counts the checks.
type visible struct {
	at.Authorizer
	namespaces string
	asked      int
}

func (v *visible) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	v.asked++
	if a.GetVerb() == "list" && a.GetAPIGroup() == openmcp.GroupName && a.GetResource() == "accessrequests" && a.IsResourceRequest() &&
		a.GetUser().GetName() == at.User.Name && strings.Contains(v.namespaces, a.GetNamespace()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func warn(t *testing.T, r *requests, v *visible, resource string, old runtime.Object) at.Warnings {
	t.Helper()
	p := New()
	p.SetAuthorizer(v)
	if r != nil {
		r.t = t
		p.AccessRequests = r
	}
	gv := openmcp.SchemeGroupVersion
	gv.Version = "v1alpha1"
	a := admission.NewAttributesRecord(nil, old, gv.WithKind("x"), "ns", "", gv.WithResource(resource), "",
		admission.Delete, &metav1.DeleteOptions{}, false, at.User)
	if !p.Handles(admission.Delete) || p.Handles(admission.Update) || p.Handles(admission.Create) {
		t.Error("handles other things than deletions, or not these")
	}
	var warnings at.Warnings
	if err := p.Validate(warning.WithWarningRecorder(t.Context(), &warnings), a, nil); err != nil {
		t.Fatalf("refused: %v", err)
	}
	return warnings
}

func cluster(namespace, name string) *openmcp.Cluster {
	return &openmcp.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Finalizers: []string{"access.clusters.openmcp.cloud/requests"},
	}}
}

func TestValidate_NamesVisibleRequests(t *testing.T) {
	items := accessTo("ns", "c", "a/one", "b/two", "a/three")
	items = append(items, accessTo("other", "c", "a/elsewhere")...)
	items = append(items, accessTo("ns", "d", "a/another")...)
	for namespaces, want := range map[string]string{
		"a b": "3 AccessRequest(s), and remains until they are gone: a/one, b/two, a/three",
		"a":   "3 AccessRequest(s), and remains until they are gone: a/one, a/three, 1 more",
		"":    "3 AccessRequest(s), and remains until they are gone: 3 more",
	} {
		v := &visible{namespaces: namespaces}
		if namespaces == "" {
			v.namespaces = "-"
		}
		got := warn(t, &requests{items: items}, v, "clusters", cluster("ns", "c"))
		if len(got) != 1 || !strings.HasPrefix(got[0], `the Cluster "c" has `) || !strings.HasSuffix(got[0], want) || v.asked != 2 {
			t.Errorf("who may see %q: %q, after %d questions", namespaces, got, v.asked)
		}
	}
}

func TestValidate_ReportsWhetherClusterWaits(t *testing.T) {
	c := cluster("ns", "c")
	c.Finalizers = []string{"example.com/other"}
	got := warn(t, &requests{items: accessTo("ns", "c", "a/one")}, &visible{namespaces: "a"}, "clusters", c)
	if len(got) != 1 || got[0] != `the Cluster "c" has 1 AccessRequest(s), whose access ends: a/one` {
		t.Errorf("got %q", got)
	}
}

func TestValidate_NamesLimitedNumber(t *testing.T) {
	var names, scattered []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("a/r%d", i))
		scattered = append(scattered, fmt.Sprintf("n%d/r", i))
	}
	got := warn(t, &requests{items: accessTo("ns", "c", names...)}, &visible{namespaces: "a"}, "clusters", cluster("ns", "c"))
	if len(got) != 1 || !strings.HasSuffix(got[0], "a/r0, a/r1, a/r2, a/r3, a/r4, 995 more") {
		t.Errorf("got %q", got)
	}
	v := &visible{namespaces: "-"}
	got = warn(t, &requests{items: accessTo("ns", "c", scattered...)}, v, "clusters", cluster("ns", "c"))
	if len(got) != 1 || !strings.HasSuffix(got[0], ": 1000 more") || v.asked != 5 {
		t.Errorf("got %q after %d questions", got, v.asked)
	}
}

func TestValidate_NoWarningOtherwise(t *testing.T) {
	items := accessTo("ns", "c", "a/one")
	for what, got := range map[string]at.Warnings{
		"a cluster that nobody has access to": warn(t, &requests{items: items}, &visible{}, "clusters", cluster("ns", "d")),
		"a request":                           warn(t, &requests{items: items}, &visible{}, "accessrequests", &openmcp.AccessRequest{}),
		"a collection":                        warn(t, &requests{items: items}, &visible{}, "clusters", nil),
		"what cannot be counted":              warn(t, &requests{items: items, err: errors.New("no")}, &visible{}, "clusters", cluster("ns", "c")),
		"a server that is starting":           warn(t, nil, &visible{}, "clusters", cluster("ns", "c")),
	} {
		if len(got) > 0 {
			t.Errorf("%s: warned %q", what, got)
		}
	}
}
