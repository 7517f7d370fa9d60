// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// followsRoles creates a role that a request references, and deletes it.
func (p *providing) followsRoles(t *testing.T) {
	ar := p.request(t, "hopeful", p.cluster, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer, {Kind: "ClusterRole", Name: "later"}}})
	secret := p.granted(t, ar)
	says := func(reason, message string) {
		t.Helper()
		p.look(t, ar)
		harness.Eventually(t, ar.Name+" says "+reason, func(ctx context.Context) (bool, error) {
			if err := p.client.Get(ctx, client.ObjectKeyFromObject(ar), ar); err != nil {
				return false, err
			}
			condition := meta.FindStatusCondition(ar.Status.Conditions, "RolesFound")
			if condition == nil || condition.Reason != reason || !strings.Contains(condition.Message, message) {
				p.look(t, ar) // the list of roles may be stale for some seconds
				return false, fmt.Errorf("%+v", ar.Status)
			}
			return true, nil
		})
	}
	says("RolesMissing", "ClusterRole later")
	if out := string(harness.Must(p.hub.Kubectl(t.Context(), "get", "ar", ar.Name, "-n", ar.Namespace).CombinedOutput())(t)); !strings.Contains(out, "RolesMissing") {
		t.Errorf("kubectl shows\n%s", out)
	}
	role := harness.Must(p.target.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: harness.Named("later")}, metav1.CreateOptions{}))(t)
	says("RolesFound", "all referenced roles")
	if err := p.target.RbacV1().ClusterRoles().Delete(t.Context(), role.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	says("RolesMissing", "ClusterRole later")
	if again := p.granted(t, ar); again.ResourceVersion != secret.ResourceVersion {
		t.Error("the access was given anew")
	}
	p.delete(t, ar)
	p.awaitGone(t, ar)
}
