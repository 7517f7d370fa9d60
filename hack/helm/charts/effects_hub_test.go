// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import "maps"

// hubEffects are what the values of the chart clusterhub do.
func hubEffects() map[string]effect {
	const (
		external = `etcd: {mode: external, external: {endpoints: ["https://etcd:2379"]}}`
		provider = `clusterProvider: {enabled: true}`
		manager  = "Deployment hub-controller-manager spec.template.spec.containers[hub-controller-manager].args: "
		approver = "Deployment hub-certificate-approver spec.template.spec.containers[hub-certificate-approver].args: "
		server   = "Deployment hub-apiserver spec.template.spec.containers[hub-apiserver]."
	)
	all := map[string]effect{
		"commonLabels":     {`{a: b}`, []string{"+ * metadata.labels.a: b"}, ""},
		"imagePullSecrets": {`[{name: mine}]`, []string{"+ Deployment * spec.template.spec.imagePullSecrets[mine].name: mine"}, ""},
		"imageRegistry":    {`r.example.com`, []string{"- Deployment *.image: clusterhub/*", "+ Deployment *.image: r.example.com/clusterhub/*"}, provider},
		"extraObjects": {`[{apiVersion: v1, kind: ConfigMap, metadata: {name: "more-{{ .Release.Namespace }}"}}]`,
			[]string{"+ ConfigMap more-clusterhub-system"}, ""},
		"keepData":             {`false`, []string{"- Namespace * metadata.annotations.helm.sh/resource-policy: keep", "- PersistentVolumeClaim * metadata.annotations.helm.sh/resource-policy: keep"}, provider},
		"namespace.create":     {`true`, []string{"+ Namespace clusterhub-system"}, ""},
		"rbac.create":          {`false`, []string{"- ClusterRole *", "- ClusterRoleBinding *", "- Role *", "- RoleBinding *"}, ""},
		"networkPolicy.create": {`false`, []string{"- NetworkPolicy *"}, ""},
		"flowControl.create":   {`false`, []string{"- FlowSchema *", "- PriorityLevelConfiguration *"}, ""},
		"apiServices.create":   {`false`, []string{"- APIService *"}, ""},
		"apiServices.except":   {`[v1.work.open-cluster-management.io]`, []string{"- APIService v1.work.open-cluster-management.io"}, ""},

		"etcd.mode": {`embedded`, []string{
			"- " + server + "args: --etcd-*", "+ " + server + "args: --data-dir=*", "+ " + server + "args: --embedded-etcd-*",
			"- " + server + "volumeMounts[etcd].*", "+ " + server + "volumeMounts[data].*",
			"- Deployment hub-apiserver spec.template.spec.volumes[etcd].*", "+ Deployment hub-apiserver spec.template.spec.volumes[data].*",
			"- Deployment hub-apiserver spec.replicas: 3", "+ Deployment hub-apiserver spec.replicas: 1",
			"- Deployment hub-apiserver spec.strategy.*", "+ Deployment hub-apiserver spec.strategy.type: Recreate",
			"- Deployment hub-apiserver spec.minReadySeconds: 30", "- Deployment hub-apiserver spec.template.spec.topologySpreadConstraints*",
			"+ PersistentVolumeClaim hub-apiserver",
		}, external},
		"etcd.embedded.size":             {`20Gi`, []string{"- PersistentVolumeClaim * spec.resources.requests.storage: 10Gi", "+ PersistentVolumeClaim * spec.resources.requests.storage: 20Gi"}, ""},
		"etcd.embedded.storageClassName": {`fast`, []string{"+ PersistentVolumeClaim * spec.storageClassName: fast"}, ""},
		"etcd.embedded.quotaBytes": {`8589934592`, []string{
			"- " + server + "args: --embedded-etcd-quota-backend-bytes=4294967296", "+ " + server + "args: --embedded-etcd-quota-backend-bytes=8589934592"}, ""},
		"etcd.external.endpoints": {`["https://a:2379", "https://b:2379"]`, []string{
			"- " + server + "args: --etcd-servers=https://etcd:2379", "+ " + server + "args: --etcd-servers=https://a:2379,https://b:2379"}, external},
		"etcd.external.secretName": {`mine`, []string{
			"- Deployment hub-apiserver *volumes[etcd].secret.secretName: hub-apiserver-etcd", "+ Deployment hub-apiserver *volumes[etcd].secret.secretName: mine"}, external},

		"registration.bootstrap": {`true`, []string{"+ Namespace open-cluster-management", "+ ServiceAccount open-cluster-management/agent-registration-bootstrap",
			"+ ClusterRole *bootstrap*", "+ ClusterRoleBinding *bootstrap*"}, ""},
		"registration.upstreamAgents": {`true`, []string{"+ ClusterRole *:upstream-agents*", "+ ClusterRoleBinding *:upstream-agents*",
			"+ Role kube-public/*:upstream-agents", "+ RoleBinding kube-public/*:upstream-agents"}, `registration: {bootstrap: true}`},
		"registration.drivers": {`[csr, awsirsa]`, []string{"+ " + manager + "--registration-drivers=csr,awsirsa", "+ " + approver + "--registration-drivers=csr,awsirsa"}, ""},
		"registration.autoApproval.enabled": {`true`, []string{"+ " + manager + "--feature-gates=ManagedClusterAutoApproval=true",
			"+ " + approver + "--feature-gates=ManagedClusterAutoApproval=true", "+ ClusterRole *auto-approval*", "+ ClusterRoleBinding *auto-approval*"}, ""},
		"registration.autoApproval.csrIdentities": {`[a, b]`, []string{"+ " + manager + "--auto-approved-csr-identities=a,b", "+ " + approver + "--auto-approved-csr-identities=a,b"},
			`registration: {autoApproval: {enabled: true}}`},
		"registration.awsAuth":         {`true`, []string{"+ Role kube-system/*", "+ RoleBinding kube-system/*"}, ""},
		"registration.perClusterRoles": {`true`, []string{"+ " + manager + "--agent-roles=per-cluster", "+ ClusterRole *per-cluster*", "+ ClusterRoleBinding *per-cluster*"}, ""},
		"registration.leftoverTTL":     {`720h`, []string{"+ " + manager + "--leftover-ttl=720h", "+ ClusterRole *leftovers*", "+ ClusterRoleBinding *leftovers*"}, ""},

		"hubApiserver.replicas":           {`5`, []string{"- Deployment hub-apiserver spec.replicas: 3", "+ Deployment hub-apiserver spec.replicas: 5"}, external},
		"hubControllerManager.replicas":   {`null`, []string{"- Deployment hub-controller-manager spec.replicas: 2"}, ""},
		"hubCertificateApprover.replicas": {`5`, []string{"- Deployment hub-certificate-approver spec.replicas: 2", "+ Deployment hub-certificate-approver spec.replicas: 5"}, ""},
		"clusterProvider.replicas":        {`0`, []string{"- Deployment *cluster-provider-kubeconfig spec.replicas: 2", "+ Deployment *cluster-provider-kubeconfig spec.replicas: 0"}, provider},
		"hubCertificateApprover.enabled":  {`false`, []string{"- * hub-certificate-approver", "- * *hub-certificate-approver*"}, ""},
		"clusterProvider.enabled":         {`true`, []string{"+ * *cluster-provider*", "+ Namespace openmcp-system", "+ ValidatingAdmissionPolicy* provider-*.clusterhub.dev"}, ""},
		"clusterProvider.namespace":       {`mine`, []string{"- *openmcp-system*", "+ *mine*"}, provider},
	}
	for key, name := range map[string]string{
		"hubApiserver": "hub-apiserver", "hubControllerManager": "hub-controller-manager", "hubCertificateApprover": "hub-certificate-approver",
	} {
		c := component{key, name, "containers[" + name + "]", name, "clusterhub/" + name, "system-cluster-critical", ""}
		if key == "hubCertificateApprover" {
			c.image = "clusterhub/hub-controller-manager"
		}
		maps.Copy(all, c.effects())
	}
	maps.Copy(all, component{"clusterProvider", "openmcp-system/cluster-provider-kubeconfig", "*ontainers[*]", "*cluster-provider-kubeconfig", "clusterhub/cluster-provider", "", provider}.effects())
	return all
}
