// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// The front publishes the CAs of its own certificate and of its users' here.
	authenticationNamespace = metav1.NamespaceSystem
	authenticationConfigMap = "extension-apiserver-authentication"

	// caTimeout is the time for which connections are rejected because a CA that the front publishes is missing.
	caTimeout = 30 * time.Second
	caPoll    = 20 * time.Millisecond
)

// completeCA withholds client CAs until all of them have been loaded. They are loaded one by one after the server has begun to listen. A client that
// connects too early, with a certificate of a CA that is missing, would be anonymous for as long as that connection lasts, and the connections of the
// front last long. Until then the server has no certificate (heldCertificate) and so rejects connections. Clients retry, and the server is not ready.
type completeCA struct {
	dynamiccertificates.CAContentProvider
	// wanted are the required bundles.
	wanted [][]byte
	// headers reports whether the names of the headers are known in which the front sends the user.
	headers func() bool
	// complete stays true: CAs that are rotated later are used immediately.
	complete atomic.Bool

	mu        sync.Mutex
	listeners []dynamiccertificates.Listener
}

var (
	_ dynamiccertificates.CAContentProvider = &completeCA{}
	_ dynamiccertificates.ControllerRunner  = &completeCA{}
)

// holdBackClientCA wraps the client CAs of a server that is not running yet.
func holdBackClientCA(ctx context.Context, hub kubernetes.Interface, config *genericapiserver.Config) error {
	if config.SecureServing == nil || config.SecureServing.ClientCA == nil {
		return nil
	}
	published, err := hub.CoreV1().ConfigMaps(authenticationNamespace).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the ConfigMap %s/%s: %w", authenticationNamespace, authenticationConfigMap, err)
	}
	ca := &completeCA{CAContentProvider: config.SecureServing.ClientCA, headers: func() bool { return true }}
	for _, key := range []string{"client-ca-file", "requestheader-client-ca-file"} {
		if bundle := bytes.TrimSpace([]byte(published.Data[key])); len(bundle) > 0 {
			ca.wanted = append(ca.wanted, bundle)
		}
	}
	if headers := config.Authentication.RequestHeaderConfig; headers != nil && published.Data["requestheader-client-ca-file"] != "" {
		ca.headers = func() bool { return len(headers.UsernameHeaders.Value()) > 0 }
	}
	config.SecureServing.ClientCA = ca
	if config.SecureServing.Cert != nil {
		config.SecureServing.Cert = &heldCertificate{CertKeyContentProvider: config.SecureServing.Cert, given: ca.isComplete}
	}
	return nil
}

// heldCertificate is the serving certificate, which is withheld until the client CAs are complete. The listeners of the client CAs, which are
// notified then, are also notified for the certificate.
type heldCertificate struct {
	dynamiccertificates.CertKeyContentProvider
	given func() bool
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &heldCertificate{}
	_ dynamiccertificates.ControllerRunner       = &heldCertificate{}
)

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (c *heldCertificate) CurrentCertKeyContent() (cert, key []byte) {
	if !c.given() {
		return nil, nil
	}
	return c.CertKeyContentProvider.CurrentCertKeyContent()
}

// RunOnce implements dynamiccertificates.ControllerRunner.
func (c *heldCertificate) RunOnce(ctx context.Context) error {
	return runOnce(ctx, c.CertKeyContentProvider)
}

// Run implements dynamiccertificates.ControllerRunner.
func (c *heldCertificate) Run(ctx context.Context, workers int) {
	run(ctx, c.CertKeyContentProvider, workers)
}

// runOnce and run call the wrapped provider if it can be run.
func runOnce(ctx context.Context, provider any) error {
	if runner, ok := provider.(dynamiccertificates.ControllerRunner); ok {
		return runner.RunOnce(ctx)
	}
	return nil
}

func run(ctx context.Context, provider any, workers int) {
	if runner, ok := provider.(dynamiccertificates.ControllerRunner); ok {
		runner.Run(ctx, workers)
	}
}

func (c *completeCA) isComplete() bool {
	if c.complete.Load() {
		return true
	}
	content := c.CAContentProvider.CurrentCABundleContent()
	for _, bundle := range c.wanted {
		if !bytes.Contains(content, bundle) {
			return false
		}
	}
	if !c.headers() {
		return false
	}
	c.complete.Store(true)
	return true
}

// CurrentCABundleContent implements dynamiccertificates.CAContentProvider.
func (c *completeCA) CurrentCABundleContent() []byte {
	if !c.isComplete() {
		return nil
	}
	return c.CAContentProvider.CurrentCABundleContent()
}

// VerifyOptions implements dynamiccertificates.CAContentProvider.
func (c *completeCA) VerifyOptions() (x509.VerifyOptions, bool) {
	if !c.isComplete() {
		return x509.VerifyOptions{}, false
	}
	return c.CAContentProvider.VerifyOptions()
}

// AddListener implements dynamiccertificates.Notifier.
func (c *completeCA) AddListener(listener dynamiccertificates.Listener) {
	c.mu.Lock()
	c.listeners = append(c.listeners, listener)
	c.mu.Unlock()
	c.CAContentProvider.AddListener(listener)
}

// RunOnce implements dynamiccertificates.ControllerRunner.
func (c *completeCA) RunOnce(ctx context.Context) error {
	return runOnce(ctx, c.CAContentProvider)
}

// Run implements dynamiccertificates.ControllerRunner.
func (c *completeCA) Run(ctx context.Context, workers int) {
	go c.awaitComplete(ctx)
	run(ctx, c.CAContentProvider, workers)
}

// awaitComplete notifies the listeners when the CAs are complete.
func (c *completeCA) awaitComplete(ctx context.Context) {
	err := wait.PollUntilContextTimeout(ctx, caPoll, caTimeout, true, func(context.Context) (bool, error) { return c.isComplete(), nil })
	if err != nil && ctx.Err() == nil {
		klog.InfoS("A client CA that the hub's kube-apiserver publishes has not arrived; serving without it", "configMap",
			klog.KRef(authenticationNamespace, authenticationConfigMap))
		c.complete.Store(true)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, listener := range c.listeners {
		listener.Enqueue()
	}
}
