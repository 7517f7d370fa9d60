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
	"time"
)

// local is the door of "kubectl hub ui": it allows browsers that have opened the link of the user who runs it.
type local struct {
	sessions *sessions
	// url is the page's URL, and hosts are the names of this server for browsers.
	url    string
	hosts  []string
	cookie string
	// trusted are the users of this machine whose programs may connect, or nil for all.
	trusted []int
}

func newLocal(address *net.TCPAddr, trusted []int) *local {
	host, port := address.String(), address.Port
	return &local{
		sessions: newSessions(), url: "http://" + host, hosts: []string{host, fmt.Sprintf("localhost:%d", port)},
		// Cookies are the same for all ports of a host: two such servers must not overwrite each other's.
		cookie: fmt.Sprintf("kubectl-hub-ui-%d", port), trusted: trusted,
	}
}

// Local is the server of "kubectl hub ui".
type Local struct {
	*Server
	door *local
}

// Link returns the address of the page with a new secret, which is valid for one browser and for TokenTTL. The secret is in the fragment, which
// browsers do not send. The previous link is no longer valid.
func (l *Local) Link() string { return l.door.url + "/#token=" + l.door.sessions.newToken() }

// Used returns a channel that is closed when the secret of the last link is used.
func (l *Local) Used() <-chan struct{} { return l.door.sessions.used() }

// peer is a connection, and whether it belongs to a different user of this machine, once that was checked.
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

// leadsTo allows links to the start of the page, for the file that opens a browser. Other sites may not link to a view.
func (l *local) leadsTo(path string) bool { return path == "/" }

// keyHeader has the key of the page. A page of another site cannot send it without a preflight request to this server.
const keyHeader = "X-Page-Key"

// letIn allows the browsers that have a secret. The user's credentials are those of the configuration for the hub.
func (l *local) letIn(r *http.Request) (visitor, *refusal) {
	cookies := r.CookiesNamed(l.cookie)
	if len(cookies) != 1 || !l.sessions.valid(cookies[0].Value, r.Header.Get(keyHeader)) {
		return visitor{}, refuse(http.StatusUnauthorized, "this browser is not let in, or not any more: press Enter where kubectl hub ui runs, or run it again, and open the link that it prints")
	}
	return visitor{}, nil
}

func (l *local) begin(w http.ResponseWriter, r *http.Request, timeout time.Duration) *refusal {
	data, refused := readJSON(w, r, maxToken, timeout)
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
