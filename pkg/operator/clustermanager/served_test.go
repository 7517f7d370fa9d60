// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// answering is a cluster whose discovery returns these errors, and none for other APIs.
type answering struct {
	discovery.ServerResourcesInterfaceWithContext
	errors map[string]error
	asked  []string
}

func (a *answering) ServerResourcesForGroupVersionWithContext(_ context.Context, of string) (*metav1.APIResourceList, error) {
	a.asked = append(a.asked, of)
	if err := a.errors[of]; err != nil {
		return nil, err
	}
	return &metav1.APIResourceList{}, nil
}

func apiServiceOf(group, version, available string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": version + "." + group},
		"spec":     map[string]any{"group": group, "version": version, "caBundle": "Q0E="},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": available, "message": "no endpoints"}}},
	}}
	o.SetGroupVersionKind(apiServices.GroupVersionKind)
	return o
}

// TestAvailable_WhenHubResponds: a kube-apiserver marks an APIService as available before it passes requests on. Until it does, the hub is not
// available, and the check is repeated.
func TestAvailable_WhenHubResponds(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	unavailable := apierrors.NewServiceUnavailable("not yet")
	for name, test := range map[string]struct {
		errors map[string]error
		second string // Available of the second APIService
		before metav1.ConditionStatus
		asked  []string
		says   string // why Available is False; empty if it is True
		again  bool
	}{
		"it answers":        {second: "True", before: "False", asked: []string{"a.io/v1", "b.io/v2"}},
		"it was never told": {second: "True", asked: []string{"a.io/v1", "b.io/v2"}},
		"the second does not answer": {errors: map[string]error{"b.io/v2": unavailable}, second: "True", before: "False",
			asked: []string{"a.io/v1", "b.io/v2"}, says: "The hub does not serve v2.b.io: asking for the API b.io/v2 of the hub: not yet", again: true},
		"the first is not known": {errors: map[string]error{"a.io/v1": apierrors.NewNotFound(schema.GroupResource{}, "")}, second: "True", before: "False",
			asked: []string{"a.io/v1"}, says: "The hub does not serve v1.a.io", again: true},
		"it may not be asked": {errors: map[string]error{"a.io/v1": apierrors.NewForbidden(schema.GroupResource{}, "", nil)}, second: "True", before: "False",
			asked: []string{"a.io/v1", "b.io/v2"}},
		"it is available":      {errors: map[string]error{"a.io/v1": unavailable}, second: "True", before: "True"},
		"one is not available": {errors: map[string]error{"a.io/v1": unavailable}, second: "False", before: "False", says: "The hub does not serve v2.b.io: no endpoints"},
	} {
		t.Run(name, func(t *testing.T) {
			cm := detached("hub")
			if test.before != "" {
				cm.Status.Conditions = []metav1.Condition{{Type: operatorv1.ConditionClusterManagerAvailable, Status: test.before}}
			}
			services := []*unstructured.Unstructured{apiServiceOf("a.io", "v1", "True"), apiServiceOf("b.io", "v2", test.second)}
			hub := &answering{errors: test.errors}
			c := interceptor.NewClient(nil, interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					for _, o := range services {
						list.(*unstructured.UnstructuredList).Items = append(list.(*unstructured.UnstructuredList).Items, *o)
					}
					return nil
				},
			})
			owner := ownerOf(cm, "management")
			for _, o := range services {
				o.SetLabels(owner.Labels)
			}
			p := &pass{
				reconciler: &reconciler{Options: Options{Clock: clocktesting.NewFakePassiveClock(now)}},
				cm:         cm, plan: &plan{services: services},
				hub: newSide("hub", c, kinds, owner, func(err error) string { return err.Error() }),
			}
			p.hub.discovery = hub
			for _, name := range []string{deploy.APIServer, deploy.Manager} {
				p.pods = append(p.pods, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: appsv1.DeploymentStatus{AvailableReplicas: 1}})
			}
			if err := p.observe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(hub.asked, test.asked) {
				t.Errorf("it was asked for %q, not %q", hub.asked, test.asked)
			}
			if says := p.waitsFor(); test.says == "" && says != "" || !strings.HasPrefix(says, test.says) {
				t.Errorf("it says %q, not %q", says, test.says)
			}
			if want := now.Add(servedInterval); test.again && !p.next.Equal(want) || !test.again && !p.next.IsZero() {
				t.Errorf("the next look is at %s", p.next)
			}
		})
	}
}
