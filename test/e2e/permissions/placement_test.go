// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestPlacements_NamespaceAdminCannotWriteDecisions verifies that Kubernetes' own roles have the rights on placements by aggregation, and no
// rights to write decisions or scores.
func TestPlacements_NamespaceAdminCannotWriteDecisions(t *testing.T) {
	namespace, elsewhere := harness.NewNamespace(t), harness.NewNamespace(t)
	create, update := metav1.CreateOptions{}, metav1.UpdateOptions{}
	admin := harness.Admin(t)
	for role, writes := range map[string]bool{"admin": true, "edit": true, "view": false} {
		t.Run(role, func(t *testing.T) {
			who := harness.Unique(role)
			harness.Must(harness.Kube(t, harness.Hub(t).AdminConfig()).RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: who},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: who}},
			}, create))(t)
			client := harness.Ours(t, harness.Hub(t).UserConfig(who))
			placements, decisions := client.ClusterV1beta1().Placements(namespace), client.ClusterV1beta1().PlacementDecisions(namespace)
			scores := client.ClusterV1alpha1().AddOnPlacementScores(namespace)
			// Roles are aggregated one after the other, those of view last for an admin.
			for what, list := range map[string]func(context.Context) error{
				"placements": func(ctx context.Context) error { _, err := placements.List(ctx, metav1.ListOptions{}); return err },
				"decisions":  func(ctx context.Context) error { _, err := decisions.List(ctx, metav1.ListOptions{}); return err },
				"scores":     func(ctx context.Context) error { _, err := scores.List(ctx, metav1.ListOptions{}); return err },
			} {
				harness.Eventually(t, "the right of "+who+" to list "+what, func(ctx context.Context) (bool, error) {
					err := list(ctx)
					return err == nil, err
				})
			}

			placement := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: who}}
			_, err := placements.Create(t.Context(), placement, create)
			if writes != (err == nil) || !writes && !apierrors.IsForbidden(err) {
				t.Errorf("a placement: got %v", err)
			}
			_, err = client.ClusterV1beta1().Placements(elsewhere).Create(t.Context(), placement, create)
			harness.WantForbidden(t, err)
			if !writes {
				harness.Must(admin.ClusterV1beta1().Placements(namespace).Create(t.Context(), placement, create))(t)
			}
			explain := func(namespace string) error {
				return client.ClusterV1beta1().RESTClient().Get().Namespace(namespace).Resource("placements").Name(who).SubResource("explain").
					Do(t.Context()).Into(&v1beta1.PlacementExplanation{})
			}
			if err := explain(namespace); err != nil {
				t.Errorf("an explanation: got %v", err)
			}
			harness.WantForbidden(t, explain(elsewhere))
			_, err = placements.UpdateStatus(t.Context(), placement, update)
			harness.WantForbidden(t, err)

			decision := &v1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: who, Labels: map[string]string{v1beta1.PlacementLabel: who}}}
			_, err = decisions.Create(t.Context(), decision, create)
			harness.WantForbidden(t, err)
			there := harness.Must(admin.ClusterV1beta1().PlacementDecisions(namespace).Create(t.Context(), decision, create))(t)
			there.Status.Decisions = []v1beta1.ClusterDecision{{ClusterName: "of-no-set-of-theirs"}}
			_, err = decisions.UpdateStatus(t.Context(), there, update)
			harness.WantForbidden(t, err)
			harness.WantForbidden(t, decisions.Delete(t.Context(), who, metav1.DeleteOptions{}))

			_, err = scores.Create(t.Context(), &v1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Name: who}}, create)
			harness.WantForbidden(t, err)
			_, err = client.ClusterV1alpha1().ClusterClaims().Create(t.Context(), &v1alpha1.ClusterClaim{
				ObjectMeta: metav1.ObjectMeta{Name: who}, Spec: v1alpha1.ClusterClaimSpec{Value: "x"}}, create)
			harness.WantForbidden(t, err)
		})
	}
}
