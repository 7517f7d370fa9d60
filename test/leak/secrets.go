// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
)

var (
	webToken       = regexp.MustCompile(`eyJ[\w-]+\.eyJ[\w-]+\.([\w-]{20,})`)
	bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.([a-z0-9]{16})\b`)
)

// AddFrom adds what is secret in a text, such as a kubeconfig or a file of keys: the secret numbers of private keys, which
// say in every encoding of a key that it is one, the signatures of tokens and the second part of bootstrap tokens. It
// returns how many there are.
func (s Secrets) AddFrom(name string, text []byte) (count int) {
	added := map[string]bool{}
	add := func(value []byte) {
		if added[string(value)] {
			return
		}
		added[string(value)] = true
		count++
		s[fmt.Sprintf("%s (%d)", name, count)] = value
	}
	for _, text := range append(base64s(text), text) {
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			for _, number := range secretNumbers(block.Bytes) {
				add(number)
			}
		}
		for _, pattern := range []*regexp.Regexp{webToken, bootstrapToken} {
			for _, match := range pattern.FindAllSubmatch(text, -1) {
				add(match[1])
			}
		}
	}
	return count
}

// secretNumbers are those of a private key, and none of anything else.
func secretNumbers(der []byte) [][]byte {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if ec, e := x509.ParseECPrivateKey(der); e == nil {
		key, err = ec, nil
	}
	if r, e := x509.ParsePKCS1PrivateKey(der); e == nil {
		key, err = r, nil
	}
	if err != nil {
		return nil
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		scalar, _ := key.Bytes() // of a known curve
		return [][]byte{scalar}
	case *rsa.PrivateKey:
		numbers := [][]byte{key.D.Bytes()}
		for _, prime := range key.Primes {
			numbers = append(numbers, prime.Bytes())
		}
		return numbers
	}
	return nil
}
