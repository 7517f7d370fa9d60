// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/executor"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// by sets the account of the test as the executor of a spec.
func (w *world) by(spec workv1.ManifestWorkSpec) workv1.ManifestWorkSpec {
	spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: w.namespace, Name: "ex"}}}
	return spec
}

// allow replaces the rights of the test's account in the test's namespace. It waits until the cluster has observed them.
func (w *world) allow(rules ...rbacv1.PolicyRule) {
	w.Helper()
	ctx, roles := w.Context(), kubernetes.NewForConfigOrDie(worktest.Config(w.T)).RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "ex"}, Rules: rules}
	if _, err := roles.Roles(w.namespace).Update(ctx, role, metav1.UpdateOptions{}); err != nil { // this creates one, too
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
	// A change of the spec is retried at once.
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

// TestExecutor_Escalation: an account cannot grant rights that it does not have.
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

// TestExecutor_WritesAreImpersonated: if an account loses a right between the check and the write, the server rejects the write.
func TestExecutor_WritesAreImpersonated(t *testing.T) {
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

// TestAttack_ExecutorRefusedByAdmission has a policy of the cluster reject, with 403, objects that an account with all RBAC rights creates. The agent
// does not create them in place of the account.
func TestAttack_ExecutorRefusedByAdmission(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	policies, account := kubernetes.NewForConfigOrDie(worktest.Config(t)).AdmissionregistrationV1(), "system:serviceaccount:"+w.namespace+":ex"
	forbidden, name := metav1.StatusReasonForbidden, w.namespace
	if _, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("request.userInfo.username != %q", account), Message: "no", Reason: &forbidden,
			}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = policies.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = policies.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	})
	w.allow(rule("", "configmaps", "", all...), rule("", "configmaps", "by-name", all...))
	config := rest.CopyConfig(worktest.Config(t))
	config.Impersonate.UserName = account
	worktest.Eventually(t, "the policy is in force", func() bool {
		_, err := dynamic.NewForConfigOrDie(config).Resource(configMaps).Namespace(w.namespace).Create(t.Context(),
			worktest.Parse(w.configMap("tried", "{}")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), name)
	})
	refused := func(work, object string) {
		t.Helper()
		w.put(work, w.by(w.spec(w.configMap(object, "{}"))))
		w.eventuallySaid(work, workv1.WorkApplied, "False: False")
		if got := w.message(work, 0, workv1.ManifestApplied); !strings.Contains(got, "ValidatingAdmissionPolicy '"+name) {
			t.Errorf("it says %q, want the policy that refuses it", got)
		}
		if made := w.get(w.target(object)); made != nil {
			t.Errorf("it was created by %v", made.GetManagedFields())
		}
	}
	refused("a", "cm")
	w.allow(rule("", "configmaps", "by-name", all...))
	refused("b", "by-name")
}
