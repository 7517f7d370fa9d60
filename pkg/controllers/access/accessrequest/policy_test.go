// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/accesspolicy"
)

func TestReconcile_EnforcesPolicy(t *testing.T) {
	const onlyView = "roleRefs.all(r, r.name == 'view') && permissions.size() == 0"
	const ownCluster = "clusterRequests.exists(r, r.metadata.namespace == request.metadata.namespace && r.spec.purpose == 'mcp')"
	admin := func(r *v1alpha1.AccessRequest) {
		r.Spec.Token.RoleRefs = []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "cluster-admin"}}
	}
	view := func(r *v1alpha1.AccessRequest) {
		r.Spec.Token.RoleRefs = []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}}
	}
	prepared := func(r *v1alpha1.AccessRequest) {
		labelled("asdf", "default")(r)
		phase("Pending", 1)(r)
		r.Status.Conditions = []metav1.Condition{{Type: "Prepared", Status: "True", Reason: "Prepared", ObservedGeneration: 1, LastTransitionTime: metav1.Now()}}
	}
	for name, test := range map[string]struct {
		rule   string
		change []change
		holder string
		phase  string
		reason string
		again  bool
	}{
		"what is allowed":                  {rule: onlyView, change: []change{view}, phase: "Pending", reason: "Prepared"},
		"no role, so no allowed one":       {rule: onlyView, phase: "Denied", reason: "DeniedByPolicy"},
		"what is not":                      {rule: onlyView, change: []change{admin}, phase: "Denied", reason: "DeniedByPolicy"},
		"a Cluster of another namespace":   {rule: "cluster.metadata.namespace == request.metadata.namespace", phase: "Denied", reason: "DeniedByPolicy"},
		"a namespace that is trusted":      {rule: "namespaceObject.metadata.labels['trusted'] == 'true'", phase: "Pending", reason: "Prepared"},
		"labels of one's own":              {rule: onlyView, change: []change{admin, labelled("asdf", "default")}, phase: "Denied", reason: "DeniedByPolicy"},
		"labels of one's own, a bit later": {rule: onlyView, change: []change{admin, labelled("asdf", "default"), phase("Pending", 1)}, phase: "Denied", reason: "DeniedByPolicy"},
		"something else after all":         {rule: onlyView, change: []change{prepared, admin, generation(2)}, phase: "Denied", reason: "DeniedByPolicy"},
		"something else after the grant":   {rule: onlyView, change: []change{prepared, phase("Granted", 1), admin, generation(2)}, phase: "Denied", reason: "DeniedByPolicy"},
		"a Cluster of one's own":           {rule: ownCluster, holder: "bar", phase: "Pending", reason: "Prepared"},
		"a Cluster of somebody else":       {rule: ownCluster, holder: "foo", phase: "Denied", reason: "DeniedByPolicy"},
		"a Cluster of nobody":              {rule: ownCluster, phase: "Denied", reason: "DeniedByPolicy"},
		"a Cluster of somebody else, behind a request of one's own": {rule: ownCluster + " || request.spec.requestRef.namespace == 'bar'",
			change: []change{func(r *v1alpha1.AccessRequest) {
				r.Spec.RequestRef = &v1alpha1.ObjectReference{Namespace: "bar", Name: "mine"}
			}}, holder: "foo", phase: "Pending", reason: "ConfigurationProblem", again: true},
		"what one says of oneself": {rule: "request.metadata.labels['team'] == 'admins' || request.metadata.annotations['team'] == 'admins' || request.status.phase == 'Trusted'",
			change: []change{func(r *v1alpha1.AccessRequest) {
				r.Labels, r.Annotations = map[string]string{"team": "admins"}, map[string]string{"team": "admins"}
			}}, phase: "Pending", reason: "ConfigurationProblem", again: true},
		"a rule that cannot be evaluated":   {rule: "request.spec.nothing == 1", phase: "Pending", reason: "ConfigurationProblem", again: true},
		"such a rule, and labels one's own": {rule: "request.spec.nothing == 1", change: []change{labelled("asdf", "default")}, reason: "ConfigurationProblem", again: true},
	} {
		t.Run(name, func(t *testing.T) {
			policy, errs := accesspolicy.Compile(&accesspolicy.Spec{AccessRequests: []accesspolicy.Rule{{Expression: test.rule}}}, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bar", Labels: map[string]string{"trusted": "true"}}}
			held, request := cluster(), &v1alpha1.ClusterRequest{}
			request.Namespace, request.Name, request.UID, request.Spec.Purpose = "nobody", "r", "uid", "mcp"
			if test.holder != "" {
				request.Namespace, held.Finalizers = test.holder, []string{request.FinalizerForCluster()}
			}
			f := newFixture(t, profile(), held, request, namespace, access("a", append([]change{toCluster}, test.change...)...))
			f.policy = func() *accesspolicy.Policy { return policy }
			key := client.ObjectKey{Namespace: "bar", Name: "a"}
			for range 2 {
				if _, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); (err != nil) != test.again {
					t.Fatal(err)
				}
			}
			got := &v1alpha1.AccessRequest{}
			if err := f.Get(t.Context(), key, got); err != nil {
				t.Fatal(err)
			}
			condition := meta.FindStatusCondition(got.Status.Conditions, "Prepared")
			if got.Status.Phase != test.phase || condition == nil || condition.Reason != test.reason {
				t.Errorf("phase %q, condition %+v", got.Status.Phase, condition)
			}
			if want := test.reason == "Prepared"; v1alpha1.IsClusterProviderResponsibleForAccessRequest(got, "") != want {
				t.Errorf("a provider is responsible: %t", !want)
			}
			if len(f.writes) > 3 || test.reason != "Prepared" && len(f.writes) != 1 {
				t.Errorf("wrote %s", strings.Join(f.writes, ", "))
			}
		})
	}
}
