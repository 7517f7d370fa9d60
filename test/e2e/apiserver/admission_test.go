// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func creates(group, resource string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		},
	}}}
}

// newPolicy creates a ValidatingAdmissionPolicy and binds it, with the parameters if they are given.
func newPolicy(t *testing.T, h *localhub.Instance, name string, params *admissionregistrationv1.ParamRef, spec admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	t.Helper()
	client := harness.Kube(t, h.AdminConfig()).AdmissionregistrationV1()
	harness.Must(client.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{}))(t)
	harness.Must(client.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ParamRef: params, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = client.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = client.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	})
}

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// refuseNames creates a policy that rejects clusters whose names have a prefix, and waits until hub-apiserver observes it.
func refuseNames(t *testing.T, h *localhub.Instance, prefix string) {
	t.Helper()
	newPolicy(t, h, prefix, nil, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: creates(harness.ClusterGroup, "managedclusters"),
		Validations: []admissionregistrationv1.Validation{{
			Expression: "!has(object.metadata.name) || !object.metadata.name.startsWith('" + prefix + "')", Message: "not this name",
		}},
	})
	awaitRefusal(t, h, prefix)
}

func awaitRefusal(t *testing.T, h *localhub.Instance, prefix string) {
	t.Helper()
	client := harness.Ours(t, h.AdminConfig())
	harness.Eventually(t, "the policy refuses the name", func(ctx context.Context) (bool, error) {
		_, err := client.ClusterV1().ManagedClusters().Create(ctx, harness.ManagedCluster(prefix+"-a", nil), dryRun)
		return err != nil && strings.Contains(err.Error(), "not this name"), nil
	})
}

func TestAdmission_FrontPoliciesApply(t *testing.T) {
	refuseNames(t, harness.Hub(t), harness.Unique("policy"))
	harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster(harness.Unique("other"), nil), dryRun))(t)
}

// TestAdmission_UnrelatedPolicyWithParameters verifies that hub-apiserver ignores a policy on pods: it may not read the ConfigMaps with
// the parameters of the policy, and must neither wait for them nor reject requests.
func TestAdmission_UnrelatedPolicyWithParameters(t *testing.T) {
	h := harness.LendHub(t)
	params := &admissionregistrationv1.ParamRef{Name: "limits", Namespace: "default", ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)}
	newPolicy(t, h, "on-pods", params, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		MatchConstraints: creates("", "pods"),
		Validations:      []admissionregistrationv1.Validation{{Expression: "object.metadata.name != params.data.forbidden"}},
	})
	refuseNames(t, h, "later") // shows that the previous policy is observed, too
	check := func(when string) {
		t.Helper()
		if _, err := harness.Get(t, h.HubAPIServerConfig(0), "/readyz?verbose"); err != nil {
			t.Errorf("%s, hub-apiserver is not ready: %v", when, err)
		}
		if _, err := harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster("a", nil), dryRun); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	check("with the policy")
	h.StopHubAPIServer(0)
	if err := h.StartHubAPIServer(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := h.RouteFront(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(t, h, "later")
	check("after a restart")
}

// TestAdmission_MutatingPoliciesGrantNothing verifies that hub-apiserver runs the front's MutatingAdmissionPolicies on our kinds, and checks
// permissions after them. The changes of a policy need the same rights of the user as the user's own changes.
func TestAdmission_MutatingPoliciesGrantNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []admissionregistrationv1.PatchType{admissionregistrationv1.PatchTypeJSONPatch, admissionregistrationv1.PatchTypeApplyConfiguration} {
		t.Run(string(how), func(t *testing.T) {
			set, client := harness.Unique("smuggled"), harness.Kube(t, harness.Hub(t).AdminConfig()).AdmissionregistrationV1()
			mutation := admissionregistrationv1.Mutation{PatchType: how}
			if how == admissionregistrationv1.PatchTypeJSONPatch {
				mutation.JSONPatch = &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(
					`[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey(%q), value: %q}]`, harness.SetLabel, set)}
			} else {
				mutation.ApplyConfiguration = &admissionregistrationv1.ApplyConfiguration{Expression: fmt.Sprintf(
					`Object{metadata: Object.metadata{labels: {%q: %q}}}`, harness.SetLabel, set)}
			}
			harness.Must(client.MutatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: set},
				Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
					MatchConstraints: creates(harness.ClusterGroup, "managedclusters"),
					MatchConditions: []admissionregistrationv1.MatchCondition{{
						Name: "by-name", Expression: "has(object.metadata.name) && object.metadata.name.startsWith('" + set + "')",
					}},
					Mutations: []admissionregistrationv1.Mutation{mutation}, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				},
			}, metav1.CreateOptions{}))(t)
			harness.Must(client.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: set}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: set},
			}, metav1.CreateOptions{}))(t)
			t.Cleanup(func() {
				ctx := context.WithoutCancel(t.Context())
				_ = client.MutatingAdmissionPolicyBindings().Delete(ctx, set, metav1.DeleteOptions{})
				_ = client.MutatingAdmissionPolicies().Delete(ctx, set, metav1.DeleteOptions{})
			})
			harness.Eventually(t, "the policy adds the label", func(ctx context.Context) (bool, error) {
				c, err := harness.Admin(t).ClusterV1().ManagedClusters().Create(ctx, harness.ManagedCluster(set+"-admin", nil), dryRun)
				return err == nil && c.Labels[harness.SetLabel] == set, err
			})
			may := []rbacv1.PolicyRule{harness.Rule("create", "managedclusters"), harness.LabelRight(harness.SetLabel + ":default")}
			who, allowed := harness.User(t, may...), harness.User(t, append(may, harness.LabelRight(harness.SetLabel+":"+set))...)
			create := func(who, name string) error {
				_, err := harness.Ours(t, harness.Hub(t).UserConfig(who)).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster(name, nil), dryRun)
				return err
			}
			if err := create(who, harness.Unique("other")); err != nil {
				t.Errorf("without the policy: %v", err)
			}
			harness.WantForbidden(t, create(who, set+"-a"), "managedclusters/label", harness.SetLabel+":"+set)
			if err := create(allowed, set+"-b"); err != nil {
				t.Errorf("with the right: %v", err)
			}
		})
	}
}

// TestAdmission_FrontWithoutMutatingPolicies verifies this, as the plugin for such policies would wait forever, and reject all writes.
func TestAdmission_FrontWithoutMutatingPolicies(t *testing.T) {
	h := harness.OwnHub(t, func(c *localhub.Options) {
		c.WithoutHubControllerManager, c.WithoutKubeControllerManager = true, true
		c.FrontArgs = []string{"--feature-gates=MutatingAdmissionPolicy=false", "--disable-admission-plugins=MutatingAdmissionPolicy",
			"--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false,admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false"}
	})
	served := harness.Must(harness.Kube(t, h.AdminConfig()).Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1"))(t)
	if slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" }) {
		t.Fatal("the front serves mutating policies: this shows nothing")
	}
	harness.Must(harness.Ours(t, h.AdminConfig()).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster("a", nil), metav1.CreateOptions{}))(t)
}
