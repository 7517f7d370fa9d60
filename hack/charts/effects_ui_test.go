// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"maps"
	"strings"
)

// uiEffects returns the effects of the values of the page.
func uiEffects() map[string]effect {
	const (
		settings = `enabled: true, hosts: [hub.example.com], oidc: {issuerURL: "https://login", clientID: hub}, proxy: {image: {repository: p, tag: v1}}`
		with     = `ui: {` + settings + `}`
		ingress  = `ui: {` + settings + `, ingress: {enabled: true}}`
		pod      = "Deployment hub-ui spec.template.spec."
		page     = pod + "containers[hub-ui]."
		proxy    = pod + "containers[proxy]."
	)
	all := component{"ui", "hub-ui", "containers[hub-ui]", "hub-ui", "clusterhub/hub-ui", "", with}.effects()
	// The volumes are those of the proxy.
	all["ui.extraVolumeMounts"] = effect{`[{name: a}]`, []string{"+ " + proxy + "volumeMounts[a].name: a"}, with}
	replaced := func(field, from, to string) []string { return []string{"- " + field + from, "+ " + field + to} }
	maps.Copy(all, map[string]effect{
		"ui.enabled": {`true`, []string{"+ Deployment hub-ui", "+ ServiceAccount hub-ui", "+ Service hub-ui", "+ PodDisruptionBudget hub-ui", "+ NetworkPolicy hub-ui"},
			strings.Replace(with, "enabled: true, ", "", 1)},
		"ui.hosts":             {`[other.example.com]`, replaced(page+"args: --allowed-host=", "hub.example.com", "other.example.com"), with},
		"ui.oidc.issuerURL":    {`https://other`, replaced(proxy+"args: --oidc-issuer-url=", "https://login", "https://other"), with},
		"ui.oidc.clientID":     {`other`, replaced(proxy+"args: --client-id=", "hub", "other"), with},
		"ui.oidc.secretName":   {`other`, replaced(pod+"volumes[oidc].secret.secretName: ", "hub-ui-oidc", "other"), with},
		"ui.oidc.scopes":       {`[openid]`, replaced(proxy+"args: --scope=", "openid email profile groups", "openid"), with},
		"ui.oidc.emailDomains": {`[a.example.com]`, replaced(proxy+"args: --email-domain=", "*", "a.example.com"), with},

		"ui.proxy.image.registry":   {`r.example.com`, replaced(proxy+"image: ", "p:v1", "r.example.com/p:v1"), with},
		"ui.proxy.image.repository": {`other`, replaced(proxy+"image: ", "p:v1", "other:v1"), with},
		"ui.proxy.image.tag":        {`v2`, replaced(proxy+"image: ", "p:v1", "p:v2"), with},
		"ui.proxy.image.digest":     {`sha256:` + strings.Repeat("a", 64), replaced(proxy+"image: ", "p:v1", "p:v1@sha256:"+strings.Repeat("a", 64)), with},
		"ui.proxy.image.pullPolicy": {`Always`, []string{"+ " + proxy + "imagePullPolicy: Always"}, with},
		"ui.proxy.resources":        {`{limits: {cpu: 9}}`, []string{"+ " + proxy + "resources.limits.cpu: 9"}, with},
		"ui.proxy.extraArgs":        {`[--x]`, []string{"+ " + proxy + "args: --x"}, with},

		"ui.tlsSecretName": {`mine`, []string{
			"- " + proxy + "args: --http-address=0.0.0.0:4180", "+ " + proxy + "args: --http-address=-", "- " + proxy + "args: --reverse-proxy=true",
			"+ " + proxy + "args: --https-address=*", "+ " + proxy + "args: --tls-*-file=*", "+ " + proxy + "*Probe.httpGet.scheme: HTTPS",
			"+ " + proxy + "volumeMounts[tls].*", "+ " + pod + "volumes[tls].*", "- Service hub-ui spec.ports[http].*", "+ Service hub-ui spec.ports[https].*"}, with},
		"ui.ingress.enabled":       {`true`, []string{"+ Ingress hub-ui"}, with},
		"ui.ingress.className":     {`public`, []string{"+ Ingress hub-ui spec.ingressClassName: public"}, ingress},
		"ui.ingress.annotations":   {`{a: b}`, []string{"+ Ingress hub-ui metadata.annotations.a: b"}, ingress},
		"ui.ingress.tlsSecretName": {`mine`, []string{"+ Ingress hub-ui spec.tls[0].secretName: mine"}, ingress},
		"ui.replicas":              {`5`, replaced("Deployment hub-ui spec.replicas: ", "2", "5"), with},
	})
	return all
}
