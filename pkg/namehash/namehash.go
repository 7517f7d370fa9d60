// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namehash makes names of objects from names of others, as openMCP does, so that a program finds an object again
// without having written down its name.
package namehash

import (
	"crypto/sha3"
	"encoding/base32"
	"strings"
)

// alphabet is the base32 alphabet in small letters, so that a hash can be in the name of any object.
var alphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NameHash is a word of eight letters and digits for a series of names, none of which has a slash.
func NameHash(parts ...string) string {
	return alphabet.EncodeToString(sha3.SumSHAKE128([]byte(strings.Join(parts, "/")), 5))
}
