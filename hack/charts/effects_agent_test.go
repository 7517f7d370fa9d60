// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import "maps"

// agentEffects returns the effects of the values of the chart hub-agent.
func agentEffects() map[string]effect {
	const (
		args  = "Deployment hub-agent spec.template.spec.containers[hub-agent].args: "
		hub   = `bootstrap: {server: "https://hub", tokenSecret: {name: token}}`
		arns  = `registration: {hubClusterARN: a, managedClusterARN: b}`
		works = `works: {role: admin}`
	)
	all := map[string]effect{
		"clusterName":         {`c1`, []string{"+ " + args + "--cluster-name=c1"}, ""},
		"clusterLabels":       {`{b: "2", a: "1"}`, []string{"+ " + args + "--cluster-labels=a=1,b=2"}, ""},
		"detectClusterLabels": {`true`, []string{"+ " + args + "--detect-cluster-labels"}, ""},
		"clusterServerURL":    {`https://c1`, []string{"+ " + args + "--cluster-server-url=https://c1", "+ " + args + "--cluster-ca-file=*"}, ""},
		"bootstrap.server": {`https://other`, []string{"- ConfigMap *https://hub*", "+ ConfigMap *https://other*",
			"- Deployment * spec.template.metadata.annotations.*sha256: *", "+ Deployment * spec.template.metadata.annotations.*sha256: *"}, hub},
		"bootstrap.caData": {`Y2E=`, []string{"- ConfigMap *", "+ ConfigMap *certificate-authority-data: Y2E=*",
			"- Deployment * spec.template.metadata.annotations.*sha256: *", "+ Deployment * spec.template.metadata.annotations.*sha256: *"}, hub},
		"bootstrap.proxyURL": {`http://proxy`, []string{"- ConfigMap *", "+ ConfigMap *proxy-url: http://proxy*",
			"- Deployment * spec.template.metadata.annotations.*sha256: *", "+ Deployment * spec.template.metadata.annotations.*sha256: *"}, hub},
		"bootstrap.tokenSecret.name": {`other`, []string{"- Deployment *secret.name: token", "+ Deployment *secret.name: other"}, hub},
		"bootstrap.tokenSecret.key":  {`other`, []string{"- Deployment *.key: token", "+ Deployment *.key: other"}, hub},
		"bootstrap.token":            {`abc`, []string{"- Secret * data.kubeconfig: *", "+ Secret * data.kubeconfig: *"}, `bootstrap: {server: "https://hub", token: x}`},
		"bootstrap.kubeconfig":       {`abc`, []string{"+ Secret bootstrap-hub-kubeconfig"}, ""},
		"bootstrap.emptySecret":      {`true`, []string{"+ Secret bootstrap-hub-kubeconfig"}, ""},

		"registration.auth":              {`awsirsa`, []string{"+ " + args + "--registration-auth=awsirsa"}, arns},
		"registration.hubClusterARN":     {`other`, []string{"- " + args + "--hub-cluster-arn=a", "+ " + args + "--hub-cluster-arn=other"}, arns},
		"registration.managedClusterARN": {`other`, []string{"- " + args + "--managed-cluster-arn=b", "+ " + args + "--managed-cluster-arn=other"}, arns},

		"works.role": {`admin`, []string{"+ " + args + "--works", "+ " + args + "--agent-id=*", "+ CustomResourceDefinition appliedmanifestworks.*",
			"+ ClusterRole clusterhub:hub-agent-works*", "+ ClusterRoleBinding clusterhub:hub-agent-works*"}, ""},
		"works.namespaces": {`[a, b]`, []string{"+ RoleBinding a/clusterhub:hub-agent-works-rights", "+ RoleBinding b/clusterhub:hub-agent-works-rights",
			"- ClusterRole clusterhub:hub-agent-works-namespaces", "- ClusterRoleBinding clusterhub:hub-agent-works-namespaces",
			"- ClusterRoleBinding clusterhub:hub-agent-works-rights"}, works},
		"works.upgradable": {`true`, []string{"+ " + args + "--upgrade-repository=clusterhub/hub-agent", "+ Role clusterhub:hub-agent-upgrade",
			"+ RoleBinding clusterhub:hub-agent-upgrade", "- Deployment * spec.strategy.type: Recreate", "+ Deployment * spec.strategy.*"}, works},
		"edge.enabled":   {`true`, []string{"+ " + args + "--edge", "+ " + args + "--edge-namespace=edge"}, works},
		"edge.namespace": {`other`, []string{"- " + args + "--edge-namespace=edge", "+ " + args + "--edge-namespace=other"}, `{works: {role: admin}, edge: {enabled: true}}`},

		"commonLabels":     {`{a: b}`, []string{"+ * metadata.labels.a: b"}, ""},
		"imagePullSecrets": {`[{name: mine}]`, []string{"+ Deployment * spec.template.spec.imagePullSecrets[mine].name: mine"}, ""},
		"extraObjects":     {`[{apiVersion: v1, kind: ConfigMap, metadata: {name: "more-{{ .Release.Name }}"}}]`, []string{"+ ConfigMap more-hub-agent"}, ""},
		"keepData":         {`false`, []string{"- CustomResourceDefinition * metadata.annotations.helm.sh/resource-policy: keep"}, works},
		"namespace.create": {`true`, []string{"+ Namespace open-cluster-management-agent"}, ""},
		"rbac.create":      {`false`, []string{"- ClusterRole *", "- ClusterRoleBinding *", "- Role *", "- RoleBinding *"}, works},
		"metrics.enabled": {`true`, []string{"+ " + args + "--metrics-*", "+ Deployment *.ports[metrics].*", "+ NetworkPolicy * spec.ingress*",
			"+ ClusterRole clusterhub:hub-agent-metrics*", "+ ClusterRoleBinding clusterhub:hub-agent-metrics"}, ""},
		"networkPolicy.create": {`false`, []string{"- NetworkPolicy hub-agent"}, ""},
		// In a namespace of a team: it is refused in that of agents.
		"namespaceScoped": {`true`, []string{"+ " + args + "--namespace-scoped", "+ " + args + "--works", "+ " + args + "--edge", "+ " + args + "--agent-id=team-a",
			"+ RoleBinding clusterhub:hub-agent-namespace", "- ClusterRole clusterhub:hub-agent", "- ClusterRoleBinding clusterhub:hub-agent",
			"+ * metadata.labels.registration.clusterhub.dev/agent-scope: namespace"}, `clusterName: c1`},
	}
	maps.Copy(all, component{"", "hub-agent", "containers[hub-agent]", "klusterlet-registration-sa", "clusterhub/hub-agent", "", ""}.effects())
	return all
}
