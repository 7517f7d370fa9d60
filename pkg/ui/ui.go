// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui serves the page of a hub on loopback, and passes the page's questions on to the hub: as the user of a kubeconfig for
// "kubectl hub ui", and for hub-ui as the user whose token comes with the request.
//
// The server can do to the hub what its user can, and every other site that the browser shows, and every other user of the machine, can
// send requests to it. So it reads alone, and only what the page shows; it answers only a browser that has been let in; and nothing of a
// request reaches the hub but a path and parameters that are made anew from checked parts, and for hub-ui the token.
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
)

const (
	// maxURI bounds the path and the parameters of a request; parameters have selectors and the place where a list goes on in them.
	maxURI = 16 << 10
	// maxHeaders bounds the headers. Browsers send the cookies of all servers of this machine, whatever their ports.
	maxHeaders = 64 << 10
	// maxConnections and maxRequests bound what is open at one time. Browsers have six connections for each page.
	maxConnections, maxRequests = 128, 64
	// maxConnectionsOfAll and maxRequestsOfAll are those where there are many users, of whom each has maxRequests.
	maxConnectionsOfAll, maxRequestsOfAll = 2048, 1024
	// askTimeout is how long a client may take for the headers, and for the body; writeTimeout how long to take a part of the answer.
	askTimeout, writeTimeout, idleTimeout = 10 * time.Second, 30 * time.Second, 2 * time.Minute
	// answerTimeout is how long the hub may take to answer what is not a watch.
	answerTimeout = time.Minute
)

// Config says what is served to the user of a kubeconfig.
type Config struct {
	// Hub is the way to the hub, as its user.
	Hub *rest.Config
	// Files are those of the page: index.html, and others beside it.
	Files fs.FS
	// About is what the page says of the connection.
	About About
	// Where are the flags by which commands on the page find the hub, such as "--context=hub".
	Where []string

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
	// SignOut is the path that ends the login, if there is one.
	SignOut string `json:"signOut,omitempty"`
}

// Server is the server of the page.
type Server struct {
	files map[string]file
	about About
	hub   *upstream
	// door says who is let in, and how browsers call this server.
	door           door
	running        *counter
	answering      *counter
	where          []string
	maxConnections int
	askTimeout     time.Duration
}

// door is what differs between a page for one user, and one for all who log in.
type door interface {
	// checkConnection refuses programs that are not answered, whatever they ask.
	checkConnection(r *http.Request) *refusal
	// origin is that of the pages of a host, or empty if this server is not called by that name.
	origin(host string) string
	// reopen says how people get at the page.
	reopen() string
	// leadsTo is whether other sites may lead a browser to a view.
	leadsTo(path string) bool
	// letIn says as whom the hub is asked, or why it is not.
	letIn(r *http.Request) (visitor, *refusal)
	// begin lets a browser in that has a secret.
	begin(s *Server, w http.ResponseWriter, r *http.Request) *refusal
}

// visitor is one who was let in.
type visitor struct {
	// token is the credential that goes with what is asked. Without one, those of the way to the hub do.
	token string
	// key tells visitors apart, without any secret.
	key [sha256.Size]byte
}

// New makes a server for a listener, which has to be on loopback: nothing is encrypted.
func New(config Config, listener net.Addr) (*Local, error) {
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
			return context.WithValue(ctx, connectionKey{}, &peer{Conn: connection})
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
	err := server.Serve(netutil.LimitListener(listener, s.maxConnections))
	if stop() { // it ends by itself
		_ = server.Close()
		return err
	}
	return <-ended
}

// connectionKey is the key of a request's connection.
type connectionKey struct{}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if refused := s.serve(w, r); refused != nil {
		if r.ContentLength != 0 {
			// What comes behind a body that is not read could be taken for another request.
			w.Header().Set("Connection", "close")
		}
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
	case strings.HasPrefix(path, "/answers/"):
		if refused := s.checkData(r); refused != nil {
			return refused
		}
		return s.serveAnswer(w, r, strings.TrimPrefix(path, "/answers"), query)
	}
	return s.servePage(w, r, path)
}

// serveHub asks the hub.
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
	if question.body, refused = s.readQuestion(w, r, question); refused != nil {
		return refused
	}
	question.token = visitor.token
	question.accept = accepted(r.Header.Get("Accept"))
	return s.hub.pass(w, r, question)
}

// withoutPassword is a server's address as people may see it.
func withoutPassword(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	return strings.TrimSuffix(shown.String(), "/")
}
