// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page of a hub on loopback, and forwards the page's requests to the hub: for "kubectl hub ui" as the user of a kubeconfig, and
// for hub-ui as the user whose token comes with the request.
//
// The server can do to the hub what its user can, and any site that the browser displays, and any other user of the machine, can send requests to it.
// So it only reads, and only what the page shows; it only serves a browser with a session; and nothing of a request reaches the hub except a path and
// parameters that are rebuilt from checked parts, and for hub-ui the token.
package ui

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/ui/states"
)

const (
	// maxURI limits the path and the parameters of a request. Parameters contain selectors and continue tokens.
	maxURI = 16 << 10
	// maxHeaders limits the headers. Browsers send the cookies of all servers of this machine, whatever their ports.
	maxHeaders = 64 << 10
	// maxConnections and maxRequests limit what is open concurrently. Browsers use six connections for each page.
	maxConnections, maxRequests = 128, 64
	// maxConnectionsOfAll and maxRequestsOfAll are the limits for many users, each of whom has maxRequests.
	maxConnectionsOfAll, maxRequestsOfAll = 2048, 1024
	// askTimeout is the time limit for a client to send the headers, and for the body. writeTimeout is the limit for receiving a part of the
	// response.
	askTimeout, writeTimeout, idleTimeout = 10 * time.Second, 30 * time.Second, 2 * time.Minute
	// answerTimeout is the time limit of the hub, except for watches.
	answerTimeout = time.Minute
)

// Options is the configuration for the user of a kubeconfig.
type Options struct {
	// Hub is the configuration for the hub, as its user.
	Hub *rest.Config
	// Files are the files of the page: index.html and others.
	Files fs.FS
	// About describes the connection for the page.
	About About
	// Where are the flags by which commands on the page select the hub, such as "--context=hub".
	Where []string

	// askTimeout and the trusted users of this machine can be changed by tests.
	askTimeout time.Duration
	trusted    func() []int
}

// About describes the hub and its user. It is the response of GET /session.
type About struct {
	// Server is the URL of the hub.
	Server string `json:"server"`
	// Context is the context of the kubeconfig.
	Context string `json:"context"`
	// User is the hub's name for the user, or empty if the hub does not return it.
	User string `json:"user"`
	// Impersonating is the user of --as.
	Impersonating string `json:"impersonating"`
	// Kubectl is the beginning of command lines that show the same.
	Kubectl string `json:"kubectl"`
	// SignOut is the path that ends the login, if there is one.
	SignOut string `json:"signOut,omitempty"`
}

// Server is the server of the page.
type Server struct {
	files map[string]file
	about About
	hub   *upstream
	// door decides which requests are allowed, and the names of this server for browsers.
	door           door
	running        *counter
	answering      *counter
	where          []string
	maxConnections int
	askTimeout     time.Duration
}

// door has the differences between a page for one user, and one for all who log in.
type door interface {
	// checkConnection rejects programs that may not connect, whatever their request.
	checkConnection(r *http.Request) *refusal
	// origin returns the origin of the pages of a host, or "" if this server does not have that name.
	origin(host string) string
	// reopen describes how to open the page.
	reopen() string
	// leadsTo reports whether other sites may link to a path.
	leadsTo(path string) bool
	// letIn returns the user for requests to the hub, or a refusal.
	letIn(r *http.Request) (visitor, *refusal)
	// begin starts the session of a browser that sends a secret within the timeout.
	begin(w http.ResponseWriter, r *http.Request, timeout time.Duration) *refusal
}

// visitor is a user who was let in.
type visitor struct {
	// token is the credential for the hub. If it is empty, those of the configuration are used.
	token string
	// key distinguishes visitors. It contains no secret.
	key [sha256.Size]byte
}

// New returns a server for a listener, which must be on loopback, because nothing is encrypted.
func New(config Options, listener net.Addr) (*Local, error) {
	address, err := onLoopback(listener)
	if err != nil {
		return nil, err
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
	door := newLocal(address, users())
	return &Local{door: door, Server: &Server{
		files: files, about: config.About, hub: hub, door: door, running: newCounter(maxRequests, maxRequests), answering: newCounter(maxAnswers, maxAnswers), where: config.Where,
		maxConnections: maxConnections, askTimeout: cmp.Or(config.askTimeout, askTimeout),
	}}, nil
}

func onLoopback(listener net.Addr) (*net.TCPAddr, error) {
	address, ok := listener.(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		return nil, fmt.Errorf("the page is served on loopback only, as 127.0.0.1 and ::1 are, not on %s", listener)
	}
	return address, nil
}

// Serve serves until the context ends. It also ends watches then.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	// Requests, including watches, end with this context.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: s.askTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaders,
		WriteTimeout: answerTimeout + writeTimeout, // a stream sets its own
		BaseContext:  func(net.Listener) context.Context { return base },
		ConnContext: func(ctx context.Context, connection net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, &peer{Conn: connection})
		},
		DisableGeneralOptionsHandler: true, // it has none of our headers
		// The log would contain what clients send.
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
	err := server.Serve(netutil.LimitListener(listener, s.maxConnections))
	if stop() { // it ends by itself
		_ = server.Close()
		return err
	}
	return <-ended
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if refused := s.serve(w, r); refused != nil {
		if r.ContentLength != 0 {
			// The data after a body that is not read could be parsed as another request.
			w.Header().Set("Connection", "close")
		}
		refused.write(w)
	}
}

// serve handles a request, or returns a refusal. If it returns one, it has written nothing.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) *refusal {
	if refused := checkRequest(s.door, r); refused != nil {
		return refused
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	switch {
	case path == "/session":
		return s.serveSession(w, r, query)
	case path == "/hub" || strings.HasPrefix(path, "/hub/"):
		if refused := checkData(s.door, r); refused != nil {
			return refused
		}
		return s.serveHub(w, r, strings.TrimPrefix(path, "/hub"), query)
	case strings.HasPrefix(path, "/answers/"):
		if refused := checkData(s.door, r); refused != nil {
			return refused
		}
		return s.serveAnswer(w, r, strings.TrimPrefix(path, "/answers"), query)
	}
	return s.servePage(w, r, path)
}

// serveHub forwards a request to the hub.
func (s *Server) serveHub(w http.ResponseWriter, r *http.Request, path, query string) *refusal {
	visitor, refused := s.door.letIn(r)
	if refused != nil {
		return refused
	}
	question, refused := ask(r.Method, path, query)
	if refused != nil {
		return refused
	}
	done, refused := s.running.begin(visitor.key)
	if refused != nil {
		return refused
	}
	defer done()
	question.body, refused = readQuestion(w, r, question, s.askTimeout)
	if refused != nil {
		return refused
	}
	question.token = visitor.token
	question.accept = accepted(r.Header.Get("Accept"))
	question.states = firstOf(r.Header.Get("Accept")) == acceptStates && states.Has(question.resource)
	return s.hub.pass(w, r, question)
}

// withoutPassword returns a server's address for users.
func withoutPassword(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	return strings.TrimSuffix(shown.String(), "/")
}
