// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// WatchTTL is the largest duration of a watch for a user whose token came with it: the hub validates a token only when a request begins. The page
// starts a new watch then.
const WatchTTL = 5 * time.Minute

// ProxiedConfig is the configuration of a server behind a proxy that logs users in.
type ProxiedConfig struct {
	// Hub is the configuration for the hub. Its credentials are not used.
	Hub *rest.Config
	// Files are the files of the page: index.html and others.
	Files fs.FS
	// Hosts are the names by which browsers connect to the proxy, with ports other than the default.
	Hosts []string
	// SignOut is the path by which the proxy ends a login.
	SignOut string

	// askTimeout can be changed by tests.
	askTimeout time.Duration
}

// NewProxied returns a server for a listener on loopback that only a proxy in front of it can connect to. The proxy logs users in, and adds the
// user's ID token as a bearer token to each request. Requests to the hub have that token and no other credentials.
func NewProxied(config ProxiedConfig, listener net.Addr) (*Server, error) {
	if _, err := onLoopback(listener); err != nil {
		return nil, err
	}
	door, err := newProxied(config.Hosts)
	if err != nil {
		return nil, err
	}
	files, err := readFiles(config.Files)
	if err != nil {
		return nil, err
	}
	hub, err := newUpstream(rest.AnonymousClientConfig(config.Hub))
	if err != nil {
		return nil, err
	}
	hub.watchFor = WatchTTL
	return &Server{
		files: files, about: About{Kubectl: "kubectl", SignOut: config.SignOut}, hub: hub, door: door,
		running: newCounter(maxRequests, maxRequestsOfAll), answering: newCounter(maxAnswers, maxAnswersOfAll), maxConnections: maxConnectionsOfAll, askTimeout: cmp.Or(config.askTimeout, askTimeout),
	}, nil
}

// proxied is the door of hub-ui: it allows all users who are logged in at the proxy.
type proxied struct {
	// origins are the origins of pages, by the names of this server for browsers.
	origins map[string]string
	first   string
}

var hostNames = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)

func newProxied(hosts []string) (*proxied, error) {
	if len(hosts) == 0 {
		return nil, errors.New("say by which name browsers open the page, such as hub.example.com: others are refused")
	}
	p := &proxied{origins: map[string]string{}}
	for _, host := range hosts {
		if !hostNames.MatchString(host) {
			return nil, fmt.Errorf("%s is not a name of a server in small letters, with or without a port, such as hub.example.com", strconv.Quote(host))
		}
		p.origins[host] = schemeOf(host) + "://" + host
		p.first = cmp.Or(p.first, p.origins[host])
	}
	return p, nil
}

// schemeOf returns https, except for loopback, which is for kubectl port-forward.
func schemeOf(host string) string {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	address, err := netip.ParseAddr(strings.Trim(name, "[]"))
	if name == "localhost" || err == nil && address.IsLoopback() {
		return "http"
	}
	return "https"
}

// checkConnection allows the proxy, which is in the same pod. The pod ensures that nothing else can connect.
func (p *proxied) checkConnection(*http.Request) *refusal { return nil }

func (p *proxied) origin(host string) string { return p.origins[host] }

func (p *proxied) reopen() string { return "open " + p.first }

// leadsTo allows links to views, which users send each other, and the redirect after a login.
func (p *proxied) leadsTo(path string) bool { return path == "/" || isView(path) }

// bearers matches tokens according to RFC 6750.
var bearers = regexp.MustCompile(`^(?i:bearer) ([A-Za-z0-9._~+/-]+=*)$`)

// letIn allows users with a token, which the hub validates.
func (p *proxied) letIn(r *http.Request) (visitor, *refusal) {
	all := r.Header.Values("Authorization")
	if len(all) != 1 {
		return visitor{}, p.noLogin()
	}
	found := bearers.FindStringSubmatch(all[0])
	if found == nil {
		return visitor{}, p.noLogin()
	}
	return visitor{token: found[1], key: sha256.Sum256([]byte(found[1]))}, nil
}

func (p *proxied) noLogin() *refusal {
	return refuse(http.StatusUnauthorized, "no login comes with this request: open %s and log in. If that does not help, the proxy in front of hub-ui does not pass the user's ID token on as Authorization: Bearer", p.first)
}

func (p *proxied) begin(http.ResponseWriter, *http.Request, time.Duration) *refusal {
	return refuse(http.StatusMethodNotAllowed, "expected GET: %s and log in there", p.reopen())
}
