// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeagents

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// shown checks the output of kubectl for users.
func (w *world) shown() {
	w.service("shown", "1.0.0", "")
	w.write(policy{name: "shown", service: "shown", versions: oneVersion, constraints: []string{retail}})
	w.placed("shown", ofABC+" 1.0.0 abc Running")
	all := w.mustAs(deployer, "", "get", "edge", "-n", shop)
	harness.Contains(w.T, all, "edgeservice.edge.clusterhub.dev/"+serviceName("shown", "1.0.0"), "deploymentpolicy.edge.clusterhub.dev/shown",
		"edgenode.edge.clusterhub.dev/"+whole, "edgeplacement.edge.clusterhub.dev/shown")
	for _, header := range []string{"NAME TYPE NAMESPACE SCOPE ARCH PATTERN AGE", "NAME SERVICE VERSION ARCH PUBLIC FOR AGE",
		"NAME SERVICE NAMESPACE SELECTED PLACED RUNNING FAILED AGE", "NAME NODE OF VERSION NAMESPACE STATE AGE"} {
		if !slices.ContainsFunc(strings.Split(all, "\n"), func(line string) bool { return strings.Join(strings.Fields(line), " ") == header }) {
			w.Errorf("no line is %q:\n%s", header, all)
		}
	}
	harness.Contains(w.T, harness.MustKubectlOf(w.T, w.hub, "", "get", "edge", "-A"), "shop ")
	explained := strings.Join(strings.Fields(w.mustAs(deployer, "", "explain", "deploymentpolicy.spec.service.clusterNamespace")), " ")
	harness.Contains(w.T, explained, "FIELD: clusterNamespace <string>", "DNS label")
	if out, err := w.as(deployer, "", "delete", "edgeplacements", "--all", "-n", shop); err == nil || !strings.Contains(out, "forbidden") {
		w.Errorf("the deployer deletes placements: %v: %s", err, out)
	}
	w.mustAs(deployer, "", "delete", "deploymentpolicy", "shown", "-n", shop)
	w.lands("shown")
}

// teamsRights checks the rights of the agent that a team has installed, as the cluster reports them.
func (w *world) teamsRights() {
	others := w.rights("people", "default", "xyz")
	for _, namespace := range []string{"xyz", "kube-system", "people", registration.AgentNamespace} {
		if may := w.rights("abc", registration.AgentServiceAccount, namespace); !slices.Equal(may, others) {
			w.Errorf("in %s the agent of abc may do what other accounts may not:\n%s\nwant\n%s", namespace, strings.Join(may, "\n"), strings.Join(others, "\n"))
		}
	}
	if may := w.rights("abc", registration.AgentServiceAccount, "abc"); slices.Equal(may, others) {
		w.Errorf("in its own namespace it may do no more: %v", may)
	}
	config := w.cluster.UserConfig("system:serviceaccount:abc:"+registration.AgentServiceAccount, "system:serviceaccounts", "system:serviceaccounts:abc",
		"system:authenticated")
	harness.WantForbidden(w.T, harness.ErrorOf(harness.Kube(w.T, config).CoreV1().Secrets("xyz").List(w.Context(), metav1.ListOptions{})))

	w.Log("Nothing that the installation has made is outside of the namespace")
	for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
		if out := harness.MustKubectlOf(w.T, w.cluster, "", "get", kind, "-o", "yaml"); strings.Contains(out, "namespace: abc") || strings.Contains(out, "namespace: xyz") {
			w.Errorf("%s name the namespaces of the teams:\n%s", kind, out)
		}
	}
}

