// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // duration and results of requests
	"k8s.io/klog/v2"
)

// Metrics returns the handler for the metrics of the process.
func Metrics() http.Handler { return legacyregistry.Handler() }

// Serve serves plain HTTP at an address, until stop is called. With the address "0" it does nothing.
func Serve(ctx context.Context, what, address string, handler http.Handler) (stop func(), err error) {
	if address == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Listening", "for", what, "address", listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "The server has stopped", "for", what)
		}
	}()
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}
