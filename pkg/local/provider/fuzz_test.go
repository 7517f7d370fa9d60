// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// FuzzIssuerAnswer: an accepted issuer sends a response that kube-apiserver accepts, since it would otherwise continue to trust the previous issuers;
// and the requester learns nothing about a response.
func FuzzIssuerAnswer(f *testing.F) {
	var status int
	var answer []byte
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	f.Cleanup(server.Close)
	p := &Provider{issuerCA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))}
	const secret = "hunter2-hunter2"
	const self = "{URL}" // replaced by the issuer's own URL
	for _, document := range []string{
		`{"issuer":"{URL}","jwks_uri":"{URL}/keys"}`, `{"issuer":"{URL}"}`, `{"issuer":"{URL}","jwks_uri":""}`, `{"issuer":"{URL}","jwks_uri":7}`,
		`{"issuer":"{URL}","jwks_uri":"{URL}/keys"} ` + secret, `{"issuer":"{URL}","jwks_uri":"{URL}/keys"}{}`, `{"issuer":"{URL}/","jwks_uri":"x"}`,
		`{"issuer":"https://other","issuer":"{URL}","jwks_uri":"x"}`, `{"ISSUER":"{URL}","Jwks_Uri":"x"}`, `{"issuer":"` + secret + `","jwks_uri":"x"}`,
		`{"issuer":"{URL}","jwks_uri":"x","id_token_signing_alg_values_supported":"RS256"}`, `{"issuer":"{URL}","jwks_uri":"x","token_endpoint":{}}`,
		`["{URL}"]`, "null", "", secret, "{", "\xff",
	} {
		f.Add(uint16(200), []byte(document))
	}
	f.Add(uint16(404), []byte(`{"issuer":"{URL}","jwks_uri":"x"}`))
	f.Add(uint16(201), []byte(`{"issuer":"{URL}","jwks_uri":"x"}`))
	f.Fuzz(func(t *testing.T, code uint16, document []byte) {
		status = int(code)
		if status < 200 || status > 599 || status >= 300 && status < 400 {
			return
		}
		answer = []byte(strings.ReplaceAll(string(document), self, server.URL))
		provider := (&v1alpha1.OIDCProviderConfig{Name: "corp", Issuer: server.URL, ClientID: "kubectl"}).Default()
		err := p.check(t.Context(), p.authenticator(provider), sets.New[string]())
		if err != nil {
			if !slices.Contains([]string{"it is not trusted: see the log of the provider", "it is not reachable: see the log of the provider"}, err.Error()) {
				t.Errorf("the response %q is reported as %q", answer, err)
			}
			return
		}
		var fields map[string]any
		if err := json.Unmarshal(answer, &fields); err != nil || status != http.StatusOK {
			t.Fatalf("%d %q is an OpenID configuration: %v", status, answer, err)
		}
		has := func(key string, ok func(any) bool) bool {
			for name, value := range fields {
				if strings.EqualFold(name, key) && ok(value) {
					return true
				}
			}
			return false
		}
		if !has("issuer", func(v any) bool { return v == server.URL }) || !has("jwks_uri", func(v any) bool { text, ok := v.(string); return ok && text != "" }) {
			t.Errorf("%q is the OpenID configuration of %s", answer, server.URL)
		}
		for name, value := range fields {
			if _, isText := value.(string); slices.Contains([]string{"authorization_endpoint", "token_endpoint", "userinfo_endpoint"}, name) && !isText && value != nil {
				t.Errorf("kube-apiserver does not take %q", answer)
			}
		}
	})
}
