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

// WatchTTL is how long a watch goes on for a user whose token came with it: the hub looks at a token when a request begins, and not
// any more. The page begins the next one.
const WatchTTL = 5 * time.Minute

// ProxiedConfig says what is served to all who log in at a proxy in front of the server.
type ProxiedConfig struct {
	// Hub is the way to the hub. What credentials it has are not used.
	Hub *rest.Config
	// Files are those of the page: index.html, and others beside it.
	Files fs.FS
	// Hosts are the names, with ports that are not the usual one, by which browsers get to the proxy.
	Hosts []string
	// SignOut is the path by which the proxy ends a login.
	SignOut string

	// askTimeout is another one for tests.
	askTimeout time.Duration
}

// NewProxied makes a server for a listener on loopback, where a proxy in front of it is the only one to reach it. The proxy logs users in,
// and gives each request the user's ID token as a bearer token. The hub is asked by that token and nothing else.
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

// proxied is the door of hub-ui: whoever the proxy has logged in.
type proxied struct {
	// origins are those of pages, by what browsers call this server.
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

// schemeOf is https but on loopback, which kubectl port-forward leads to.
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

// checkConnection lets the proxy in, which is beside this server. That it is the only one there is the pod's part.
func (p *proxied) checkConnection(*http.Request) *refusal { return nil }

func (p *proxied) origin(host string) string { return p.origins[host] }

func (p *proxied) reopen() string { return "open " + p.first }

// leadsTo is for links to views that users send each other, and for the page that logs in.
func (p *proxied) leadsTo(path string) bool { return path == "/" || isView(path) }

// bearers are tokens as RFC 6750 has them.
var bearers = regexp.MustCompile(`^(?i:bearer) ([A-Za-z0-9._~+/-]+=*)$`)

// letIn lets in who has a token. What it is worth is the hub's to say.
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

func (p *proxied) begin(*Server, http.ResponseWriter, *http.Request) *refusal {
	return refuse(http.StatusMethodNotAllowed, "expected GET: %s and log in there", p.reopen())
}
