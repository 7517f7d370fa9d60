// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"maps"
	"strings"
)

// hubEffects returns the effects of the values of the chart clusterhub.
func hubEffects() map[string]effect {
	const (
		external = `etcd: {mode: external, external: {endpoints: ["https://etcd:2379"]}}`
		provider = `clusterProvider: {enabled: true}`
		manager  = "Deployment hub-controller-manager spec.template.spec.containers[hub-controller-manager].args: "
		approver = "Deployment hub-certificate-approver spec.template.spec.containers[hub-certificate-approver].args: "
		server   = "Deployment hub-apiserver spec.template.spec.containers[hub-apiserver]."
		operator = `hubOperator: {enabled: true}`
		agent    = "Deployment clusterhub-operator/hub-operator spec.template.spec.containers[hub-operator].args: --agent-image="
		issuer   = `tls: {certManager: {enabled: true, issuerRef: {name: mine}}}`
		monitors = `metrics: {serviceMonitor: {enabled: true}, podMonitor: {enabled: true}}`
	)
	tls := []string{"+ " + server + "args: --tls-cert-file=/etc/hub-apiserver/tls/tls.crt", "+ " + server + "args: --tls-private-key-file=/etc/hub-apiserver/tls/tls.key",
		"+ " + server + "volumeMounts[tls].*", "+ Deployment hub-apiserver spec.template.spec.volumes[tls].name: tls"}
	reader := []string{"+ ServiceAccount clusterhub-metrics-reader", "+ Secret clusterhub-metrics-reader", "+ ClusterRoleBinding clusterhub:metrics-reader"}
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

		"apiServices.annotations": {`{a: b}`, []string{"+ APIService * metadata.annotations.a: b"}, ""},

		"tls.existingSecret": {`mine`, append([]string{"+ Deployment hub-apiserver spec.template.spec.volumes[tls].secret.secretName: mine"}, tls...), ""},
		"tls.caBundle":       {`Y2E=`, []string{"+ APIService * spec.caBundle: Y2E="}, `tls: {existingSecret: mine}`},
		"tls.certManager.enabled": {`true`, append([]string{"+ Deployment hub-apiserver spec.template.spec.volumes[tls].secret.secretName: hub-apiserver-tls",
			"+ Issuer hub-apiserver-self-signed", "+ Certificate hub-apiserver-ca", "+ Issuer hub-apiserver", "+ Certificate hub-apiserver",
			"+ APIService * metadata.annotations.cert-manager.io/inject-ca-from: clusterhub-system/hub-apiserver"}, tls...), ""},
		"tls.certManager.issuerRef.name": {`other`, []string{"- Issuer hub-apiserver-self-signed", "- Certificate hub-apiserver-ca", "- Issuer hub-apiserver",
			"- Certificate hub-apiserver spec.issuerRef.name: hub-apiserver", "+ Certificate hub-apiserver spec.issuerRef.name: other"}, `tls: {certManager: {enabled: true}}`},
		"tls.certManager.issuerRef.kind": {`ClusterIssuer`, []string{"- Certificate * spec.issuerRef.kind: Issuer", "+ Certificate * spec.issuerRef.kind: ClusterIssuer"}, issuer},
		"tls.certManager.issuerRef.group": {`example.com`, []string{
			"- Certificate * spec.issuerRef.group: cert-manager.io", "+ Certificate * spec.issuerRef.group: example.com"}, issuer},

		"metrics.serviceMonitor.enabled": {`true`, append([]string{"+ ServiceMonitor hub-apiserver"}, reader...), ""},
		"metrics.serviceMonitor.labels":  {`{a: b}`, []string{"+ ServiceMonitor * metadata.labels.a: b"}, monitors},
		"metrics.podMonitor.enabled":     {`true`, append([]string{"+ PodMonitor hub-controller-manager"}, reader...), ""},
		"metrics.podMonitor.labels":      {`{a: b}`, []string{"+ PodMonitor * metadata.labels.a: b"}, monitors},
		"metrics.prometheusRule.enabled": {`true`, []string{"+ PrometheusRule clusterhub"}, ""},
		"metrics.prometheusRule.labels":  {`{a: b}`, []string{"+ PrometheusRule * metadata.labels.a: b"}, `metrics: {prometheusRule: {enabled: true}}`},
		"metrics.dashboard.enabled":      {`true`, []string{"+ ConfigMap clusterhub-dashboard"}, ""},
		"metrics.dashboard.labels":       {`{a: b}`, []string{"+ ConfigMap * metadata.labels.a: b"}, `metrics: {dashboard: {enabled: true}}`},

		"etcd.mode": {`embedded`, []string{
			"- " + server + "args: --etcd-*", "+ " + server + "args: --data-dir=*", "+ " + server + "args: --embedded-etcd-*",
			"- " + server + "volumeMounts[etcd].*", "+ " + server + "volumeMounts[data].*",
			"- Deployment hub-apiserver spec.template.spec.volumes[etcd].*", "+ Deployment hub-apiserver spec.template.spec.volumes[data].*",
			"- Deployment hub-apiserver spec.replicas: 3", "+ Deployment hub-apiserver spec.replicas: 1",
			"- Deployment hub-apiserver spec.strategy.*", "+ Deployment hub-apiserver spec.strategy.type: Recreate",
			"- Deployment hub-apiserver spec.minReadySeconds: 30", "- Deployment hub-apiserver spec.template.spec.topologySpreadConstraints*",
			"+ PersistentVolumeClaim hub-apiserver",
		}, external},
		"etcd.encryption.existingSecret": {`mine`, []string{"+ " + server + "args: --encryption-provider-config=/etc/hub-apiserver/encryption/config.yaml",
			"+ " + server + "args: --encryption-provider-config-automatic-reload", "+ " + server + "volumeMounts[encryption].*",
			"+ Deployment hub-apiserver spec.template.spec.volumes[encryption].name: encryption",
			"+ Deployment hub-apiserver spec.template.spec.volumes[encryption].secret.secretName: mine"}, ""},
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

		"hubApiserver.replicas":             {`5`, []string{"- Deployment hub-apiserver spec.replicas: 3", "+ Deployment hub-apiserver spec.replicas: 5"}, external},
		"hubControllerManager.replicas":     {`null`, []string{"- Deployment hub-controller-manager spec.replicas: 2"}, ""},
		"hubCertificateApprover.replicas":   {`5`, []string{"- Deployment hub-certificate-approver spec.replicas: 2", "+ Deployment hub-certificate-approver spec.replicas: 5"}, ""},
		"clusterProvider.replicas":          {`0`, []string{"- Deployment *cluster-provider-kubeconfig spec.replicas: 2", "+ Deployment *cluster-provider-kubeconfig spec.replicas: 0"}, provider},
		"hubCertificateApprover.enabled":    {`false`, []string{"- * hub-certificate-approver", "- * *hub-certificate-approver*"}, ""},
		"hubOperator.enabled":               {`true`, []string{"+ * *hub-operator*", "+ Namespace clusterhub-operator", "+ CustomResourceDefinition *.operator.open-cluster-management.io"}, ""},
		"hubOperator.namespace":             {`mine`, []string{"- *clusterhub-operator*", "+ *mine*"}, operator},
		"hubOperator.replicas":              {`5`, []string{"- Deployment *hub-operator spec.replicas: 2", "+ Deployment *hub-operator spec.replicas: 5"}, operator},
		"hubOperator.agentImage.registry":   {`r.example.com`, []string{"- " + agent + "clusterhub/hub-agent:v0.0.0", "+ " + agent + "r.example.com/clusterhub/hub-agent:v0.0.0"}, operator},
		"hubOperator.agentImage.repository": {`other`, []string{"- " + agent + "clusterhub/hub-agent:v0.0.0", "+ " + agent + "other:v0.0.0"}, operator},
		"hubOperator.agentImage.tag":        {`v9`, []string{"- " + agent + "clusterhub/hub-agent:v0.0.0", "+ " + agent + "clusterhub/hub-agent:v9"}, operator},
		"hubOperator.agentImage.digest": {`sha256:` + strings.Repeat("a", 64), []string{
			"- " + agent + "clusterhub/hub-agent:v0.0.0", "+ " + agent + "clusterhub/hub-agent@sha256:" + strings.Repeat("a", 64)}, operator},
		"clusterProvider.enabled": {`true`, []string{"+ * *cluster-provider*", "+ Namespace openmcp-system", "+ ValidatingAdmissionPolicy* provider-*.clusterhub.dev"}, ""},
		"clusterProvider.metrics.enabled": {`true`, []string{"+ Deployment *cluster-provider-kubeconfig *.args: --metrics-*", "+ Deployment *cluster-provider-kubeconfig *.ports[metrics].*",
			"+ NetworkPolicy *cluster-provider-kubeconfig spec.ingress*", "+ ClusterRole clusterhub:cluster-provider-kubeconfig-metrics",
			"+ ClusterRoleBinding clusterhub:cluster-provider-kubeconfig-metrics"}, provider},
		"clusterProvider.namespace": {`mine`, []string{"- *openmcp-system*", "+ *mine*"}, provider},
	}
	maps.Copy(all, uiEffects())
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
	maps.Copy(all, component{"hubOperator", "clusterhub-operator/hub-operator", "containers[hub-operator]", "*hub-operator", "clusterhub/hub-operator", "", operator}.effects())
	return all
}
