// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localserver_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clusterhub/clusterhub/pkg/localserver"
)

// TestCertificates shows that what one authority signs is good for a client and a server on this machine, and nowhere else.
func TestCertificates(t *testing.T) {
	certs := localserver.Certificates{Dir: filepath.Join(t.TempDir(), "pki")}
	create := func() {
		t.Helper()
		for _, ca := range []string{"ca", "other"} {
			authority, err := certs.Authority(ca, "test "+ca)
			if err != nil {
				t.Fatal(err)
			}
			subject := pkix.Name{CommonName: "ann", Organization: []string{"system:masters"}}
			if err := authority.Leaf("by-"+ca, subject, "kubernetes"); err != nil {
				t.Fatal(err)
			}
		}
		if err := certs.SigningKey("tokens"); err != nil {
			t.Fatal(err)
		}
	}
	files := func() map[string]string {
		t.Helper()
		all := map[string]string{}
		entries, err := os.ReadDir(certs.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has the mode %s: %v", entry.Name(), info.Mode(), err)
			}
			data, err := os.ReadFile(filepath.Join(certs.Dir, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all[entry.Name()] = string(data)
		}
		return all
	}
	create()
	before := files()
	if len(before) != 9 {
		t.Errorf("there are %d files, want 9: %v", len(before), before)
	}
	create()
	for name, data := range files() {
		if before[name] != data {
			t.Errorf("%s has been replaced", name)
		}
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(before["ca.crt"]))
	for _, c := range []struct {
		name, dnsName string
		usage         x509.ExtKeyUsage
		good          bool
	}{
		{"by-ca", "localhost", x509.ExtKeyUsageServerAuth, true},
		{"by-ca", "127.0.0.1", x509.ExtKeyUsageServerAuth, true},
		{"by-ca", "kubernetes", x509.ExtKeyUsageClientAuth, true},
		{"by-ca", "example.com", x509.ExtKeyUsageServerAuth, false},
		{"by-ca", "localhost", x509.ExtKeyUsageCodeSigning, false},
		{"by-other", "localhost", x509.ExtKeyUsageServerAuth, false},
	} {
		pair, err := tls.LoadX509KeyPair(certs.Cert(c.name), certs.Key(c.name))
		if err != nil {
			t.Fatal(err)
		}
		options := x509.VerifyOptions{Roots: roots, DNSName: c.dnsName, KeyUsages: []x509.ExtKeyUsage{c.usage}}
		if _, err := pair.Leaf.Verify(options); (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestListen(t *testing.T) {
	l, port, err := localserver.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Addr().String() != localserver.Address(port) || port < localserver.FirstPort || port > localserver.LastPort {
		t.Errorf("the port is %d, of %s", port, l.Addr())
	}
}

func TestComplaint(t *testing.T) {
	for log, want := range map[string]string{
		"":                             "it said nothing",
		"I0101 x.go:1] begins\nlast\n": "last",
		"E0101 x.go:1] bad\nI0101 x.go:2] ends\n":     "E0101 x.go:1] bad",
		"E0101 x.go:1] bad\nF0101 x.go:1] worse\nx":   "F0101 x.go:1] worse",
		"Error: no such flag\nUsage:\n  --help\n":     "Error: no such flag",
		`{"level":"fatal","msg":"no disk"}` + "\nbye": `{"level":"fatal","msg":"no disk"}`,
	} {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := localserver.Complaint(file); got != want {
			t.Errorf("of %q it is %q, want %q", log, got, want)
		}
	}
	file := filepath.Join(t.TempDir(), "log")
	if got := localserver.Complaint(file); !strings.Contains(got, file) {
		t.Errorf("of no file it is %q", got)
	}
	if err := os.WriteFile(file, []byte("x"+strings.Repeat("ä", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := localserver.Complaint(file); len(got) > 510 || !utf8.ValidString(got) || !strings.HasSuffix(got, "ä…") {
		t.Errorf("of a long line it is %q", got)
	}
}
