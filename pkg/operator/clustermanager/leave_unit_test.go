// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// TestNothingApplied_DeletesWithoutSource: a ClusterManager is deleted without the rights of an admin if nothing was created for it, but not if
// anything indicates otherwise.
func TestNothingApplied_DeletesWithoutSource(t *testing.T) {
	for name, test := range map[string]struct {
		cm       func(*operatorv1.ClusterManager)
		has      bool
		others   bool
		refused  string // the kind whose objects may not be listed; all that require an admin if empty
		with     error
		expected bool
	}{
		"nothing":             {expected: true},
		"objects of another":  {others: true, expected: true},
		"one kind is refused": {refused: "ClusterRoleList", expected: true},
		"a Deployment":        {has: true},
		"it was begun":        {cm: func(cm *operatorv1.ClusterManager) { cm.Annotations = map[string]string{annotationHub: "1"} }},
		"it was applied": {cm: func(cm *operatorv1.ClusterManager) {
			setCondition(cm, operatorv1.ConditionClusterManagerApplied, true, "Applied", "")
		}},
		"it is detached":              {cm: func(cm *operatorv1.ClusterManager) { cm.Spec.DeployOption.Mode = operatorv1.InstallModeDetached }},
		"nothing is refused":          {refused: "none"},
		"the cluster does not answer": {with: errors.New("no route to host")},
		"not even what is visible":    {refused: "DeploymentList"},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "hub"}}
			if test.cm != nil {
				test.cm(cm)
			}
			owner := ownerOf(cm, "1")
			objects := []client.Object{}
			if test.has {
				objects = append(objects, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Labels: owner.Labels}})
			}
			if test.others {
				objects = append(objects, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Labels: map[string]string{operatorv1.LabelClusterManager: "hub"}}})
			}
			c := fake.NewClientBuilder().WithScheme(kubescheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					listed := list.GetObjectKind().GroupVersionKind().Kind
					onManagement := len(kindsWhere(func(k kind) bool { return k.onManagement && k.Kind+"List" == listed })) > 0
					switch {
					case listed == test.refused || test.refused == "" && !onManagement:
						if test.with != nil {
							return test.with
						}
						return apierrors.NewForbidden(schema.GroupResource{Resource: listed}, "", nil)
					case listed == "APIServiceList":
						return nil
					}
					return c.List(ctx, list, options...)
				}}).Build()
			own := newSide("cluster", c, kinds, owner, explainOwn)
			if got := nothingApplied(t.Context(), cm, own); got != test.expected {
				t.Errorf("it is %t", got)
			}
		})
	}
}
