// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/executor"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// by has a spec brought by the account of the test.
func (w *world) by(spec workv1.ManifestWorkSpec) workv1.ManifestWorkSpec {
	spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: w.namespace, Name: "ex"}}}
	return spec
}

// allow gives the account of the test rights in the test's namespace: those, and no others. It waits until the cluster knows those.
func (w *world) allow(rules ...rbacv1.PolicyRule) {
	w.Helper()
	ctx, roles := w.Context(), kubernetes.NewForConfigOrDie(worktest.Config(w.T)).RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "ex"}, Rules: rules}
	if _, err := roles.Roles(w.namespace).Update(ctx, role, metav1.UpdateOptions{}); err != nil { // this makes one, too
		w.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "ex"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "ex"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: "ex"}}}
	if _, err := roles.RoleBindings(w.namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	reviews := kubernetes.NewForConfigOrDie(worktest.Config(w.T)).AuthorizationV1().SubjectAccessReviews()
	for _, rule := range rules {
		name := ""
		if len(rule.ResourceNames) > 0 {
			name = rule.ResourceNames[0]
		}
		worktest.Eventually(w.T, "the account may do that", func() bool {
			review, err := reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + w.namespace + ":ex", ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: w.namespace, Group: rule.APIGroups[0], Resource: rule.Resources[0], Name: name, Verb: rule.Verbs[len(rule.Verbs)-1]},
			}}, metav1.CreateOptions{})
			if err != nil {
				w.Fatal(err)
			}
			return review.Status.Allowed
		})
	}
}

func rule(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	if name != "" {
		rule.ResourceNames = []string{name}
	}
	return rule
}

// all are the verbs that an executor needs.
var all = []string{"create", "update", "patch", "get", "delete"}

func TestExecutor(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	w.put("a", w.by(w.spec(w.configMap("cm1", "{}"), w.configMap("cm2", "{}"))))
	w.eventuallySaid("a", workv1.WorkApplied, "False: False False")
	w.eventuallySaid("a", workv1.WorkAvailable, "Unknown: Unknown Unknown")
	want := "Failed to apply manifest: not allowed to apply the resource  configmaps, " + w.namespace + " cm1, will try again in 1m0s"
	if got := w.message("a", 0, workv1.ManifestApplied); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	w.allow(rule("", "configmaps", "cm1", all...))
	// A change of the spec is tried at once.
	w.put("a", w.by(w.spec(w.configMap("cm1", "{k: v}"), w.configMap("cm2", "{k: v}"))))
	w.eventuallySaid("a", workv1.WorkApplied, "False: True False")
	if w.get(w.target("cm1")) == nil || w.get(w.target("cm2")) != nil {
		t.Error("not what was allowed, or more, was made")
	}
	if got := w.get(w.target("cm1")).GetManagedFields()[0].Manager; got != apply.DefaultManager {
		t.Errorf("it was made by %s", got)
	}

	t.Log("Who may not delete may not have what is to be deleted")
	w.allow(rule("", "configmaps", "", all[:4]...))
	spec := w.by(w.spec(w.configMap("cm3", "{}"), w.configMap("cm4", "{}")))
	w.put("b", spec)
	w.eventuallySaid("b", workv1.WorkApplied, "False: False False")
	spec.DeleteOption = orphaning(workv1.DeletePropagationPolicyTypeSelectivelyOrphan, w.namespace, "cm3")
	w.put("b", spec)
	w.eventuallySaid("b", workv1.WorkApplied, "False: True False")
	spec.DeleteOption = orphaning(workv1.DeletePropagationPolicyTypeOrphan, "")
	w.put("b", spec)
	w.eventuallySaid("b", workv1.WorkApplied, "True: True True")
}

// TestExecutor_Escalation: an account cannot give rights that it does not have.
func TestExecutor_Escalation(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	w.allow(rule(rbacv1.GroupName, "roles", "", all...))
	role := w.spec("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: " + w.namespace +
		"}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}")
	w.put("a", w.by(role))
	w.eventuallySaid("a", workv1.WorkApplied, "False: False")
	if got := w.message("a", 0, workv1.ManifestApplied); !strings.HasSuffix(got, "error: permission escalation") {
		t.Errorf("it says %q", got)
	}
	w.allow(rule(rbacv1.GroupName, "roles", "", append(all, "escalate")...))
	w.put("b", w.by(role))
	w.eventuallySaid("b", workv1.WorkApplied, "True: True")
}

// TestExecutor_IsWhoWrites: should an account lose a right between the question and the write, the write is refused.
func TestExecutor_IsWhoWrites(t *testing.T) {
	w := newWorld(t)
	w.allow(rule("", "configmaps", "", all...))
	executors, err := executor.New(worktest.Config(t), "")
	if err != nil {
		t.Fatal(err)
	}
	account := w.by(workv1.ManifestWorkSpec{}).Executor.Subject.ServiceAccount
	m := apply.Manifest{Object: worktest.Parse(w.configMap("cm", "{}")), Target: w.target("cm")}
	var client *apply.Applier
	worktest.Eventually(t, "it may", func() bool {
		way, err := executors.For(t.Context(), account, executor.Access{Manifest: m, Delete: true})
		client = &apply.Applier{Client: way.Client, Owner: apply.Owner{Name: "x", UID: "x"}}
		return err == nil
	})
	w.allow()
	worktest.Eventually(t, "it may not any more", func() bool {
		_, err := executors.For(t.Context(), account, executor.Access{Manifest: m})
		return err != nil
	})
	if _, err := client.Apply(t.Context(), m, ""); err == nil || !strings.Contains(err.Error(), "system:serviceaccount:"+w.namespace+":ex") {
		t.Errorf("it was written: %v", err)
	}
}
