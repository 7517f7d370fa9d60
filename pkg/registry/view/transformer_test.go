// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"bytes"
	"crypto/aes"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
)

func encryption(t *testing.T, name string) value.Transformer {
	t.Helper()
	block, err := aes.NewCipher(bytes.Repeat([]byte(name[:1]), 32))
	must(t, err)
	gcm, err := aestransformer.NewGCMTransformer(block)
	must(t, err)
	// Like the encryption provider "aesgcm", without "identity" after it.
	return value.NewPrefixTransformers(nil, value.PrefixTransformer{Prefix: []byte("k8s:enc:aesgcm:v1:" + name + ":"), Transformer: gcm})
}

func TestMembers_ResourcesEncryptedDifferently(t *testing.T) {
	for _, encrypted := range []string{"managedclusters", "managedclustersets", "managedclusters managedclustersets"} {
		t.Run(encrypted, func(t *testing.T) {
			transformers := map[string]value.Transformer{}
			for resource := range strings.FieldsSeq(encrypted) {
				transformers[resource] = encryption(t, resource)
			}
			h := newEncryptedHubOn(t, sharedEtcd, transformers)
			h.set("a", labelled("region=apac"))
			h.cluster("c1", labelled("region=apac"))
			h.front.allow("ann", "a")
			ann := h.client(h.replica(), someone("ann"))
			ann.awaitNames("c1.a")
			h.cluster("c2", labelled("region=apac"))
			h.set("b", labelled("region=apac"))
			expectNames(t, ann.names(), "c1.a", "c2.a")
			// A second replica reads the visibility revision that the first has written.
			h.client(h.replica(), someone("ann")).awaitNames("c1.a", "c2.a")
		})
	}
}
