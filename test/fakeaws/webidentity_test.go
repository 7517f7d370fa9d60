// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
)

const (
	issuer         = "https://oidc.eks.us-west-2.amazonaws.com/id/ABC"
	serviceAccount = "system:serviceaccount:open-cluster-management-hub:registration-controller-sa"
)

type claims map[string]any

// goodClaims returns the claims of a ServiceAccount's token from a kube-apiserver.
func goodClaims() claims {
	return claims{
		"iss": issuer, "sub": serviceAccount, "aud": []string{"sts.amazonaws.com"},
		"exp": time.Now().Add(time.Hour).Unix(), "nbf": time.Now().Unix(), "iat": time.Now().Unix(),
	}
}

// signToken creates a token with a key of RSA or ECDSA.
func signToken(t *testing.T, key crypto.Signer, header, body claims) string {
	t.Helper()
	encode := func(v any) string { return base64.RawURLEncoding.EncodeToString(must(json.Marshal(v))(t)) }
	signed := encode(header) + "." + encode(body)
	hash := sha256.Sum256([]byte(signed))
	var signature []byte
	switch k := key.(type) {
	case *rsa.PrivateKey:
		signature = must(rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, hash[:]))(t)
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, k, hash[:])
		noError(t, nil, err)
		signature = s.FillBytes(make([]byte, 64))
		copy(signature, r.FillBytes(make([]byte, 32)))
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// creatorTrust returns the specified trust policy of the hub's role.
func creatorTrust(provider string) string {
	name := strings.TrimPrefix(issuer, "https://")
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Federated":%q},
		"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"StringEquals":{"%s:sub":%q,"%s:aud":"sts.amazonaws.com"}}}]}`,
		provider, name, serviceAccount, name)
}

type webIdentityWorld struct {
	*world
	role    string
	key     *ecdsa.PrivateKey
	unknown *sts.Client // has no credentials
}

func newWebIdentityWorld(t *testing.T) *webIdentityWorld {
	t.Helper()
	w := &webIdentityWorld{world: newWorld(t), key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)}
	provider := w.hub.AddOIDCProvider(issuer, []crypto.PublicKey{w.key.Public()})
	w.role = must(w.hub.AddRole(Role{
		Name: "hub_managed-cluster-identity-creator", Trust: creatorTrust(provider), Policies: map[string]string{"eks": allow("eks:*", "*")},
	}))(t)
	anonymous := w.hub.Config(Credentials{})
	anonymous.Credentials = nil
	w.unknown = sts.NewFromConfig(anonymous)
	return w
}

func (w *webIdentityWorld) assume(t *testing.T, token string) (*sts.AssumeRoleWithWebIdentityOutput, error) {
	return w.unknown.AssumeRoleWithWebIdentity(t.Context(), &sts.AssumeRoleWithWebIdentityInput{
		RoleArn: &w.role, RoleSessionName: aws.String("controller"), WebIdentityToken: &token,
	})
}

func TestWebIdentity_ServiceAccountTokenAssumesRole(t *testing.T) {
	w := newWebIdentityWorld(t)
	out := must(w.assume(t, signToken(t, w.key, claims{"alg": "ES256", "kid": "1"}, goodClaims())))(t)
	if *out.SubjectFromWebIdentityToken != serviceAccount || *out.Audience != "sts.amazonaws.com" {
		t.Errorf("subject %s, audience %s", *out.SubjectFromWebIdentityToken, *out.Audience)
	}
	c := clientsOf(w.hub.Config(Credentials{*out.Credentials.AccessKeyId, *out.Credentials.SecretAccessKey, *out.Credentials.SessionToken}))
	who := must(c.sts.GetCallerIdentity(t.Context(), nil))(t)
	if want := "arn:aws:sts::" + hubID + ":assumed-role/hub_managed-cluster-identity-creator/controller"; *who.Arn != want {
		t.Errorf("caller %s, want %s", *who.Arn, want)
	}
}

func TestIssuer_TokensAssumeRole(t *testing.T) {
	w := newWebIdentityWorld(t)
	i := must(w.hub.AddIssuer(strings.TrimPrefix(issuer, "https://")))(t)
	noError(t, nil, second(w.assume(t, must(i.Token(serviceAccount, time.Hour))(t))))
	_, err := w.assume(t, must(i.Token(serviceAccount+"-2", time.Hour))(t))
	wantCode(t, err, "AccessDenied", "")
	_, err = w.assume(t, must(i.Token(serviceAccount, -time.Second))(t))
	wantCode(t, err, "ExpiredTokenException", "")
}

