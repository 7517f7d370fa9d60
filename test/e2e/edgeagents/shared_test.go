// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeagents

import (
	"fmt"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// withRole is a ConfigMap of a name, and a ClusterRole that a different service has, too.
const withRole = `
apiVersion: v1
kind: ConfigMap
metadata: {name: %s}
data: {version: 1.0.0}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: of-services}
rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]
`

// ofNoNamespace deploys a ClusterRole that two services share: the agents of teams do not create it, and it exists as long as one of the services
// does.
func (w *world) ofNoNamespace() {
	role := func(want string) {
		w.Helper()
		w.says("the ClusterRole", want, w.cluster, "get", "clusterrole", "of-services", "--ignore-not-found", "-o", "name")
	}
	for _, name := range []string{"first", "second"} {
		harness.Contains(w.T, w.serviceOf(name, "1.0.0", fmt.Sprintf(withRole, name)), "Warning: ")
		w.write(policy{name: name, service: name, versions: oneVersion})
		w.placed(name, whole+" 1.0.0 "+byDefault+" Running")
		w.judged(name, 1, string(edge.ClusterObjects)+"=2")
		w.lands(name, byDefault+" 1.0.0")
	}
	const there = "clusterrole.rbac.authorization.k8s.io/of-services"
	role(there)
	w.mustAs(deployer, "", "delete", "deploymentpolicy", "first", "-n", shop)
	w.placed("first")
	w.lands("first")
	role(there)
	w.mustAs(deployer, "", "delete", "deploymentpolicy", "second", "-n", shop)
	w.lands("second")
	role("")
}

// patterns sets a pattern on a node as its owner, which gets all services of the pattern.
func (w *world) patterns() {
	w.service("by-pattern", "1.0.0", "")
	w.service("by-policy", "1.0.0", "")
	w.write(policy{name: "by-policy", service: "by-policy", versions: oneVersion, constraints: []string{retail}})
	w.lands("by-policy", "abc 1.0.0")
	w.mustAs(deployer, fmt.Sprintf("apiVersion: %s\nkind: DeploymentPattern\nmetadata: {name: all, namespace: %s}\nspec:\n  clusterNamespace: abc\n  services: "+
		"[{serviceUrl: by-pattern, serviceVersions: %s}]\n", edgev1alpha1.SchemeGroupVersion, shop, oneVersion), "apply", "-f", "-")

	w.Log("A node that takes a pattern gets its services, and none by policies")
	w.mustAs(owner, "", "patch", "edgenode", ofABC, "--type=merge", "-p", `{"spec":{"pattern":"`+shop+`/all"}}`)
	w.lands("by-pattern", "abc 1.0.0")
	w.lands("by-policy")
	w.judged("by-policy", 0, string(edge.HasPattern)+"=1", string(edge.PolicyConstraint)+"=2")

	w.Log("A version of which the hub can make no work gives way to the next one, and comes back once it can")
	w.service("by-pattern", "2.0.0", "")
	input := func(value string) {
		w.Helper()
		w.mustAs(deployer, "", "patch", "edgeservice", serviceName("by-pattern", "2.0.0"), "-n", shop, "--type=merge", "-p", `{"spec":{"userInput":[{"name":"SIZE"`+value+`}]}}`)
	}
	input("")
	w.mustAs(deployer, "", "patch", "deploymentpattern", "all", "-n", shop, "--type=merge", "-p", `{"spec":{"services":[{"serviceUrl":"by-pattern","serviceVersions":[`+
		`{"version":"2.0.0","priority":{"priority_value":1}},{"version":"1.0.0","priority":{"priority_value":2}}]}]}}`)
	w.says("what was tried", "by-pattern 2.0.0 GivenUp", w.hub, "get", "edgeplacements", "-n", shop, "-l", edgev1alpha1.PatternLabel+"=all",
		"-o", `jsonpath={range .items[*].status.attempts[?(@.state=="GivenUp")]}{.name} {.version} {.state}{end}`)
	w.lands("by-pattern", "abc 1.0.0")
	input(`,"defaultValue":"small"`)
	w.lands("by-pattern", "abc 2.0.0")

	w.Log("And the other way round")
	w.mustAs(owner, "", "patch", "edgenode", ofABC, "--type=merge", "-p", `{"spec":{"pattern":null}}`)
	w.lands("by-pattern")
	w.lands("by-policy", "abc 1.0.0")
	w.mustAs(deployer, "", "delete", "deploymentpattern", "all", "-n", shop)
	w.mustAs(deployer, "", "delete", "deploymentpolicy", "by-policy", "-n", shop)
	w.lands("by-policy")
}
