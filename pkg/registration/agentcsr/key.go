// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentcsr

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// KeySHA256 returns the SHA-256 of a public key (SubjectPublicKeyInfo, DER), in lower-case hex. Keys are compared by it.
func KeySHA256(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// PlannedKey returns the key that is pinned when a cluster with these annotations is accepted, as KeySHA256 spells it: empty if it names none, and
// registration.UndecidedKey if the value cannot be a key.
func PlannedKey(annotations map[string]string) string {
	key := strings.ToLower(annotations[registration.AnnotationAgentKey])
	if sum, err := hex.DecodeString(key); key != "" && (err != nil || len(sum) != sha256.Size) {
		return registration.UndecidedKey
	}
	return key
}
