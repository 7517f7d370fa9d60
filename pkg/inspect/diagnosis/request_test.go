// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// grantedRequest returns a request that was granted, and its Cluster.
func grantedRequest() (AccessRequestFacts, *openmcpv1alpha1.AccessRequest, *openmcpv1alpha1.Cluster) {
	r := &openmcpv1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "ann", Generation: 2, CreationTimestamp: before(time.Hour),
		Labels: map[string]string{openmcpv1alpha1.ProviderLabel: "kind", openmcpv1alpha1.ProfileLabel: "dev.kind"}}}
	r.Spec.ClusterRef = &openmcpv1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}
	r.Status.Phase, r.Status.ObservedGeneration = openmcpv1alpha1.REQUEST_GRANTED, 2
	r.Status.SecretRef = &openmcpv1alpha1.LocalObjectReference{Name: "ann.kubeconfig"}
	said(r, "Prepared", metav1.ConditionTrue, "Prepared", "")
	said(r, "AccessReady", metav1.ConditionTrue, "Granted", "")
	c := &openmcpv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", CreationTimestamp: before(time.Hour)}}
	c.Spec.Profile = "dev.kind"
	c.Status.Phase = openmcpv1alpha1.StatusPhaseReady
	return AccessRequestFacts{Namespace: "teams", Name: "ann", Now: now, Request: Found(r), Cluster: Found(c)}, r, c
}

func said(r *openmcpv1alpha1.AccessRequest, name string, status metav1.ConditionStatus, reason, message string) {
	setCondition(&r.Status.Conditions, name, status, reason, message)
	for i := range r.Status.Conditions {
		r.Status.Conditions[i].ObservedGeneration = r.Generation
	}
}

// pending revokes the access of a request.
func pending(r *openmcpv1alpha1.AccessRequest) {
	r.Status.Phase, r.Status.SecretRef = openmcpv1alpha1.REQUEST_PENDING, nil
	r.Status.Conditions = r.Status.Conditions[:1]
}

