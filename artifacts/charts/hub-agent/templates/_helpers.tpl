{{- /*
Copyright The Clusterhub Authors.
SPDX-License-Identifier: Apache-2.0
*/ -}}

{{- /* Labels of all objects, of those that have no others, and of those that have. */ -}}
{{- define "hub-agent.labels" -}}
{{- if or .Values.commonLabels .Values.namespaceScoped }}
  labels:
    {{- include "hub-agent.moreLabels" . }}
{{- end }}
{{- end -}}

{{- define "hub-agent.moreLabels" -}}
{{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- if .Values.namespaceScoped }}
    registration.clusterhub.dev/agent-scope: namespace
{{- end }}
{{- end -}}

{{- define "hub-agent.annotations" -}}
{{- with . }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "hub-agent.repository" -}}
{{ with .registry }}{{ . }}/{{ end }}{{ .repository }}
{{- end -}}

{{- define "hub-agent.image" }}
        image: {{ include "hub-agent.repository" . -}}
               {{- if or .tag (not .digest) }}:{{ .tag | default .appVersion }}{{ end -}}
               {{- with .digest }}@{{ . }}{{ end }}
{{- with .pullPolicy }}
        imagePullPolicy: {{ . }}
{{- end }}
{{- end -}}

{{- /* The namespace that `kubectl hub join` takes: in it, the agent needs no flag to find its own. */ -}}
{{- define "hub-agent.defaultNamespace" -}}open-cluster-management-agent{{- end -}}

{{- /* The flags in which clusters differ, as `kubectl hub join` writes them. */ -}}
{{- define "hub-agent.args" -}}
{{- with .Values.clusterName }}
        - --cluster-name={{ . }}
{{- end }}
{{- with .Values.registration.auth }}
        - --registration-auth={{ . }}
{{- end }}
{{- if and .Values.edge.enabled (not .Values.namespaceScoped) }}
        - --edge
        - --edge-namespace={{ .Values.edge.namespace }}
{{- end }}
{{- with .Values.clusterServerURL }}
        - {{ printf "--cluster-server-url=%s" . | quote }}
        - --cluster-ca-file=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt
{{- end }}
{{- if .Values.clusterLabels }}
{{- $labels := list }}
{{- range $key, $value := .Values.clusterLabels }}
{{- $labels = append $labels (printf "%s=%s" $key $value) }}
{{- end }}
        - {{ printf "--cluster-labels=%s" (join "," $labels) | quote }}
{{- end }}
{{- if .Values.detectClusterLabels }}
        - --detect-cluster-labels
{{- end }}
{{- with .Values.registration.hubClusterARN }}
        - {{ printf "--hub-cluster-arn=%s" . | quote }}
{{- end }}
{{- with .Values.registration.managedClusterARN }}
        - {{ printf "--managed-cluster-arn=%s" . | quote }}
{{- end }}
{{- if .Values.bootstrap.tokenSecret.name }}
        - --bootstrap-kubeconfig=/etc/hub-agent/bootstrap/kubeconfig
{{- end }}
{{- if ne .Release.Namespace (include "hub-agent.defaultNamespace" .) }}
        - --namespace={{ .Release.Namespace }}
{{- end }}
{{- if and .Values.works.role (not .Values.namespaceScoped) }}
        - --works
{{- end }}
{{- if or .Values.works.role .Values.namespaceScoped }}
        # An ID that does not change with the address of the hub, so that the agent knows what it has brought before.
        - --agent-id={{ .Release.Namespace }}
{{- end }}
{{- if .Values.works.upgradable }}
        - {{ printf "--upgrade-repository=%s" (include "hub-agent.repository" .Values.image) | quote }}
{{- end }}
{{- range .Values.extraArgs }}
        - {{ . | quote }}
{{- end }}
{{- end -}}

