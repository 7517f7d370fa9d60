// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package jwt

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"math/big"
	"strings"
)

// Token is a JSON Web Token whose signature is not verified yet.
type Token struct {
	Issuer    string         `json:"iss"`
	Subject   string         `json:"sub"`
	Audience  iampolicy.List `json:"aud"`
	Expiry    float64        `json:"exp"`
	NotBefore float64        `json:"nbf"`

	algorithm string
	signed    string
	signature []byte
}

func Parse(raw string) (*Token, error) {
	part := strings.Split(raw, ".")
	if len(part) != 3 {
		return nil, errors.New("it has not three parts")
	}
	var decoded [3][]byte
	for i := range part {
		var err error
		decoded[i], err = base64.RawURLEncoding.DecodeString(part[i])
		if err != nil {
			return nil, err
		}
	}
	var header struct {
		Alg  string
		Crit []string
	}
	if err := json.Unmarshal(decoded[0], &header); err != nil {
		return nil, err
	}
	if header.Crit != nil {
		return nil, errors.New("it has critical headers")
	}
	t := &Token{algorithm: header.Alg, signed: part[0] + "." + part[1], signature: decoded[2]}
	return t, json.Unmarshal(decoded[1], t)
}

// SignedBy verifies the signature. The type of the key determines the algorithm, and not the token alone.
func (t *Token) SignedBy(key crypto.PublicKey) bool {
	hash := sha256.Sum256([]byte(t.signed))
	switch k := key.(type) {
	case *rsa.PublicKey:
		return t.algorithm == "RS256" && rsa.VerifyPKCS1v15(k, crypto.SHA256, hash[:], t.signature) == nil
	case *ecdsa.PublicKey:
		if t.algorithm != "ES256" || k.Curve != elliptic.P256() || len(t.signature) != 64 {
			return false
		}
		return ecdsa.Verify(k, hash[:], new(big.Int).SetBytes(t.signature[:32]), new(big.Int).SetBytes(t.signature[32:]))
	}
	return false
}

// JWK is a public key as JSON.
type JWK struct{ Kty, Crv, N, E, X, Y string }

func (k JWK) Public() (crypto.PublicKey, error) {
	decode := func(s string) []byte {
		b, _ := base64.RawURLEncoding.DecodeString(s) // missing values are detected below
		return b
	}
	switch {
	case k.Kty == "RSA" && k.N != "" && k.E != "":
		return &rsa.PublicKey{N: new(big.Int).SetBytes(decode(k.N)), E: int(new(big.Int).SetBytes(decode(k.E)).Int64())}, nil
	case k.Kty == "EC" && k.Crv == "P-256":
		point := bytes.Join([][]byte{{4}, decode(k.X), decode(k.Y)}, nil)
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	}
	return nil, fmt.Errorf("a key of type %q %q; want RSA or EC P-256", k.Kty, k.Crv)
}
