// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
)

// MetricsOptions say how metrics are served.
type MetricsOptions struct {
	// Address is host:port; "0" is none.
	Address string
	// Secure asks for credentials, by HTTPS. Without it the address has to be on loopback.
	Secure bool
	// CertDir has the files tls.crt and tls.key, which are followed when they change. Without it the program makes a certificate that nothing trusts.
	CertDir string
}

func (m *MetricsOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.Address, "metrics-bind-address", m.Address,
		"Address of /metrics. Port 0 is any free port, the address 0 is none. Without --metrics-secure it is plain HTTP without authentication, "+
			"and has to be on loopback.")
	fs.BoolVar(&m.Secure, "metrics-secure", m.Secure,
		"Serve /metrics by HTTPS, to those who present a token of the hub's kube-apiserver and may get the non-resource URL /metrics.")
	fs.StringVar(&m.CertDir, "metrics-cert-dir", m.CertDir,
		"With --metrics-secure: folder with the files tls.crt and tls.key, such as a mounted secret. They are followed when they change. Without it a "+
			"certificate is made that clients cannot verify.")
}

func (m *MetricsOptions) validate() (errs []error) {
	if m.CertDir != "" && !m.Secure {
		errs = append(errs, errors.New("--metrics-cert-dir needs --metrics-secure: plain HTTP has no certificate"))
	}
	if m.CertDir != "" {
		for _, name := range []string{"tls.crt", "tls.key"} {
			if _, err := os.Stat(filepath.Join(m.CertDir, name)); err != nil {
				errs = append(errs, fmt.Errorf("--metrics-cert-dir: %w", err))
			}
		}
	}
	if m.Address == "0" || m.Secure {
		return errs
	}
	host, _, err := net.SplitHostPort(m.Address)
	switch ip := net.ParseIP(host); {
	case err != nil:
		errs = append(errs, fmt.Errorf("--metrics-bind-address must be host:port, or 0, not %q: %w", m.Address, err))
	case host != "localhost" && (ip == nil || !ip.IsLoopback()):
		errs = append(errs, fmt.Errorf("--metrics-bind-address is %s, which others can reach, and metrics without --metrics-secure ask for no "+
			"credentials: set --metrics-secure, or an address on loopback", m.Address))
	}
	return errs
}

func (m *MetricsOptions) options() metricsserver.Options {
	o := metricsserver.Options{BindAddress: m.Address, SecureServing: m.Secure, CertDir: m.CertDir}
	if m.Secure {
		o.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return o
}

// rights are what it takes to ask who a client is, and whether it may read metrics.
func (m *MetricsOptions) rights() []kit.Right {
	if !m.Secure {
		return nil
	}
	return []kit.Right{
		kit.On(authenticationv1.SchemeGroupVersion, "tokenreviews", "create"),
		kit.On(authorizationv1.SchemeGroupVersion, "subjectaccessreviews", "create"),
	}
}
