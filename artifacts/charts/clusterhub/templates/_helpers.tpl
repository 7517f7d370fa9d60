{{- /*
Copyright The Clusterhub Authors.
SPDX-License-Identifier: Apache-2.0
*/ -}}

{{- /* Labels of all objects, of those that have no others, and of those that have. */ -}}
{{- define "clusterhub.labels" -}}
{{- with .Values.commonLabels }}
  labels:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "clusterhub.moreLabels" -}}
{{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "clusterhub.annotations" -}}
{{- with . }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- /* What holds data of the hub stays when the release is uninstalled, unless keepData is off. */ -}}
{{- define "clusterhub.keep" -}}
{{- if .Values.keepData }}
  annotations:
    helm.sh/resource-policy: keep
{{- end }}
{{- end -}}

{{- define "clusterhub.imageName" -}}
{{- $root := index . 0 }}
{{- $image := (index . 1).image }}
{{- with $image.registry | default $root.Values.imageRegistry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if or $image.tag (not $image.digest) }}:{{ $image.tag | default $root.Chart.AppVersion }}{{ end }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{- /* The lines of a container that say its image: a list of the root and the values of the component. */ -}}
{{- define "clusterhub.image" }}
        image: {{ include "clusterhub.imageName" . }}
{{- with (index . 1).image.pullPolicy }}
        imagePullPolicy: {{ . }}
{{- end }}
{{- end -}}

{{- define "clusterhub.extraArgs" -}}
{{- range .extraArgs }}
        - {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "clusterhub.env" -}}
{{- with .extraEnv }}
        env:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- end -}}

{{- define "clusterhub.resources" -}}
{{- with .resources }}
        resources:
          {{- toYaml . | nindent 10 }}
{{- end }}
{{- end -}}

{{- define "clusterhub.replicas" -}}
{{- if not (kindIs "invalid" .replicas) }}
  replicas: {{ .replicas }}
{{- end }}
{{- end -}}

{{- define "clusterhub.podMetadata" -}}
{{- with .podLabels }}
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- with .podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- end -}}

{{- /* Not on one machine, nor in one zone, where there are others. */ -}}
{{- define "clusterhub.spread" }}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        matchLabelKeys: ["pod-template-hash"]
        labelSelector:
          matchLabels:
            app.kubernetes.io/name: {{ . }}
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        matchLabelKeys: ["pod-template-hash"]
        labelSelector:
          matchLabels:
            app.kubernetes.io/name: {{ . }}
{{- end -}}

{{- /* Where pods run: a list of the root and the values of the component. */ -}}
{{- define "clusterhub.scheduling" -}}
{{- $root := index . 0 }}
{{- $component := index . 1 }}
{{- with $component.priorityClassName }}
      priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
      {{- toYaml . | nindent 6 }}
{{- end }}
{{- with $component.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- with $component.tolerations }}
      tolerations:
      {{- toYaml . | nindent 6 }}
{{- end }}
{{- with $component.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- end -}}

{{- define "clusterhub.volumes" -}}
{{- with .extraVolumes }}
      volumes:
      {{- toYaml . | nindent 6 }}
{{- end }}
{{- end -}}

{{- define "clusterhub.volumeMounts" -}}
{{- with .extraVolumeMounts }}
        volumeMounts:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- end -}}

