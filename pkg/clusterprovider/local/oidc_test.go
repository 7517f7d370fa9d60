// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// issuer is an OIDC provider with one key.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	encode := base64.RawURLEncoding.EncodeToString
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	i.Server = httptest.NewTLSServer(mux)
	t.Cleanup(i.Close)
	return i
}

// token signs claims; what it does not give has a default.
func (i *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	all := map[string]any{
		"iss": i.URL, "aud": "kubectl", "sub": "ann", "groups": []string{"devs"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range claims {
		all[name] = value
	}
	segment := func(from any) string {
		data, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	signed := segment(map[string]any{"alg": "RS256", "typ": "JWT", "kid": "1"}) + "." + segment(all)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (i *issuer) provider(name, clientID string) v1alpha1.OIDCProviderConfig {
	provider := v1alpha1.OIDCProviderConfig{Name: name, Issuer: i.URL, ClientID: clientID}
	return *provider.Default()
}

func TestTrustOIDC(t *testing.T) {
	options := testOptions(t)
	corp, other, gone := newIssuer(t), newIssuer(t), newIssuer(t)
	// All of them have the certificate of httptest.
	options.IssuerCAFile = filepath.Join(t.TempDir(), "issuers.crt")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: corp.Certificate().Raw})
	if err := os.WriteFile(options.IssuerCAFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	p, object := newProvider(t, options), newCluster("blue")
	ensure(t, p, object)
	admin, _ := adminOf(t, p, object)

	login := func(token string) (user string, groups []string, err error) {
		info, err := whoAmI(t.Context(), clientOf(t, withToken(admin, token)))
		return info.Username, info.Groups, err
	}
	succeeds := func(token, wantUser string, wantGroup string) {
		t.Helper()
		user, groups, err := login(token)
		if err != nil || user != wantUser || !slices.Contains(groups, wantGroup) {
			t.Errorf("somebody is %q in %v (%v), want %q in %q", user, groups, err, wantUser, wantGroup)
		}
	}
	fails := func(why, token string) {
		t.Helper()
		if user, groups, err := login(token); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: somebody is %q in %v (%v)", why, user, groups, err)
		}
	}
	trust := func(providers ...v1alpha1.OIDCProviderConfig) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		started := time.Now()
		err := p.TrustOIDC(ctx, object, providers)
		t.Logf("TrustOIDC took %s", time.Since(started).Round(time.Millisecond))
		return err
	}

	fails("nobody is trusted yet", corp.token(t, nil))
	if err := trust(corp.provider("corp", "kubectl")); err != nil {
		t.Fatal(err)
	}
	succeeds(corp.token(t, nil), "corp:ann", "corp:devs")
	fails("another issuer", other.token(t, nil))
	fails("another audience", corp.token(t, map[string]any{"aud": "web"}))
	fails("an expired token", corp.token(t, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}))
	fails("another issuer's key", other.token(t, map[string]any{"iss": corp.URL}))
	only(t, p, apiServer, object.UID)

	t.Log("What cannot be trusted is said, and does not keep the rest from being trusted")
	bare := other.provider("bare", "kubectl")
	bare.UsernamePrefix, bare.GroupsPrefix, bare.UsernameClaim, bare.GroupsClaim = new(""), new("x-"), new("name"), new("teams")
	plain := corp.provider("plain", "kubectl")
	plain.Issuer = "http://127.0.0.1:1"
	own := corp.provider("own", "kubectl")
	own.Issuer = serviceAccountIssuer
	down := gone.provider("down", "kubectl")
	gone.Close()
	before := only(t, p, apiServer, object.UID)
	err := trust(plain, corp.provider("corp", "kubectl"), own, corp.provider("corp", "web"), down, bare,
		corp.provider("again", "kubectl"))
	for _, want := range []string{
		`"plain" cannot be trusted: jwt[0].issuer.url: Invalid value`, `"own" cannot be trusted`,
		`"down" cannot be trusted: the issuer cannot be reached`,
		`"again" cannot be trusted: the issuer ` + corp.URL + " is trusted with other claims",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error has no %s: %v", want, err)
		}
	}
	succeeds(corp.token(t, nil), "corp:ann", "corp:devs")
	succeeds(corp.token(t, map[string]any{"aud": "web"}), "corp:ann", "corp:devs")
	succeeds(other.token(t, map[string]any{"name": "bob", "teams": []string{"ops"}}), "bob", "x-ops")
	fails("a name of the cluster", other.token(t, map[string]any{"name": "system:admin"}))
	if after := only(t, p, apiServer, object.UID); after != before {
		t.Error("kube-apiserver was restarted")
	}

	t.Log("A restart keeps whom the cluster trusts")
	if err := p.cluster(object.UID).process(apiServer).kill(); err != nil {
		t.Fatal(err)
	}
	ensure(t, p, object)
	// It asks the issuers only now.
	eventually(t, "the issuers are asked", func() bool { _, _, err := login(corp.token(t, nil)); return err == nil })
	succeeds(corp.token(t, nil), "corp:ann", "corp:devs")
	if err := trust(corp.provider("corp", "kubectl"), corp.provider("corp", "web"), bare); err != nil {
		t.Fatal(err)
	}

	t.Log("Trust is taken back, also when another issuer is down")
	other.Close()
	if err := trust(bare); err != nil {
		t.Fatal(err)
	}
	ensure(t, p, object)
	fails("an issuer that is trusted no more", corp.token(t, nil))
	if err := trust(); err != nil {
		t.Fatal(err)
	}
}
