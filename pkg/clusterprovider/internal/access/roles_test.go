// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
)

// referring is a hub with requests for the Cluster blue, whose roles are in in.
type referring struct {
	*Reconciler
	t  *testing.T
	in client.WithWatch
	// lists counts the lists of the cluster, and down is the error that it returns.
	lists int
	down  error
	told  *events.FakeRecorder
}

func newReferring(t *testing.T, requests ...client.Object) *referring {
	r := &referring{t: t, told: events.NewFakeRecorder(100)}
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(requests...).WithStatusSubresource(requests...).Build()
	r.Reconciler = New(hub.Identity{Name: "p", Environment: "e"}, nil, server, server, r.told)
	r.in = interceptor.NewClient(fake.NewClientBuilder().WithScheme(rights.Scheme).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			r.lists++
			if r.down != nil {
				return r.down
			}
			return c.List(ctx, list, opts...)
		},
	})
	return r
}

func refersTo(name string, refs ...v1alpha1.RoleRef) *v1alpha1.AccessRequest {
	ar := request(name, "1")
	ar.Spec.Token = &v1alpha1.TokenConfig{Permissions: []v1alpha1.PermissionsRequest{{Name: "brought"}}, RoleRefs: refs}
	return ar
}

// looks reconciles a request, and returns the condition about its roles, and the events.
func (r *referring) looks(ar *v1alpha1.AccessRequest, maxAge time.Duration) (says string, told []string) {
	r.t.Helper()
	wanted, err := rights.Of(ar, r.Hash(ar))
	if err != nil {
		r.t.Fatal(err)
	}
	blue := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{UID: "blue"}}
	seen := r.roles.Check(r.t.Context(), &target.Target{Client: r.in}, blue, wanted, maxAge)
	if err := r.answers.Roles(r.t.Context(), ar, seen); err != nil {
		r.t.Fatal(err)
	}
	stored := &v1alpha1.AccessRequest{}
	if err := r.client.Get(r.t.Context(), client.ObjectKeyFromObject(ar), stored); err != nil {
		r.t.Fatal(err)
	}
	if condition := meta.FindStatusCondition(stored.Status.Conditions, clusterprovider.ConditionRoles); condition != nil {
		says = fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
	}
	for len(r.told.Events) > 0 {
		told = append(told, <-r.told.Events)
	}
	return says, told
}

func (r *referring) changes(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestRoles_ConditionFollowsCluster(t *testing.T) {
	viewer, typo := v1alpha1.RoleRef{Kind: "ClusterRole", Name: "view"}, v1alpha1.RoleRef{Kind: "ClusterRole", Name: "typo"}
	ar := refersTo("ann", viewer, typo, typo, v1alpha1.RoleRef{Kind: "Role", Namespace: "web", Name: "there"},
		v1alpha1.RoleRef{Kind: "Role", Namespace: "api", Name: "there"}, v1alpha1.RoleRef{Kind: "ClusterRole", Name: "brought"})
	r := newReferring(t, ar)
	view := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}
	r.changes(r.in.Create(t.Context(), view))
	r.changes(r.in.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "there"}}))
	const missing = "False RolesMissing: roles not found in the cluster, which grant no rights yet: "
	for _, step := range []struct {
		what   string
		change func() error
		want   string
		told   int
	}{
		{"at first", func() error { return nil }, missing + "ClusterRole typo, Role api/there", 1},
		{"again", func() error { return nil }, missing + "ClusterRole typo, Role api/there", 0},
		{"one comes", func() error {
			return r.in.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "api", Name: "there"}})
		}, missing + "ClusterRole typo", 0},
		{"the cluster does not respond", func() error { r.down = errors.New("out of reach"); return nil }, missing + "ClusterRole typo", 0},
		{"all are there", func() error {
			r.down = nil
			return r.in.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "typo"}})
		}, "True RolesFound: the cluster has all referenced roles", 1},
		{"one goes", func() error { return r.in.Delete(t.Context(), view) }, missing + "ClusterRole view", 1},
		{"it refers to none", func() error { ar.Spec.Token.RoleRefs = nil; return nil }, "", 0},
	} {
		r.changes(step.change())
		if got, told := r.looks(ar, 0); got != step.want || len(told) != step.told {
			t.Errorf("%s: %q, events %q", step.what, got, told)
		}
	}
}

func TestRoles_NoConditionWhenValid(t *testing.T) {
	ar := refersTo("ann", v1alpha1.RoleRef{Kind: "ClusterRole", Name: "view"})
	r := newReferring(t, ar)
	r.changes(r.in.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}))
	if got, told := r.looks(ar, 0); !strings.HasPrefix(got, "True") || len(told) > 0 {
		t.Errorf("%q, %q", got, told)
	}
}

func TestRoles_OneListPerCluster(t *testing.T) {
	var refs []v1alpha1.RoleRef
	for i := range 100 {
		refs = append(refs, v1alpha1.RoleRef{Kind: "ClusterRole", Name: fmt.Sprintf("r%02d", i)})
	}
	var requests []client.Object
	for i := range 20 {
		requests = append(requests, refersTo(fmt.Sprintf("ar%d", i), refs...))
	}
	r := newReferring(t, requests...)
	for _, ar := range requests {
		got, _ := r.looks(ar.(*v1alpha1.AccessRequest), time.Hour)
		if !strings.Contains(got, "ClusterRole r00, ") || !strings.HasSuffix(got, "ClusterRole r19 and 80 more") {
			t.Fatal(got)
		}
	}
	if r.lists != 1 {
		t.Errorf("%d lists for 20 requests", r.lists)
	}
	// Nor does each of them wait for a cluster that does not respond.
	r.roles, r.lists, r.down = target.Roles{}, 0, errors.New("out of reach")
	for _, ar := range requests {
		r.looks(ar.(*v1alpha1.AccessRequest), time.Hour)
	}
	if r.lists != 1 {
		t.Errorf("%d lists of a cluster that does not respond", r.lists)
	}
}
