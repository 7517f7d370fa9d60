// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// FuzzDecode: a valid Secret is written as it was read, and no error contains any part of a key.
func FuzzDecode(f *testing.F) {
	first, err := newAuthority(time.Unix(1700000000, 0))
	if err != nil {
		f.Fatal(err)
	}
	secretKey, err := first.keyPEM()
	if err != nil {
		f.Fatal(err)
	}
	cert, key := encodeCertificates(first.cert), secretKey
	f.Add(cert, key, cert, []byte{}, []byte{}, "")
	f.Add(cert, key, cert, cert, key, "2026-01-02T03:04:05Z")
	f.Add(key, cert, cert, cert, key, "yesterday")
	f.Add(cert, []byte("-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----\n"), cert, cert, []byte{}, "")
	f.Add(cert, key[:len(key)/2], []byte{}, []byte{}, []byte{}, "")
	f.Fuzz(func(t *testing.T, cert, key, bundle, nextCert, nextKey []byte, nextFrom string) {
		secret := &corev1.Secret{Data: map[string][]byte{keyCert: cert, keyKey: key, keyBundle: bundle}}
		secret.Labels, secret.Annotations = map[string]string{labelManagedBy: managedBy}, map[string]string{annotationNextFrom: nextFrom}
		if len(nextCert)+len(nextKey) > 0 {
			secret.Data[keyNextCert], secret.Data[keyNextKey] = nextCert, nextKey
		}
		c, err := decode(secret)
		if err != nil {
			if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "hunter2") || leaks(text, secretKey) {
				t.Errorf("the error is %q", text)
			}
			return
		}
		written, err := newSecret("ns", c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(written)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		twice, err := newSecret("ns", again)
		if err != nil || !reflect.DeepEqual(written, twice) {
			t.Errorf("%v: %v became %v", err, written, twice)
		}
	})
}
