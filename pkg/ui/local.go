// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
)

// local is the door of "kubectl hub ui": browsers of the user who runs it, that have opened its link.
type local struct {
	sessions *sessions
	// url is that of the page, and hosts what a browser may call this server.
	url    string
	hosts  []string
	cookie string
	// trusted are the users of this machine whose programs are answered, or nil for all.
	trusted []int
}

func newLocal(address *net.TCPAddr, trusted []int) *local {
	host, port := address.String(), address.Port
	return &local{
		sessions: newSessions(), url: "http://" + host, hosts: []string{host, fmt.Sprintf("localhost:%d", port)},
		// Cookies are the same for all ports of a host: two such servers must not write over each other's.
		cookie: fmt.Sprintf("kubectl-hub-ui-%d", port), trusted: trusted,
	}
}

// Local is the server of "kubectl hub ui".
type Local struct {
	*Server
	door *local
}

// Link is the address of the page with a new secret in it, which is good for one browser and for TokenTTL. The secret is in the
// fragment, which browsers do not send. A link that was made before is no longer good.
func (l *Local) Link() string { return l.door.url + "/#token=" + l.door.sessions.newToken() }

// Used is closed when the secret of the last link is used.
func (l *Local) Used() <-chan struct{} { return l.door.sessions.used() }

// peer is a connection, and whether it is of another user of this machine, once that was asked.
type peer struct {
	net.Conn
	once    sync.Once
	foreign bool
}

func (l *local) checkConnection(r *http.Request) *refusal {
	from, known := r.Context().Value(connectionKey{}).(*peer)
	if known {
		from.once.Do(func() { from.foreign = isForeign(from.Conn, l.trusted) })
	}
	if !known || from.foreign {
		return refuse(http.StatusForbidden, "this is the page of another user of this machine: run kubectl hub ui yourself")
	}
	return nil
}

func (l *local) origin(host string) string {
	if !slices.Contains(l.hosts, host) {
		return ""
	}
	return "http://" + host
}

func (l *local) reopen() string { return "open " + l.url }

// leadsTo is for the file that opens a browser. Others have no link to a view of this page.
func (l *local) leadsTo(path string) bool { return path == "/" }

// keyHeader has the key that the page was given. A page of another site cannot send it without that the browser asks this server before.
const keyHeader = "X-Page-Key"

// letIn lets in the browsers that were given a secret. The way to the hub has the user's credentials.
func (l *local) letIn(r *http.Request) (visitor, *refusal) {
	cookies := r.CookiesNamed(l.cookie)
	if len(cookies) != 1 || !l.sessions.valid(cookies[0].Value, r.Header.Get(keyHeader)) {
		return visitor{}, refuse(http.StatusUnauthorized, "this browser is not let in, or not any more: press Enter where kubectl hub ui runs, or run it again, and open the link that it prints")
	}
	return visitor{}, nil
}

func (l *local) begin(s *Server, w http.ResponseWriter, r *http.Request) *refusal {
	data, refused := s.readJSON(w, r, maxToken)
	if refused != nil {
		return refused
	}
	var sent struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(data, &sent); err != nil {
		return refuse(http.StatusBadRequest, `expected {"token": "…"}`)
	}
	cookie, key, ok := l.sessions.redeem(sent.Token)
	if !ok {
		return refuse(http.StatusUnauthorized, "the link is good for one browser and for %s: press Enter where kubectl hub ui runs, or run it again, and open the link that it prints", TokenTTL)
	}
	http.SetCookie(w, &http.Cookie{Name: l.cookie, Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	writeJSON(w, http.StatusOK, map[string]string{"key": key})
	return nil
}
