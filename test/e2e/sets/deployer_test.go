// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// newDeliverable creates a set with one cluster, which has its namespace.
func newDeliverable(t *testing.T) (set, cluster string) {
	t.Helper()
	set = harness.Unique("set")
	cluster = set + "-c1"
	harness.NewSet(t, set)
	harness.NewManagedCluster(t, cluster, map[string]string{harness.SetLabel: set})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: map[string]string{registration.ClusterNameLabel: cluster}}}
	harness.Must(harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}))(t)
	return set, cluster
}

// TestGrant_DeployerIsLimitedToSet runs the examples of the specification: from a binding to works that are applied, with
// only the roles of the set and the namespace's role edit. Then the deployer tries requests that need more rights.
func TestGrant_DeployerIsLimitedToSet(t *testing.T) {
	set, mine := newDeliverable(t)
	other, foreign := newDeliverable(t)
	plugin := harness.Plugin{Kubeconfig: harness.Hub(t).AdminKubeconfig()}
	who := harness.Unique("user")
	config, told := harness.Hub(t).UserConfig(who, "system:authenticated"), &strings.Builder{}
	config.WarningHandler = rest.NewWarningWriter(told, rest.WarningWriterOptions{})
	team := &placing{T: t, who: who, namespace: harness.NewNamespace(t), client: harness.Ours(t, config)}
	harness.MustKubectl(t, "", "create", "rolebinding", "editor", "--namespace="+team.namespace, "--clusterrole=edit", "--user="+who)
	bindings := team.client.ClusterV1beta2().ManagedClusterSetBindings(team.namespace)

	// A user of the set gets an error on the write that names the missing role.
	plugin.Must(t, "grant", set, "--role", "user", "--user", who)
	team.place()
	harness.Eventually(t, "the set is bound", func(ctx context.Context) (bool, error) {
		_, err := bindings.Create(ctx, harness.Binding(team.namespace, set, set), metav1.CreateOptions{})
		return err == nil, err
	})
	team.await("the cluster of the set", mine)
	team.retext("one")
	harness.Contains(t, told.String(), fmt.Sprintf("Warning: user %q may not create works", who), "kubectl hub grant "+set+" --role deployer")
	missing := fmt.Sprintf("may not create manifestworks in namespace %s, and does not have the role deployer of the set %s (kubectl hub grant %[2]s --role deployer)", mine, set)
	harness.Contains(t, team.awaitSet("Authorized", "False NotAllowed"), missing)

	plugin.Must(t, "grant", set, "--role", "deployer", "--user", who)
	harness.AwaitRule(t, harness.Kube(t, harness.Hub(t).AdminConfig()), who, harness.Rule("create", "managedclustersets/manifestworks", set))
	team.retext("two")
	team.awaitWorks("works by the role", "two", mine)
	team.awaitSet("Authorized", "True AsExpected")
	team.report()
	team.awaitSet("PlacementRolledOut", "True Complete")

	// A different set is forbidden, even if another user has bound it.
	harness.WantForbidden(t, harness.ErrorOf(bindings.Create(t.Context(), harness.Binding(team.namespace, other, other), metav1.CreateOptions{})), other)
	harness.Must(harness.Admin(t).ClusterV1beta2().ManagedClusterSetBindings(team.namespace).Create(t.Context(), harness.Binding(team.namespace, other, other), metav1.CreateOptions{}))(t)
	both := []string{mine, foreign}
	slices.Sort(both)
	team.await("clusters of both sets", both...)
	team.retext("three")
	team.awaitWorks("works on the cluster of the own set alone", "three", mine)
	harness.Contains(t, team.awaitSet("Authorized", "False NotAllowed"), "in namespace "+foreign+", and does not have the role deployer of the set "+other)

	// Works by hand, replica sets with the rights of others, and writes to the cluster itself are forbidden.
	one := &workv1.ManifestWork{ObjectMeta: harness.Named("mine")}
	one.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"}}`)}}}
	harness.WantForbidden(t, harness.ErrorOf(team.client.WorkV1().ManifestWorks(mine).Create(t.Context(), one, metav1.CreateOptions{})))
	harness.WantForbidden(t, harness.ErrorOf(team.client.WorkV1().ManifestWorks(mine).List(t.Context(), metav1.ListOptions{})))
	for _, refused := range [][]string{{"label", mine, "owner=team"}, {"label", foreign, harness.SetLabel + "=" + set, "--overwrite"}, {"delete", "cluster", mine},
		{"accept", mine}, {"grant", set, "--role", "admin", "--user", who}} {
		if out, _, err := plugin.Run(t, append(refused, "--as", who)...); err == nil {
			t.Errorf("%q of the deployer: %s", refused, out)
		}
	}
	replicaSets := team.client.WorkV1alpha1().ManifestWorkReplicaSets(team.namespace)
	root := &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "kube-system", Name: "root"}}}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the hub updates its status
		replicaSet, err := replicaSets.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		replicaSet.Spec.ManifestWorkTemplate.Executor = root
		_, err = replicaSets.Update(t.Context(), replicaSet, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	harness.Contains(t, team.awaitSet("Authorized", "False NotAllowed"), "may not execute-as")
	for _, w := range harness.Must(team.works(t.Context()))(t) {
		if w.Spec.Executor != nil {
			t.Errorf("the work in %s has the executor %v", w.Namespace, w.Spec.Executor)
		}
	}
}
