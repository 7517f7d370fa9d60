// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestWorth_OfClusterProvider requests the token of a ServiceAccount that does not belong to a request.
func TestWorth_OfClusterProvider(t *testing.T) {
	t.Parallel()
	w := newWorth(t, &ofAllAgents)
	w.asAdmin().create(namespaceOf("provided", "", ""))
	w.asAdmin().create(bindingIn("provided", "provider", "clusterhub:cluster-provider-secrets", asUser(w.users[providerSA].name)))
	as := w.as(providerSA)
	harness.Eventually(t, "it may write Secrets", func(context.Context) (bool, error) {
		err := as.create(secretOf("provided", "new", "Opaque", ""))
		return err == nil, err
	})
	harness.Eventually(t, "it may not have tokens made", func(context.Context) (bool, error) {
		err := as.create(secretOf("provided", "new", "kubernetes.io/service-account-token", "default"))
		return apierrors.IsForbidden(err), nil
	})
	w.want(providerSA, "read Secrets elsewhere", false, as.list("Secret", "kube-system"))

	// In its own namespace, the provider sets which Cluster has a cluster. The Secrets are those of admins, and of other providers.
	const (
		kubeconfigs = "clusters.clusterhub.dev/kubeconfig"
		request     = `"ownerReferences":[{"apiVersion":"clusters.openmcp.cloud/v1alpha1","kind":"AccessRequest","name":"a","uid":"a"}]`
	)
	own, other := secretOf("openmcp-system", "own", kubeconfigs, ""), secretOf("openmcp-system", "other", "Opaque", "")
	answer := `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"openmcp-system","name":"answer",` + request + `}}`
	for _, secret := range []string{own, other, answer} {
		w.asAdmin().create(secret)
	}
	harness.Eventually(t, "it may not replace a cluster", func(context.Context) (bool, error) {
		err := as.patch(own, `{"data":{"kubeconfig":"YQ=="}}`)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"), nil
	})
	for what, err := range map[string]error{
		"replace a cluster":                   as.patch(own, `{"stringData":{"kubeconfig":"a"}}`),
		"let other namespaces have it":        as.patch(own, `{"metadata":{"annotations":{"clusters.clusterhub.dev/namespaces":"*"}}}`),
		"remove an annotation":                as.patch(own, `{"metadata":{"annotations":null}}`),
		"give it to another provider":         as.patch(own, `{"metadata":{"labels":{"clusters.openmcp.cloud/provider":"eve"}}}`),
		"have it collected as garbage":        as.patch(own, `{"metadata":{`+request+`}}`),
		"keep it from being deleted":          as.patch(own, `{"metadata":{"finalizers":["example.com/eve"]}}`),
		"freeze it":                           as.patch(own, `{"immutable":true}`),
		"change what another has":             as.patch(other, `{"data":{"tls.key":"Yg=="}}`),
		"make a Secret of another its answer": as.patch(other, `{"metadata":{`+request+`},"data":{"tls.key":"Yg=="}}`),
	} {
		w.want(providerSA, what, false, err)
	}
	for what, err := range map[string]error{
		"say who has it": as.patch(own, `{"metadata":{"annotations":{"clusters.clusterhub.dev/holder":"a","clusters.clusterhub.dev/holder-name":"b"}}}`),
		"answer again":   as.patch(answer, `{"data":{"kubeconfig":"YQ=="}}`),
	} {
		w.want(providerSA, what, true, err)
	}
}