// rights returns all rights of an account in a namespace, and those without a namespace.
func (w *world) rights(namespace, account, in string) (all []string) {
	w.Helper()
	config := w.cluster.UserConfig("system:serviceaccount:"+namespace+":"+account, "system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: in}}
	review = harness.Must(harness.Kube(w.T, config).AuthorizationV1().SelfSubjectRulesReviews().Create(w.Context(), review, metav1.CreateOptions{}))(w.T)
	if review.Status.Incomplete {
		w.Fatalf("the cluster does not know all rights: %s", review.Status.EvaluationError)
	}
	for _, r := range review.Status.ResourceRules {
		all = append(all, r.String())
	}
	for _, r := range review.Status.NonResourceRules {
		all = append(all, r.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// comesAndGoes upgrades and removes agents of one cluster while others deliver.
func (w *world) comesAndGoes() {
	w.service("stays", "1.0.0", "")
	w.write(policy{name: "stays", service: "stays", versions: oneVersion})
	all := []string{whole + " 1.0.0 " + byDefault + " Running", ofABC + " 1.0.0 abc Running", ofXYZ + " 1.0.0 xyz Running"}
	everywhere := []string{"abc 1.0.0", byDefault + " 1.0.0", "xyz 1.0.0"}
	w.placed("stays", all...)
	w.lands("stays", everywhere...)

	w.Log("A third team comes, and upgrades its agent")
	iris := w.team("iris", "ijk")
	const ofIJK = "rome-ijk"
	w.installIn(iris, "ijk", ofIJK)
	w.admins.Must(w.T, "accept", "--clusters", ofIJK, "--wait", "--timeout", harness.Timeout.String(), "--context", "hub")
	harness.MustKubectlOf(w.T, w.hub, "", "label", "managedcluster", ofIJK, harness.SetLabel+"=edge", "--overwrite")
	w.lands("stays", "abc 1.0.0", "ijk 1.0.0", byDefault+" 1.0.0", "xyz 1.0.0")
	w.installIn(iris, "ijk", ofIJK, "--image", "clusterhub/hub-agent:next")
	harness.MustKubectlOf(w.T, w.cluster, "", "rollout", "status", "deployment/hub-agent", "-n", "ijk", "--timeout", harness.Timeout.String())
	w.says("the agent of ijk", "clusterhub/hub-agent:next", w.cluster, "get", "pods", "-n", "ijk", "-o", "jsonpath={.items[*].spec.containers[*].image}")
	w.service("upgraded", "1.0.0", "")
	w.write(policy{name: "upgraded", service: "upgraded", versions: oneVersion, constraints: []string{"openhorizon.kubernetesNamespace == ijk"}})
	w.lands("upgraded", "ijk 1.0.0")

	w.Log("It goes again: its namespace stays, with what the team has there, and so does what others have")
	harness.MustKubectlOf(w.T, w.cluster, "", "create", "configmap", "of-the-team", "-n", "ijk")
	iris.Must(w.T, "agent", "uninstall", "--namespace", "ijk", "--works=delete")
	w.lands("stays", everywhere...)
	harness.MustKubectlOf(w.T, w.cluster, "", "get", "configmap", "of-the-team", "-n", "ijk")
	w.says("what is left in ijk", "serviceaccount/default\nrolebinding.rbac.authorization.k8s.io/iris\nconfigmap/kube-root-ca.crt\nconfigmap/of-the-team",
		w.cluster, "get", "deployments,jobs,pods,serviceaccounts,secrets,roles,rolebindings,configmaps", "-n", "ijk", "-o", "name")

	w.Log("The agent of the whole cluster goes, and those of the teams go on")
	w.admins.Must(w.T, "agent", "uninstall", "--works=delete", "--context", "rome")
	w.lands("stays", "abc 1.0.0", "xyz 1.0.0")
	w.service("after", "1.0.0", "")
	w.write(policy{name: "after", service: "after", versions: oneVersion, constraints: []string{inXYZ}})
	w.lands("after", "xyz 1.0.0")
	w.xander.Must(w.T, "agent", "uninstall", "--namespace", "xyz", "--works=delete")
	w.lands("after")
	w.lands("stays", "abc 1.0.0")
	harness.MustKubectlOf(w.T, w.cluster, "", "get", "namespaces", "abc", "xyz", "ijk", byDefault)
}
