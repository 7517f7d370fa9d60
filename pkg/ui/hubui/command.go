// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubui is hub-ui: the page of `kubectl hub ui` for all users who log in at an OIDC proxy in front of it. It has no permissions of its own.
package hubui

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/ui"
	"github.com/clusterhub/clusterhub/pkg/ui/assets"
)

// options are the flags.
type options struct {
	address   string
	port      int
	hosts     []string
	server    string
	caFile    string
	health    string
	signOut   string
	timeout   time.Duration
	out       io.Writer
	listening func(page, health net.Addr)
}

// NewCommand returns the command hub-ui, which serves until the context ends.
func NewCommand() *cobra.Command {
	o := &options{listening: func(net.Addr, net.Addr) {}}
	cmd := &cobra.Command{
		Use:   "hub-ui",
		Short: "Serve the page of a hub behind an OIDC proxy",
		Long: "hub-ui serves the page of kubectl hub ui on loopback to a proxy beside it, such as oauth2-proxy, which logs users in and gives each request the " +
			"user's ID token as Authorization: Bearer. hub-ui sends requests to the hub only with this token, so that users see what they may see, and hub-ui " +
			"has no rights. The hub's API server must accept the tokens of the issuer. The page is read-only.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.ErrOrStderr()
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.address, "address", "127.0.0.1", "The address on which the page is served, which must be a loopback address. The proxy runs in the same pod.")
	f.IntVar(&o.port, "port", 8080, "The port on which the page is served.")
	f.StringSliceVar(&o.hosts, "allowed-host", nil,
		"The name with which browsers open the page, with the port if it is not 443, such as hub.example.com. May be repeated. Requests for other names are rejected.")
	f.StringVar(&o.server, "hub-server", "https://kubernetes.default.svc", "The https URL of the hub's API server.")
	f.StringVar(&o.caFile, "hub-ca-file", "", "The path to a file with the CA certificates of the hub's API server. The default is the root certificates of this program.")
	f.StringVar(&o.health, "health-probe-bind-address", ":8081", "The address on which /healthz and /readyz are served. The address 0 disables the endpoint.")
	f.StringVar(&o.signOut, "sign-out-path", "/oauth2/sign_out", "The path at which the proxy ends a login, for a link on the page. If empty, the page has no link.")
	f.DurationVar(&o.timeout, "hub-timeout", 30*time.Second, "The maximum duration of a request to the hub that is not a watch. At most one minute.")
	return cmd
}

// way returns the configuration for the hub, without any credentials.
func (o *options) way() (*rest.Config, error) {
	at, err := url.Parse(o.server)
	if err != nil || at.Scheme != "https" || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return nil, fmt.Errorf("--hub-server must be an https URL of a server, such as https://kubernetes.default.svc: tokens are sent there")
	}
	if o.caFile != "" {
		if _, err := os.Stat(o.caFile); err != nil {
			return nil, fmt.Errorf("--hub-ca-file: %w", err)
		}
	}
	if o.timeout <= 0 || o.timeout > time.Minute {
		return nil, fmt.Errorf("--hub-timeout must be more than nothing and at most 1m, not %s", o.timeout)
	}
	return &rest.Config{Host: o.server, Timeout: o.timeout, UserAgent: "hub-ui", TLSClientConfig: rest.TLSClientConfig{CAFile: o.caFile}}, nil
}

func (o *options) check() error {
	ip := net.ParseIP(o.address)
	switch {
	case ip == nil || !ip.IsLoopback():
		return fmt.Errorf("--address must be 127.0.0.1 or ::1, not %q: users who reach this port directly are not authenticated by the proxy", o.address)
	case o.port < 0 || o.port > 65535:
		return fmt.Errorf("--port must be 0 to 65535, not %d", o.port)
	case len(o.hosts) == 0:
		return fmt.Errorf("--allowed-host is missing: say by which name browsers open the page, such as hub.example.com")
	case o.signOut != "" && (!strings.HasPrefix(o.signOut, "/") || strings.HasPrefix(o.signOut, "//")):
		return fmt.Errorf("--sign-out-path must be a path of the proxy, such as /oauth2/sign_out, not %q", o.signOut)
	}
	return nil
}

func (o *options) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	hub, err := o.way()
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(o.address, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("serving the page: %w", err)
	}
	defer func() { _ = listener.Close() }()
	server, err := ui.NewProxied(ui.ProxiedConfig{Hub: hub, Files: assets.FS, Hosts: o.hosts, SignOut: o.signOut}, listener.Addr())
	if err != nil {
		return err
	}
	health, err := o.probes(ctx)
	if err != nil {
		return err
	}
	if health != nil {
		defer func() { _ = health.Close() }()
	}
	_, _ = fmt.Fprintf(o.out, "Serving the page of the hub %s on %s, to the proxy beside this.\n", o.server, listener.Addr())
	o.listening(listener.Addr(), addressOf(health))
	return server.Serve(ctx, listener)
}

func addressOf(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

// probes serves the probes of the kubelet, which come from outside of the pod. They report that the program runs. The page shows whether the hub
// responds.
func (o *options) probes(ctx context.Context) (net.Listener, error) {
	if o.health == "0" || o.health == "" {
		return nil, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.health)
	if err != nil {
		return nil, fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	mux := http.NewServeMux()
	for _, path := range []string{"GET /healthz", "GET /readyz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	}
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 4 << 10}
	go func() { _ = server.Serve(netutil.LimitListener(listener, 32)) }()
	return listener, nil
}
