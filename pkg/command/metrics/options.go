// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics serves the metrics of our programs: on loopback by plain HTTP, or by HTTPS to clients that the API server of the program
// authorizes. It does not import k8s.io/apiserver, whose authentication would add 30 MB to a program.
package metrics

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

// Path is the path of metrics, and the one that a client needs the right to get.
const Path = "/metrics"

// Off is the address of a program that serves no metrics.
const Off = "0"

// Options configure how metrics are served.
type Options struct {
	// Address is host:port; "0" and "" turn metrics off.
	Address string
	// Secure requires credentials and HTTPS. Without it the address must be on loopback.
	Secure bool
	// CertDir has the files tls.crt and tls.key, which are reloaded when they change. If it is empty, the program creates a certificate that no
	// client trusts.
	CertDir string
}

// AddFlags adds the flags. cluster describes the issuer of the tokens of clients, such as "the hub's kube-apiserver".
func (o *Options) AddFlags(fs *pflag.FlagSet, cluster string) {
	fs.StringVar(&o.Address, "metrics-bind-address", o.Address,
		"The address on which /metrics is served. Port 0 selects a free port. The address 0 disables the endpoint. Without --metrics-secure, it is served over "+
			"plain HTTP without authentication, and the address must be a loopback address.")
	fs.BoolVar(&o.Secure, "metrics-secure", o.Secure,
		"If true, /metrics is served over HTTPS, to users who present a token of "+cluster+" and may get the non-resource URL /metrics.")
	fs.StringVar(&o.CertDir, "metrics-cert-dir", o.CertDir,
		"The directory with the files tls.crt and tls.key for --metrics-secure, such as a mounted Secret. The files are reloaded when they change. If empty, "+
			"a certificate is generated that clients cannot verify.")
}

// Validate returns all errors of the flags.
func (o *Options) Validate() (errs []error) {
	if o.CertDir != "" && !o.Secure {
		errs = append(errs, errors.New("--metrics-cert-dir needs --metrics-secure: plain HTTP has no certificate"))
	}
	if o.CertDir != "" {
		for _, name := range []string{certFile, keyFile} {
			if _, err := os.Stat(filepath.Join(o.CertDir, name)); err != nil {
				errs = append(errs, fmt.Errorf("--metrics-cert-dir: %w", err))
			}
		}
	}
	if !o.serves() {
		return errs
	}
	host, _, err := net.SplitHostPort(o.Address)
	switch ip := net.ParseIP(host); {
	case err != nil:
		errs = append(errs, fmt.Errorf("--metrics-bind-address must be host:port, or 0, not %q: %w", o.Address, err))
	case !o.Secure && host != "localhost" && (ip == nil || !ip.IsLoopback()):
		errs = append(errs, fmt.Errorf("--metrics-bind-address is %s, which others can reach, and metrics without --metrics-secure ask for no "+
			"credentials: set --metrics-secure, or an address on loopback", o.Address))
	}
	return errs
}

// AuthenticatesClients reports whether clients are authenticated by the API server, which takes the rights to create tokenreviews and subjectaccessreviews.
func (o *Options) AuthenticatesClients() bool { return o.Secure && o.serves() }

func (o *Options) serves() bool { return o.Address != "" && o.Address != Off }
