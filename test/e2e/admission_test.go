// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/test/localhub"
)

func TestAdmission_PoliciesOfTheFrontApplyToOurKinds(t *testing.T) {
	name, client := unique("policy"), kube(t, hub.AdminConfig()).AdmissionregistrationV1()
	must(client.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{clusterGroup}, APIVersions: []string{"*"},
						Resources: []string{"managedclusters"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "!object.metadata.name.startsWith('" + name + "')", Message: "not this name",
			}},
		},
	}, metav1.CreateOptions{}))(t)
	must(client.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = client.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = client.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	})
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	eventually(t, "the policy refuses the name", func(ctx context.Context) (bool, error) {
		_, err := admin(t).ClusterV1().ManagedClusters().Create(ctx, cluster(name+"-a", nil), dry)
		return err != nil && strings.Contains(err.Error(), "not this name"), nil
	})
	must(admin(t).ClusterV1().ManagedClusters().Create(t.Context(), cluster(unique("other"), nil), dry))(t)
}

// TestAdmission_AFrontWithoutMutatingPoliciesIsServed: the plugin for them would wait for ever, and refuse all writes.
func TestAdmission_AFrontWithoutMutatingPoliciesIsServed(t *testing.T) {
	h := ownHub(t, func(c *localhub.Config) {
		c.WithoutHubControllerManager, c.WithoutKubeControllerManager = true, true
		c.FrontArgs = []string{"--feature-gates=MutatingAdmissionPolicy=false", "--disable-admission-plugins=MutatingAdmissionPolicy",
			"--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false,admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false"}
	})
	served := must(kube(t, h.AdminConfig()).Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1"))(t)
	if slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" }) {
		t.Fatal("the front serves mutating policies: this shows nothing")
	}
	must(ours(t, h.AdminConfig()).ClusterV1().ManagedClusters().Create(t.Context(), cluster("a", nil), metav1.CreateOptions{}))(t)
}