func TestOfAccessRequest(t *testing.T) {
	type (
		request = openmcpv1alpha1.AccessRequest
		cluster = openmcpv1alpha1.Cluster
	)
	by := func(f *AccessRequestFacts, r *request) *openmcpv1alpha1.ClusterRequest {
		c := &openmcpv1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "shop", CreationTimestamp: before(time.Hour)}}
		f.ClusterRequest, f.Cluster = Found(c), Read[*cluster]{}
		r.Spec.ClusterRef, r.Spec.RequestRef = nil, &openmcpv1alpha1.ObjectReference{Namespace: "teams", Name: "shop"}
		pending(r)
		said(r, "Prepared", metav1.ConditionFalse, "InvalidReference", `ClusterRequest "teams/shop" is not granted`)
		return c
	}
	refused := func(reason, message string) func(*AccessRequestFacts, *request, *cluster) {
		return func(_ *AccessRequestFacts, r *request, _ *cluster) {
			pending(r)
			said(r, "AccessReady", metav1.ConditionFalse, reason, message)
		}
	}
	for name, test := range map[string]struct {
		change func(*AccessRequestFacts, *request, *cluster)
		id     ID
		step   string
		says   []string
	}{
		"granted": {},
		"granted, and the Cluster hidden": {change: func(f *AccessRequestFacts, _ *request, _ *cluster) {
			f.Cluster = Hidden[*cluster]("you may not get it")
		}},
		"granted by another program": {change: func(_ *AccessRequestFacts, r *request, _ *cluster) { r.Status.Conditions = nil }},
		"not there":                  {func(f *AccessRequestFacts, _ *request, _ *cluster) { f.Request = Missing[*request]() }, AccessRequestMissing, "exists", []string{"does not exist", "kubectl events -n teams"}},
		"ignored": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			pending(r)
			r.Annotations = map[string]string{openmcpv1alpha1.OperationAnnotation: "ignore"}
		}, AccessRequestIgnored, "looked at", []string{"kubectl annotate accessrequest ann -n teams openmcp.cloud/operation-"}},
		"ending": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			r.DeletionTimestamp = new(before(time.Minute))
			said(r, "AccessReady", metav1.ConditionFalse, "X", "cannot be reached.")
		}, AccessRequestEnding, "stays", []string{"cannot be reached.", "the cluster provider kind"}},
		"denied by the policy": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			pending(r)
			r.Status.Phase = openmcpv1alpha1.REQUEST_DENIED
			said(r, "Prepared", metav1.ConditionFalse, "DeniedByPolicy", "no rule allows it")
		}, AccessRequestDenied, "not denied", []string{"no rule allows it", "writes the policy", "kubectl delete accessrequest ann -n teams"}},
		"denied by an approver": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			r.Status.Phase = openmcpv1alpha1.REQUEST_DENIED
			r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-patch", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{}}}`)}}
		}, AccessRequestDenied, "not denied", []string{"denied by kubectl-patch, by a user"}},
		"without the ClusterRequest": {func(f *AccessRequestFacts, r *request, _ *cluster) {
			by(f, r)
			f.ClusterRequest = Missing[*openmcpv1alpha1.ClusterRequest]()
		}, ClusterRequestMissing, "ClusterRequest", []string{"ClusterRequest teams/shop, to which"}},
		"by a ClusterRequest that is denied": {func(f *AccessRequestFacts, r *request, _ *cluster) {
			by(f, r).Status.Phase = openmcpv1alpha1.REQUEST_DENIED
		}, ClusterRequestDenied, "ClusterRequest", []string{"policy of the scheduler"}},
		"by a ClusterRequest that goes": {func(f *AccessRequestFacts, r *request, _ *cluster) {
			by(f, r).DeletionTimestamp = new(before(time.Minute))
		}, ClusterRequestDenied, "ClusterRequest", []string{"is being deleted"}},
		"the scheduler does not run": {func(f *AccessRequestFacts, r *request, _ *cluster) { by(f, r) }, ClusterRequestWaits, "ClusterRequest", []string{"waits for the scheduler", "kubectl hub doctor"}},
		"the scheduler has no template": {func(f *AccessRequestFacts, r *request, _ *cluster) {
			setCondition(&by(f, r).Status.Conditions, "Granted", metav1.ConditionFalse, "ConfigurationProblem", "no cluster definition found for purpose 'x'")
		}, ClusterRequestWaits, "ClusterRequest", []string{"an admin of the hub, who configures the scheduler", "purpose 'x'", "kubectl describe clusterrequest shop -n teams"}},
		"the Cluster is not there": {func(f *AccessRequestFacts, r *request, _ *cluster) {
			pending(r)
			f.Cluster = Missing[*cluster]()
		}, AccessClusterMissing, "Cluster", []string{"Cluster teams/blue does not exist"}},
		"the Cluster goes": {func(_ *AccessRequestFacts, r *request, c *cluster) {
			pending(r)
			c.DeletionTimestamp = new(before(time.Minute))
		}, AccessClusterMissing, "Cluster", []string{"is being deleted"}},
		"hub-controller-manager does not run": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			pending(r)
			r.Status.Conditions, r.Labels = nil, nil
		}, AccessRequestUnhandled, "prepared", []string{"waits for hub-controller-manager", "kubectl hub doctor"}},
		"hub-controller-manager has seen an older one": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			pending(r)
			r.Status.Conditions[0].ObservedGeneration = 1
		}, AccessRequestUnhandled, "prepared", []string{"current generation"}},
		"the profile is not there": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			pending(r)
			said(r, "Prepared", metav1.ConditionFalse, "InvalidReference", "ClusterProfile not found")
		}, AccessClusterMissing, "prepared", []string{"ClusterProfile not found"}},
		"a rule of the policy fails": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			pending(r)
			said(r, "Prepared", metav1.ConditionFalse, "ConfigurationProblem", "no such key")
		}, AccessRequestUnclear, "prepared", []string{"no such key", "an admin of the hub, if the policy is the problem"}},
		"no provider": {func(_ *AccessRequestFacts, r *request, c *cluster) {
			pending(r)
			c.Status.Phase = ""
			setCondition(&c.Status.Conditions, openmcpv1alpha1.ConditionProviderMissing, metav1.ConditionTrue, "NotLookedAt", "see whether it runs")
		}, AccessProviderMissing, "Cluster ready", []string{"waits for an admin of the cluster provider kind", "see whether it runs", "kubectl get clusterprofile dev.kind"}},
		"the Cluster is not ready": {func(_ *AccessRequestFacts, r *request, c *cluster) {
			pending(r)
			c.Status.Phase = openmcpv1alpha1.StatusPhaseProgressing
			setCondition(&c.Status.Conditions, "Ready", metav1.ConditionFalse, "X", "etcd starts")
		}, AccessClusterNotReady, "Cluster ready", []string{"waits for the cluster provider kind", "etcd starts", "kubectl describe cluster.clusters.openmcp.cloud blue -n teams"}},
		"the provider says nothing": {func(_ *AccessRequestFacts, r *request, _ *cluster) { pending(r) }, AccessNotAnswered, "access",
			[]string{"waits for the cluster provider kind", "kubectl annotate accessrequest ann -n teams openmcp.cloud/operation=reconcile"}},
		"the provider has seen an older one": {func(_ *AccessRequestFacts, r *request, _ *cluster) { r.Status.Conditions[1].ObservedGeneration = 1 }, AccessNotAnswered, "access",
			[]string{"still gives access"}},
		"what it asks for cannot be given": {refused("OIDCNotSupported", "ask for a token"), AccessRefused, "access", []string{"ask for a token", "kubectl edit accessrequest ann -n teams"}},
		"the cluster does not answer":      {refused("ClusterInteractionProblem", "connection refused"), AccessClusterUnreachable, "access", []string{"waits for an admin of the cluster of Cluster teams/blue"}},
		"the cluster is taken":             {refused("ClusterNotHeld", "not named"), AccessClusterNotHeld, "access", []string{"an admin of the hub"}},
		"a reason that others give":        {refused("Sunspots", "wait"), AccessNotAnswered, "access", []string{"The provider reports: wait."}},
		"Secrets are forbidden": {refused("SecretsForbidden", "may not: "+LetWriteSecrets("kind", "teams", "--serviceaccount=openmcp-system:kind")), AccessSecretsForbidden, "access",
			[]string{"kubectl create rolebinding cluster-provider-kind -n teams --clusterrole=clusterhub:cluster-provider-secrets --serviceaccount=openmcp-system:kind"}},
		"Secrets are forbidden to a liar": {refused("SecretsForbidden", "kubectl create x --user=a; reboot"), AccessSecretsForbidden, "access", []string{"--serviceaccount=<NAMESPACE:NAME"}},
		"roles are missing": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			said(r, "RolesFound", metav1.ConditionFalse, "RolesMissing", "not in the cluster: view2")
		}, RequestedRolesMissing, "roles", []string{"gives access, but not all", "view2"}},
		"its time is over": {func(_ *AccessRequestFacts, r *request, _ *cluster) {
			r.Spec.TTL = &duration.Duration{Duration: time.Minute}
		}, AccessRequestUnhandled, "time", []string{"has not deleted it"}},
	} {
		t.Run(name, func(t *testing.T) {
			facts, r, c := grantedRequest()
			if test.change != nil {
				test.change(&facts, r, c)
			}
			a := OfAccessRequest(facts)
			checkAnswer(t, a, test.id, test.step, test.says...)
			if a.Finding != nil && a.Finding.Since == nil && test.id != AccessRequestMissing && test.id != AccessRequestIgnored && name != "denied by an approver" &&
				!strings.HasPrefix(name, "by a ClusterRequest") {
				t.Errorf("since when? %+v", a.Finding)
			}
		})
	}
	facts, r, _ := grantedRequest()
	facts.Request = Hidden[*request]("you may not get it")
	if a := OfAccessRequest(facts); !a.IsBlind() {
		t.Errorf("without the request: %+v", a)
	}
	facts.Request, facts.Cluster = Found(r), Hidden[*cluster]("you may not get it")
	pending(r)
	if a := OfAccessRequest(facts); a.Finding == nil || a.Finding.ID != AccessNotAnswered || len(a.Unseen) == 0 {
		t.Errorf("without the Cluster: %+v", a)
	}
}

// TestAccessRequest_NamesMatchConditions verifies that the names that are used here are those of the conditions of requests.
func TestAccessRequest_NamesMatchConditions(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "conditions.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{clusterGranted, accessReady, accessDenied, rolesFound}
	for reason := range parties {
		names = append(names, reason)
	}
	for _, name := range names {
		if !strings.Contains(string(data), "| `"+name+"` |") {
			t.Errorf("docs/reference/conditions.md does not have %s", name)
		}
	}
}
