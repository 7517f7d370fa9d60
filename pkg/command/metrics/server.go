// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// errNotYet reports that the configuration for the API server is not known yet.
var errNotYet = errors.New("the address of the API server is not known yet")

// Server serves metrics.
type Server struct {
	options Options
	handler http.Handler
	reviews atomic.Pointer[reviews]
}

// New returns a server for handler.
func New(options Options, handler http.Handler) *Server {
	s := &Server{options: options}
	handler = limitConcurrency(handler)
	if options.Secure {
		handler = newGuard(s.review, clock.RealClock{}).around(handler)
	}
	s.handler = exact(handler)
	return s
}

// Use sets the configuration for the API server that issues the tokens of clients. It may be called again.
func (s *Server) Use(config *rest.Config) error {
	r, err := newReviews(config)
	if err == nil {
		s.reviews.Store(r)
	}
	return err
}

func (s *Server) review(ctx context.Context, token string) (verdict, error) {
	r := s.reviews.Load()
	if r == nil {
		return failed, errNotYet
	}
	return r.review(ctx, token)
}

// Listen opens the address, if one is set, so that a program whose address is in use fails when it starts. It is for HTTP/1.1 only: there are few
// clients.
func (s *Server) Listen(ctx context.Context) (net.Listener, error) {
	if !s.options.serves() {
		return nil, nil
	}
	var config *tls.Config
	if s.options.Secure {
		c, err := newCertificate(s.options.CertDir)
		if err != nil {
			return nil, err
		}
		config = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: c.get}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return nil, err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	klog.FromContext(ctx).Info("Listening", "for", "metrics", "address", listener.Addr().String(), "secure", s.options.Secure)
	return listener, nil
}

// HTTP returns the server for the listener of Listen.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler: s.handler, DisableGeneralOptionsHandler: true,
		// Any client that reaches the port can open connections: their time and size are limited.
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxToken + 8<<10,
		// Failed handshakes of unknown clients are not worth an error.
		ErrorLog: log.New(quiet{}, "", 0),
	}
}

// Serve serves in the background, until stop is called. With the address "0" it does nothing.
func (s *Server) Serve(ctx context.Context) (stop func(), err error) {
	listener, err := s.Listen(ctx)
	if err != nil || listener == nil {
		return func() {}, err
	}
	server, ended := s.HTTP(), make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "The server has stopped", "for", "metrics")
		}
	}()
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}

// quiet logs the messages of http.Server at a high verbosity.
type quiet struct{}

func (quiet) Write(line []byte) (int, error) {
	klog.Background().V(4).Info("The server of metrics", "says", string(line))
	return len(line), nil
}