{{- /* The arguments that hub-controller-manager and hub-certificate-approver have to be told alike. */ -}}
{{- define "clusterhub.registrationArgs" -}}
{{- with .Values.registration.drivers }}
        - --registration-drivers={{ join "," . }}
{{- end }}
{{- if .Values.registration.autoApproval.enabled }}
        - --feature-gates=ManagedClusterAutoApproval=true
{{- with .Values.registration.autoApproval.csrIdentities }}
        - {{ printf "--auto-approved-csr-identities=%s" (join "," .) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The Secret with a serving certificate that hub-apiserver does not make itself. */ -}}
{{- define "clusterhub.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled }}hub-apiserver-tls{{ else }}{{ .Values.tls.existingSecret }}{{ end }}
{{- end -}}

{{- /* By this value kube-apiserver does not take back an APIService that it had made before for a CustomResourceDefinition of the same version, such as
  that of an agent of works. */ -}}
{{- define "clusterhub.apiServiceLabels" }}
  labels:
    kube-aggregator.kubernetes.io/automanaged: "false"
    {{- include "clusterhub.moreLabels" . }}
{{- end -}}

{{- /* cert-manager writes the caBundle, for which it wants to be asked. */ -}}
{{- define "clusterhub.apiServiceAnnotations" -}}
{{- $annotations := deepCopy .Values.apiServices.annotations }}
{{- if .Values.tls.certManager.enabled }}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/hub-apiserver" .Release.Namespace) }}
{{- end }}
{{- include "clusterhub.annotations" $annotations }}
{{- end -}}

{{- /* hub-apiserver writes the caBundle, unless it is given a certificate. */ -}}
{{- define "clusterhub.caBundle" -}}
{{- with .Values.tls.caBundle }}
  caBundle: {{ . }}
{{- end }}
{{- end -}}

{{- /* An object of one of the files, with the labels of all and those of its values: a dict of root, object, labels. */ -}}
{{- define "clusterhub.labelled" -}}
{{- $metadata := .object.metadata }}
{{- with merge (dict) (.labels | default dict) .root.Values.commonLabels (get $metadata "labels" | default dict) }}
{{- $_ := set $metadata "labels" . }}
{{- end }}
{{- toYaml .object }}
{{- end -}}

{{- /* What the schema cannot say, because it is about several values. */ -}}
{{- define "clusterhub.check" -}}
{{- if eq .Values.etcd.mode "embedded" }}
{{- if gt (int (.Values.hubApiserver.replicas | default 1)) 1 }}
{{- fail "hubApiserver.replicas: with etcd.mode=embedded there is one replica, because the volume can be used by one pod at a time. Leave it out, or set etcd.mode=external." }}
{{- end }}
{{- else if not .Values.etcd.external.endpoints }}
{{- fail "etcd.external.endpoints: with etcd.mode=external, say where the members of the etcd are, such as https://etcd.etcd.svc:2379." }}
{{- end }}
{{- if and .Values.tls.existingSecret .Values.tls.certManager.enabled }}
{{- fail "tls.existingSecret: with tls.certManager.enabled, cert-manager makes the Secret. Set one of them." }}
{{- end }}
{{- if and .Values.tls.caBundle (not .Values.tls.existingSecret) }}
{{- fail "tls.caBundle: it is the CA of tls.existingSecret. Without that, another writes the CA into the APIServices. Leave it out, or set both." }}
{{- end }}
{{- if and .Values.registration.upstreamAgents (not .Values.registration.bootstrap) }}
{{- fail "registration.upstreamAgents: the rights are for bootstrap tokens. Set registration.bootstrap=true as well." }}
{{- end }}
{{- end -}}

{{- /* What the page needs, whose parts the schema cannot want only where it is deployed. */ -}}
{{- define "clusterhub.checkUI" -}}
{{- with .Values.ui }}
{{- if not .hosts }}
{{- fail "ui.hosts: say by which name browsers open the page, such as hub.example.com. Others are refused." }}
{{- end }}
{{- if or (not .oidc.issuerURL) (not .oidc.clientID) }}
{{- fail "ui.oidc: say where users log in, by issuerURL and clientID." }}
{{- end }}
{{- if not .proxy.image.repository }}
{{- fail "ui.proxy.image.repository: say where the image of oauth2-proxy is. There is no default." }}
{{- end }}
{{- if not (or .proxy.image.tag .proxy.image.digest) }}
{{- fail "ui.proxy.image: say which image of oauth2-proxy, by its tag or digest." }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The lines of the proxy's container that say its image, which has another version than the hub. */ -}}
{{- define "clusterhub.proxyImage" -}}
{{- $image := .Values.ui.proxy.image }}
        image: {{ with $image.registry | default .Values.imageRegistry }}{{ . }}/{{ end }}{{ $image.repository -}}
               {{- with $image.tag }}:{{ . }}{{ end -}}
               {{- with $image.digest }}@{{ . }}{{ end }}
{{- with $image.pullPolicy }}
        imagePullPolicy: {{ . }}
{{- end }}
{{- end -}}
