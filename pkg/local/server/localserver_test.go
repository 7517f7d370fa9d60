// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// TestCertificates verifies that what one authority signs is valid on this machine, for the purpose that it was made for, and nowhere else.
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
			if err := errors.Join(authority.Server("server-of-"+ca, "kubernetes", "kubernetes"),
				authority.Client("client-of-"+ca, subject), authority.Peer("peer-of-"+ca, "etcd")); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(certs.SigningKey("tokens"), certs.Bundle("both", "ca", "other")); err != nil {
			t.Fatal(err)
		}
	}
	create()
	before := files(t, certs.Dir)
	if len(before) != 18 {
		t.Errorf("there are %d files, want 18: %v", len(before), slices.Sorted(maps.Keys(before)))
	}
	create()
	for name, data := range files(t, certs.Dir) {
		if before[name] != data {
			t.Errorf("%s has been replaced", name)
		}
	}

	const server, client = x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	for _, c := range []struct {
		name, roots, dnsName string
		usage                x509.ExtKeyUsage
		good                 bool
	}{
		{"server-of-ca", "ca", "localhost", server, true},
		{"server-of-ca", "ca", "127.0.0.1", server, true},
		{"server-of-ca", "ca", "kubernetes", server, true},
		{"server-of-ca", "ca", "example.com", server, false},
		{"server-of-ca", "ca", "", client, false},
		{"client-of-ca", "ca", "", client, true},
		{"client-of-ca", "ca", "localhost", client, false},
		{"client-of-ca", "ca", "", server, false},
		{"peer-of-ca", "ca", "127.0.0.1", server, true},
		{"peer-of-ca", "ca", "", client, true},
		{"peer-of-ca", "ca", "", x509.ExtKeyUsageCodeSigning, false},
		{"server-of-other", "ca", "localhost", server, false},
		{"client-of-other", "ca", "", client, false},
		{"client-of-ca", "both", "", client, true},
		{"client-of-other", "both", "", client, true},
	} {
		pair, err := tls.LoadX509KeyPair(certs.Cert(c.name), certs.Key(c.name))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(before[c.roots+".crt"]))
		options := x509.VerifyOptions{Roots: roots, DNSName: c.dnsName, KeyUsages: []x509.ExtKeyUsage{c.usage}}
		if _, err := pair.Leaf.Verify(options); (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestCertificates_OtherPurposeOrCA: an existing certificate of the same name is not valid then, and is recreated.
func TestCertificates_OtherPurposeOrCA(t *testing.T) {
	certs := localserver.Certificates{Dir: filepath.Join(t.TempDir(), "pki")}
	one, errOne := certs.Authority("one", "one")
	two, errTwo := certs.Authority("two", "two")
	if err := errors.Join(errOne, errTwo); err != nil {
		t.Fatal(err)
	}
	last := ""
	for step, create := range []func() error{
		func() error { return one.Peer("etcd", "etcd") },
		func() error { return one.Server("etcd", "etcd") },
		func() error { return two.Server("etcd", "etcd") },
		func() error { return two.Client("etcd", pkix.Name{CommonName: "etcd"}) },
	} {
		if err := create(); err != nil {
			t.Fatal(err)
		}
		if _, err := tls.LoadX509KeyPair(certs.Cert("etcd"), certs.Key("etcd")); err != nil {
			t.Errorf("after step %d: %v", step, err)
		}
		now := files(t, certs.Dir)["etcd.crt"]
		if now == last {
			t.Errorf("step %d has left the certificate as it was", step)
		}
		last = now
	}
}

// files returns the contents of a directory that has no files which others may read.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %s: %v", entry.Name(), info.Mode(), err)
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(data)
	}
	return all
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
		"":                             "the log is empty",
		"I0101 x.go:1] begins\nlast\n": "last",
		"red \x1b[31m\u009b\u202e.\n":  "red  [31m  .",
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
