// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2/textlogger"
)

func key(t *testing.T) []byte {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// protobuf is a Secret as client-go reads it.
func protobuf(t *testing.T, value []byte) string {
	t.Helper()
	secret := corev1.Secret{Data: map[string][]byte{"tls.key": value}}
	data, err := secret.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(data)
}

func inJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// logged is a line as client-go logs a body.
func logged(body string) string {
	var out bytes.Buffer
	textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out))).Info("Response Body", "body", body)
	return out.String()
}

// TestFind_Planted hides a key in a log in each of the forms.
func TestFind_Planted(t *testing.T) {
	value := key(t)
	block, _ := pem.Decode(value)
	std := base64.StdEncoding.EncodeToString(value)
	dump := hex.Dump([]byte(protobuf(t, value)))
	for form, text := range map[string]string{
		"as it is":                    string(value),
		"quoted as in Go":             fmt.Sprintf("%q", value),
		"in JSON as text":             inJSON(t, string(value)),
		"in JSON as bytes":            inJSON(t, value),
		"a Secret in JSON, logged":    logged(inJSON(t, corev1.Secret{Data: map[string][]byte{"k": value}})),
		"a Secret in JSON, quoted":    fmt.Sprintf("%q", inJSON(t, corev1.Secret{Data: map[string][]byte{"k": value}})),
		"hex dump":                    dump,
		"hex dump, logged":            logged(dump),
		"hex dump, quoted":            fmt.Sprintf("%q", dump),
		"hex dump, times in front":    strings.ReplaceAll(dump, "\n", "\nI1122 01:02:03.000 "),
		"hex digits":                  hex.EncodeToString(value),
		"hex digits with colons":      strings.ReplaceAll(fmt.Sprintf("% x", block.Bytes), " ", ":"),
		"bytes in decimal":            fmt.Sprintf("%v", corev1.Secret{Data: map[string][]byte{"k": value}}),
		"bytes in Go":                 fmt.Sprintf("%#v", value),
		"base64":                      std,
		"base64 for URLs":             base64.RawURLEncoding.EncodeToString(value),
		"base64 of base64":            base64.StdEncoding.EncodeToString([]byte(std)),
		"base64 after other letters":  "prefix" + std,
		"base64 in lines":             strings.Join(slices.Collect(chunks(std, 76)), "\n"),
		"base64 in quoted lines":      strings.Join(slices.Collect(chunks(std, 76)), `\n`),
		"base64 in a query":           "?key=" + url.QueryEscape(std),
		"text in a query":             "?key=" + url.QueryEscape(string(value)),
		"the end is cut off":          std[:len(std)/2],
		"the beginning is cut off":    std[51:],
		"DER in a hex dump":           hex.Dump(block.Bytes),
		"JSON in JSON":                inJSON(t, inJSON(t, map[string]any{"k": string(value)})),
		"base64 in JSON in a hexdump": hex.Dump([]byte(inJSON(t, map[string]any{"data": value}))),
	} {
		log := []byte("I1122 harmless abcdefghijklmnopqrstuvwxyz0123456789\n" + text + "\nI1122 harmless\n")
		secrets := Secrets{}
		if secrets.AddFrom("key", value)+secrets.AddFrom("another", key(t)) != 2 {
			t.Fatalf("the secrets are %v", secrets)
		}
		if found := secrets.Find(log); !slices.Equal(found, []string{"key (1)"}) {
			t.Errorf("%s: %v is found in\n%s", form, found, log)
		}
	}
}

func TestFind_Short(t *testing.T) {
	const value = "0123456789abcdef"
	secrets := Secrets{"bootstrap": []byte(value)}
	// Each form at its shortest.
	for log, want := range map[string]int{
		"token abcdef." + value:                                                       1,
		"token abcdef.0123456789abcde":                                                0,
		"token abcdef.01234567\n89abcdef":                                             1,
		"token=" + hex.EncodeToString([]byte(value)):                                  1,
		"token=" + fmt.Sprintf("%v", []byte(value)):                                   1,
		`{"token-secret":"` + base64.StdEncoding.EncodeToString([]byte(value)) + `"}`: 1,
	} {
		if found := secrets.Find([]byte(log)); len(found) != want {
			t.Errorf("%q: %v", log, found)
		}
	}
	// Eight values are the shortest list. They are nothing that a dump shows as text.
	const bytes = "\x01\x02\x03\x04\x05\x06\x07\x08"
	for _, log := range []string{"[1 2 3 4 5 6 7 8]", hex.Dump([]byte(bytes))} {
		if found := (Secrets{"short": []byte(bytes)}).Find([]byte(log)); len(found) != 1 {
			t.Errorf("%q: %v", log, found)
		}
	}
}

// TestFind_PublicPartsAreIgnored: what belongs to a key and is not secret is not taken for it.
func TestFind_PublicPartsAreIgnored(t *testing.T) {
	secrets := Secrets{}
	value := key(t)
	secrets.AddFrom("key", value)
	block, _ := pem.Decode(value)
	public := hex.Dump(block.Bytes[len(block.Bytes)-64:])
	for _, log := range []string{
		logged(hex.Dump([]byte(protobuf(t, key(t))))), logged(inJSON(t, corev1.Secret{Data: map[string][]byte{"k": key(t)}})), public,
	} {
		if found := secrets.Find([]byte(log)); len(found) > 0 {
			t.Errorf("%v is found in\n%s", found, log)
		}
	}
}

func TestAddFrom(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"nothing":         {"kind: Config", 0},
		"PKCS #1":         {string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})), 3},
		"PKCS #8":         {string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})), 3},
		"two keys":        {string(key(t)) + string(key(t)), 2},
		"in a kubeconfig": {"client-key-data: " + base64.StdEncoding.EncodeToString(key(t)) + "\nx: y\n", 1},
		"web token":       {"token: eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlc2lnbmF0dXJlc2ln", 1},
		"bootstrap token": {"token: abcdef.0123456789abcdef", 1},
	} {
		if got := (Secrets{}).AddFrom(name, []byte(test.text)); got != test.want {
			t.Errorf("%s: %d secrets, want %d", name, got, test.want)
		}
	}
}

func chunks(s string, size int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for chunk := range slices.Chunk([]byte(s), size) {
			if !yield(string(chunk)) {
				return
			}
		}
	}
}
