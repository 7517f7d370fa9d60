// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page of "kubectl hub ui" on loopback, and passes the page's questions on to the hub as the user of a kubeconfig.
//
// The server can do to the hub what its user can, and every other site that the browser shows, and every other user of the machine, can
// send requests to it. So it reads alone, and only what the page shows; it answers only a browser that has been given a secret; and
// nothing of a request reaches the hub but a path and parameters that are made anew from checked parts.
package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/client-go/rest"
)

const (
	// maxURI bounds the path and the parameters of a request; parameters have selectors and the place where a list goes on in them.
	maxURI = 16 << 10
	// maxHeaders bounds the headers. Browsers send the cookies of all servers of this machine, whatever their ports.
	maxHeaders = 64 << 10
	// maxConnections and maxRequests bound what is open at one time. Browsers have six connections for each page.
	maxConnections, maxRequests = 128, 64
	// askTimeout is how long a client may take for the headers, and for the body; writeTimeout how long to take a part of the answer.
	askTimeout, writeTimeout, idleTimeout = 10 * time.Second, 30 * time.Second, 2 * time.Minute
	// answerTimeout is how long the hub may take to answer what is not a watch.
	answerTimeout = time.Minute
)

// Config says what is served to whom.
type Config struct {
	// Hub is the way to the hub, as its user.
	Hub *rest.Config
	// Files are those of the page: index.html, and others beside it.
	Files fs.FS
	// About is what the page says of the connection.
	About About

	// askTimeout is another one for tests, and so are the users of this machine that are trusted.
	askTimeout time.Duration
	trusted    func() []int
}

// About says which hub is seen, and as which user. It is the answer of GET /session.
type About struct {
	// Server is the URL of the hub.
	Server string `json:"server"`
	// Context is that of the kubeconfig.
	Context string `json:"context"`
	// User is the name that the hub has for the user, empty where the hub does not say it.
	User string `json:"user"`
	// Impersonating is the user of --as.
	Impersonating string `json:"impersonating"`
	// Kubectl begins the command lines that show the same.
	Kubectl string `json:"kubectl"`
}

// Server is the server of the page.
type Server struct {
	files    map[string]file
	about    About
	hub      *upstream
	sessions *sessions
	// url is that of the page, and hosts what a browser may call this server.
	url     string
	hosts   []string
	cookie  string
	running chan struct{}

	askTimeout time.Duration
	// trusted are the users of this machine whose programs are answered, or nil for all.
	trusted []int
}

// New makes a server for a listener, which has to be on loopback: nothing is encrypted.
func New(config Config, listener net.Addr) (*Server, error) {
	address, ok := listener.(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		return nil, fmt.Errorf("the page is served on loopback only, as 127.0.0.1 and ::1 are, not on %s", listener)
	}
	files, err := readFiles(config.Files)
	if err != nil {
		return nil, err
	}
	hub, err := newUpstream(config.Hub)
	if err != nil {
		return nil, err
	}
	users := trusted
	if config.trusted != nil {
		users = config.trusted
	}
	host, port := address.String(), address.Port
	return &Server{
		files: files, about: config.About, hub: hub, sessions: newSessions(),
		url: "http://" + host, hosts: []string{host, fmt.Sprintf("localhost:%d", port)},
		// Cookies are the same for all ports of a host: two such servers must not write over each other's.
		cookie: fmt.Sprintf("kubectl-hub-ui-%d", port), running: make(chan struct{}, maxRequests),
		askTimeout: cmp.Or(config.askTimeout, askTimeout), trusted: users(),
	}, nil
}

// Link is the address of the page with a new secret in it, which is good for one browser and for TokenTTL. The secret is in the
// fragment, which browsers do not send. A link that was made before is no longer good.
func (s *Server) Link() string { return s.url + "/#token=" + s.sessions.newToken() }

// Used is closed when the secret of the last link is used.
func (s *Server) Used() <-chan struct{} { return s.sessions.used() }

// Serve serves until the context ends, and ends watches then.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	// Requests end with it, watches as well.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: s.askTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaders,
		WriteTimeout: answerTimeout + writeTimeout, // an answer that goes on sets its own
		BaseContext:  func(net.Listener) context.Context { return base },
		ConnContext: func(ctx context.Context, connection net.Conn) context.Context {
			return context.WithValue(ctx, foreign{}, sync.OnceValue(func() bool { return isForeign(connection, s.trusted) }))
		},
		DisableGeneralOptionsHandler: true, // it has none of our headers
		// What it would say is what clients send.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		cancel()
		within, done := context.WithTimeout(context.Background(), 3*time.Second)
		defer done()
		err := server.Shutdown(within)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		ended <- err
	})
	err := server.Serve(netutil.LimitListener(listener, maxConnections))
	if stop() { // it ends by itself
		_ = server.Close()
		return err
	}
	return <-ended
}

// foreign is the key of what says whether a connection is of another user of this machine.
type foreign struct{}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if refused := s.serve(w, r); refused != nil {
		refused.write(w)
	}
}

// serve answers, or says why not. What it refuses it has not begun to answer.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) *refusal {
	if refused := s.checkRequest(r); refused != nil {
		return refused
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	switch {
	case path == "/session":
		return s.serveSession(w, r, query)
	case path == "/hub" || strings.HasPrefix(path, "/hub/"):
		if refused := s.checkData(r); refused != nil {
			return refused
		}
		return s.serveHub(w, r, strings.TrimPrefix(path, "/hub"), query)
	}
	return s.servePage(w, r, path)
}

// serveHub asks the hub.
func (s *Server) serveHub(w http.ResponseWriter, r *http.Request, path, query string) *refusal {
	if refused := s.checkCookie(r); refused != nil {
		return refused
	}
	question, refused := ask(r.Method, path, query)
	if refused != nil {
		return refused
	}
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	default:
		return refuse(http.StatusTooManyRequests, "there are %d requests at one time already: close pages that you do not look at", maxRequests)
	}
	if question.body, refused = s.readQuestion(w, r, question); refused != nil {
		return refused
	}
	question.accept = accepted(r.Header.Get("Accept"))
	return s.hub.pass(w, r, question)
}

// withoutPassword is a server's address as people may see it.
func withoutPassword(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	return strings.TrimSuffix(shown.String(), "/")
}
