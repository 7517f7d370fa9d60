// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// Issuer signs the tokens of ServiceAccounts like the EKS cluster of an OIDC provider, for tests without a kube-apiserver.
type Issuer struct {
	// URL is the issuer, and Provider its name in policies.
	URL, Provider string

	key    *ecdsa.PrivateKey
	server *Server
}

// Token returns a token for AWS of a ServiceAccount: system:serviceaccount:<namespace>:<name>.
func (i *Issuer) Token(subject string, lifetime time.Duration) (string, error) {
	now := time.Now()
	body, err := json.Marshal(map[string]any{
		"iss": i.URL, "sub": subject, "aud": []string{"sts.amazonaws.com"},
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(lifetime).Unix(),
	})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"ES256"}`)) + "." + encode(body)
	hash := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, hash[:])
	if err != nil {
		return "", err
	}
	const size = 32 // of P-256
	signature := make([]byte, 2*size)
	r.FillBytes(signature[:size])
	s.FillBytes(signature[size:])
	return signed + "." + encode(signature), nil
}

// PodEnv returns the environment of a pod in EKS whose ServiceAccount has a role, with which the SDK's default configuration assumes that role by web
// identity. It writes the token, which is valid for a day, to a file in dir.
func (i *Issuer) PodEnv(dir, roleARN, subject string) (map[string]string, error) {
	token, err := i.Token(subject, 24*time.Hour)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return nil, err
	}
	env := i.server.Env()
	maps.Copy(env, map[string]string{
		"AWS_ROLE_ARN": roleARN, "AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_SESSION_NAME": "pod",
		// Ignore the settings of the user who runs the test.
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_PROFILE": "", "AWS_REGION": "",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "",
		// The SDK would read all its certificates each time that its configuration is loaded.
		"AWS_CA_BUNDLE": "",
	})
	return env, nil
}