func TestWebIdentity_OtherTokensAreRejected(t *testing.T) {
	w := newWebIdentityWorld(t)
	with := func(change claims) claims {
		c := goodClaims()
		maps.Copy(c, change)
		return c
	}
	es256 := claims{"alg": "ES256"}
	foreign := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	good := signToken(t, w.key, es256, goodClaims())
	for name, tc := range map[string]struct{ token, code string }{
		"another ServiceAccount": {signToken(t, w.key, es256, with(claims{"sub": "system:serviceaccount:default:default"})), "AccessDenied"},
		"another audience":       {signToken(t, w.key, es256, with(claims{"aud": "https://kubernetes.default.svc"})), "InvalidIdentityToken"},
		"another issuer":         {signToken(t, w.key, es256, with(claims{"iss": issuer + "D"})), "InvalidIdentityToken"},
		"issuer without TLS":     {signToken(t, w.key, es256, with(claims{"iss": strings.Replace(issuer, "https", "http", 1)})), "InvalidIdentityToken"},
		"another key":            {signToken(t, foreign, es256, goodClaims()), "InvalidIdentityToken"},
		"algorithm none":         {signToken(t, w.key, claims{"alg": "none"}, goodClaims()), "InvalidIdentityToken"},
		"no signature":           {good[:strings.LastIndex(good, ".")+1], "InvalidIdentityToken"},
		"changed":                {strings.Replace(good, ".", ".e30", 1), "InvalidIdentityToken"},
		"not a token":            {"abcdef", "InvalidIdentityToken"},
		"no subject":             {signToken(t, w.key, es256, with(claims{"sub": ""})), "InvalidIdentityToken"},
		"expired":                {signToken(t, w.key, es256, with(claims{"exp": time.Now().Add(-time.Second).Unix()})), "ExpiredTokenException"},
		"without expiry":         {signToken(t, w.key, es256, with(claims{"exp": 0})), "ExpiredTokenException"},
		"not yet valid":          {signToken(t, w.key, es256, with(claims{"nbf": time.Now().Add(time.Hour).Unix()})), "InvalidIdentityToken"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.assume(t, tc.token)
			wantCode(t, err, tc.code, "")
			switch tc.code {
			case "InvalidIdentityToken":
				wantType[*types.InvalidIdentityTokenException](t, err)
			case "ExpiredTokenException":
				wantType[*types.ExpiredTokenException](t, err)
			}
		})
	}
	w.role = "arn:aws:iam::" + hubID + ":role/missing"
	_, err := w.assume(t, good)
	wantCode(t, err, "AccessDenied", "")
	for _, provider := range []string{"arn:aws:iam::" + managedID + ":oidc-provider/" + issuer[len("https://"):], "arn:aws:iam::" + hubID + ":oidc-provider/other"} {
		w.role = must(w.hub.AddRole(Role{Name: newID("r"), Trust: creatorTrust(provider)}))(t)
		_, err = w.assume(t, good)
		wantCode(t, err, "AccessDenied", "")
	}
	w.role = must(w.hub.AddRole(Role{Name: "other", Trust: trust("*")}))(t)
	_, err = w.assume(t, good)
	wantCode(t, err, "AccessDenied", "") // its trust is for AssumeRole only
}

func TestWebIdentity_JWKS(t *testing.T) {
	w := newWebIdentityWorld(t)
	rsaKey := must(rsa.GenerateKey(rand.Reader, 2048))(t)
	b64 := base64.RawURLEncoding.EncodeToString
	point := must(w.key.PublicKey.Bytes())(t)
	jwks := fmt.Sprintf(`{"keys":[{"use":"sig","kty":"RSA","kid":"a","alg":"RS256","n":%q,"e":"AQAB"},
		{"use":"sig","kty":"EC","kid":"b","crv":"P-256","alg":"ES256","x":%q,"y":%q}]}`, b64(rsaKey.N.Bytes()), b64(point[1:33]), b64(point[33:]))
	must(w.hub.AddOIDCProviderJWKS(issuer, []byte(jwks)))(t)
	for alg, key := range map[string]crypto.Signer{"RS256": rsaKey, "ES256": w.key} {
		noError(t, nil, second(w.assume(t, signToken(t, key, claims{"alg": alg}, goodClaims()))))
	}
	_, err := w.assume(t, signToken(t, rsaKey, claims{"alg": "ES256"}, goodClaims()))
	wantCode(t, err, "InvalidIdentityToken", "")
	foreign := must(rsa.GenerateKey(rand.Reader, 2048))(t)
	_, err = w.assume(t, signToken(t, foreign, claims{"alg": "RS256"}, goodClaims()))
	wantCode(t, err, "InvalidIdentityToken", "")
	for _, bad := range []string{"{", `{"keys":[{"kty":"oct"}]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`} {
		if _, err := w.hub.AddOIDCProviderJWKS(issuer, []byte(bad)); err == nil {
			t.Errorf("JWKS %s was taken", bad)
		}
	}
}

// TestWebIdentity_SDKDefaultChain uses the SDK's default chain, as a pod with IRSA does.
func TestWebIdentity_SDKDefaultChain(t *testing.T) {
	w := newWebIdentityWorld(t)
	file := filepath.Join(t.TempDir(), "token")
	noError(t, nil, os.WriteFile(file, []byte(signToken(t, w.key, claims{"alg": "ES256"}, goodClaims())), 0o600))
	env := w.Env()
	maps.Copy(env, map[string]string{
		"AWS_REGION": region, "AWS_ROLE_ARN": w.role, "AWS_ROLE_SESSION_NAME": "pod", "AWS_WEB_IDENTITY_TOKEN_FILE": file,
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	})
	for key, value := range env {
		t.Setenv(key, value)
	}
	c := clientsOf(must(config.LoadDefaultConfig(t.Context()))(t))
	who := must(c.sts.GetCallerIdentity(t.Context(), nil))(t)
	if !strings.HasSuffix(*who.Arn, ":assumed-role/hub_managed-cluster-identity-creator/pod") {
		t.Errorf("caller %s", *who.Arn)
	}
	noError(t, nil, second(c.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("hub")})))
	if n := w.Count("sts:AssumeRoleWithWebIdentity"); n != 1 {
		t.Errorf("%d sessions, want one for all clients", n)
	}
}
