// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeoidc

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// login is the state of an issuer for users who log in with a browser.
type login struct {
	mu sync.Mutex
	// claims are the claims of the next user who logs in.
	claims map[string]any
	// asked has the parameters of the request for each code, and tokens the issued tokens.
	asked  map[string]url.Values
	tokens []string
}

// LogsIn sets the user who logs in from now on, without a password.
func (i *Issuer) LogsIn(claims map[string]any) {
	i.login.mu.Lock()
	defer i.login.mu.Unlock()
	i.login.claims = claims
}

// Tokens returns the ID tokens that were issued to users who have logged in.
func (i *Issuer) Tokens() []string {
	i.login.mu.Lock()
	defer i.login.mu.Unlock()
	return slices.Clone(i.login.tokens)
}

// authorize redirects the browser with a code.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.login.mu.Lock()
	defer i.login.mu.Unlock()
	asked := r.URL.Query()
	back, err := url.Parse(asked.Get("redirect_uri"))
	if err != nil || asked.Get("response_type") != "code" || i.login.claims == nil {
		http.Error(w, "expected response_type=code and a redirect_uri, and a user who logs in", http.StatusBadRequest)
		return
	}
	if i.login.asked == nil {
		i.login.asked = map[string]url.Values{}
	}
	code := fmt.Sprintf("code-%d", len(i.login.asked))
	i.login.asked[code] = asked
	back.RawQuery = url.Values{"code": {code}, "state": {asked.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// exchange issues tokens for a code.
func (i *Issuer) exchange(t testing.TB, w http.ResponseWriter, r *http.Request) {
	i.login.mu.Lock()
	defer i.login.mu.Unlock()
	asked, ok := i.login.asked[r.FormValue("code")]
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if challenge := asked.Get("code_challenge"); !ok || challenge != "" && challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	delete(i.login.asked, r.FormValue("code"))
	i.login.asked[r.FormValue("code")+" used"] = nil // so that each code is used once
	claims := map[string]any{"aud": asked.Get("client_id"), "nonce": asked.Get("nonce")}
	for name, value := range i.login.claims {
		claims[name] = value
	}
	token := i.Token(t, claims)
	i.login.tokens = append(i.login.tokens, token)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "access-" + r.FormValue("code"), "token_type": "Bearer", "expires_in": 3600, "id_token": token})
}