{{- /* The bootstrap kubeconfig, with the token or with the name of the file that has it. */ -}}
{{- define "hub-agent.kubeconfig" -}}
{{- $cluster := dict "server" .Values.bootstrap.server }}
{{- with .Values.bootstrap.caData }}{{ $_ := set $cluster "certificate-authority-data" . }}{{ end }}
{{- with .Values.bootstrap.proxyURL }}{{ $_ := set $cluster "proxy-url" . }}{{ end }}
{{- $user := dict }}
{{- if .Values.bootstrap.tokenSecret.name }}{{ $_ := set $user "tokenFile" "token" }}{{ else }}{{ $_ := set $user "token" .Values.bootstrap.token }}{{ end }}
{{- dict "apiVersion" "v1" "kind" "Config" "current-context" "hub"
      "clusters" (list (dict "name" "hub" "cluster" $cluster))
      "users" (list (dict "name" "hub" "user" $user))
      "contexts" (list (dict "name" "hub" "context" (dict "cluster" "hub" "user" "hub"))) | toYaml }}
{{- end -}}

{{- /* What the schema cannot say, because it is about several values. */ -}}
{{- define "hub-agent.check" -}}
{{- $b := .Values.bootstrap }}
{{- if and $b.kubeconfig (or $b.server $b.token $b.tokenSecret.name) }}
{{- fail "bootstrap.kubeconfig: it has all that bootstrap.server, bootstrap.token and bootstrap.tokenSecret say. Set either it or them." }}
{{- end }}
{{- if and $b.token $b.tokenSecret.name }}
{{- fail "bootstrap.token: the token is in bootstrap.tokenSecret. Set one of them." }}
{{- end }}
{{- if and $b.server (not (or $b.token $b.tokenSecret.name)) }}
{{- fail "bootstrap.server: a token is missing. Set bootstrap.tokenSecret.name (or bootstrap.token): `kubectl hub get token` on the hub prints one." }}
{{- end }}
{{- if and (or $b.token $b.tokenSecret.name) (not $b.server) }}
{{- fail "bootstrap.server: say where the hub is, as an https URL." }}
{{- end }}
{{- if .Values.namespaceScoped }}
{{- if not .Values.clusterName }}
{{- fail "clusterName: an agent with rights in one namespace cannot ask the cluster for its name. Set it." }}
{{- end }}
{{- if or .Values.works.role .Values.works.namespaces }}
{{- fail "works: an agent with rights in one namespace (namespaceScoped) has those of admin there. Leave works out." }}
{{- end }}
{{- if .Values.metrics.enabled }}
{{- fail "metrics.enabled: an agent with rights in one namespace (namespaceScoped) may not ask who reads its metrics." }}
{{- end }}
{{- if .Values.detectClusterLabels }}
{{- fail "detectClusterLabels: an agent with rights in one namespace (namespaceScoped) may not look at nodes." }}
{{- end }}
{{- if or (eq .Release.Namespace (include "hub-agent.defaultNamespace" .)) (hasPrefix "kube-" .Release.Namespace) }}
{{- fail (printf "namespaceScoped: the release must not be in the namespace %s, which is not a team's. Install it into a namespace of the team." .Release.Namespace) }}
{{- end }}
{{- end }}
{{- if and .Values.works.namespaces (not .Values.works.role) }}
{{- fail "works.namespaces: say with which rights works are brought there, by works.role." }}
{{- end }}
{{- if and .Values.works.upgradable (not .Values.works.role) (not .Values.namespaceScoped) }}
{{- fail "works.upgradable: it is works that set the image of the agent. Set works.role." }}
{{- end }}
{{- if has .Release.Namespace .Values.works.namespaces }}
{{- fail (printf "works.namespaces: %s is the agent's own, where works can have nothing." .Release.Namespace) }}
{{- end }}
{{- if .Values.edge.enabled }}
{{- if and (not .Values.works.role) (not .Values.namespaceScoped) }}
{{- fail "edge.enabled: without works the agent deploys no services. Set works.role." }}
{{- end }}
{{- if eq .Values.edge.namespace .Release.Namespace }}
{{- fail "edge.namespace: it must not be the agent's own: a service that can read Secrets there could act as the agent." }}
{{- end }}
{{- end }}
{{- if and (eq .Values.registration.auth "awsirsa") (not (and .Values.registration.hubClusterARN .Values.registration.managedClusterARN)) }}
{{- fail "registration: awsirsa needs hubClusterARN and managedClusterARN." }}
{{- end }}
{{- end -}}
