// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servingcert issues the serving certificate of hub-apiserver without any other tool: a CA in a Secret that all replicas share, a certificate
// of its own for each replica, and a caBundle in our APIServices that follows the CA.
//
// Nothing here needs a restart. Certificates are renewed in memory; a CA is replaced before it expires, published in the caBundle first and used an
// hour later. If the Secret is deleted, a new CA is created at once, and it alone is trusted: this is the remedy when its key was exposed.
package servingcert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/clock"
)

const (
	// startTimeout is the time for which New waits for a kube-apiserver that does not respond, or does not grant the needed rights yet.
	startTimeout = 60 * time.Second
	// syncInterval is the interval of reads of the Secret. It must be well below rotationGrace.
	syncInterval = 5 * time.Minute
	minRetry     = 500 * time.Millisecond
	maxRetry     = time.Minute
)

// Options configures the service of the certificate and the location of its Secret.
type Options struct {
	// Namespace is the namespace of the service, and of the Secret.
	Namespace string
	// Service is the name that APIServices have in spec.service.name.
	Service string
	// Groups are the API groups that the server serves: if the hub serves one from elsewhere, the log reports that.
	Groups []string
	// Kubernetes reads and writes the Secret.
	Kubernetes kubernetes.Interface
	// Aggregator watches and patches the APIServices.
	Aggregator aggregatorclient.Interface
	// Clock determines when certificates are due; nil means the real one.
	Clock clock.Clock
}

// Manager has the certificate of this replica and reconciles the shared CA and the caBundles while Run runs.
type Manager struct {
	config   Options
	clock    clock.Clock
	store    store
	dnsNames []string

	syncLock sync.Mutex // one sync at a time
	content  *content   // as last read; guarded by syncLock

	leaf          atomic.Pointer[leaf]
	bundle        atomic.Pointer[[]byte]
	bundleChanged chan struct{} // holds one token when the APIServices must be checked again

	listenerLock sync.Mutex
	listeners    []dynamiccertificates.Listener
}

var _ dynamiccertificates.CertKeyContentProvider = &Manager{}

// New returns a Manager that has a certificate to serve. It creates the CA if it does not exist. Requests to a kube-apiserver that does not respond
// are retried for up to 60 seconds; with a Secret that is not usable New fails at once (ErrInvalidSecret).
func New(ctx context.Context, config Options) (*Manager, error) {
	m, err := newManager(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for retry := minRetry; ; retry = min(2*retry, maxRetry) {
		_, err := m.sync(ctx)
		if m.leaf.Load() != nil {
			if err != nil {
				klog.FromContext(ctx).Error(err, "The serving certificate is ready, but its CA needs attention")
			}
			return m, nil
		}
		if errors.Is(err, ErrInvalidSecret) {
			return nil, err
		}
		klog.FromContext(ctx).Info("No serving certificate yet, retrying", "reason", err.Error(), "in", retry)
		if !m.wait(ctx, retry) {
			return nil, fmt.Errorf("no serving certificate: %w (it needs a Role with get, create and update on Secret %s/%s)",
				err, config.Namespace, SecretName)
		}
	}
}

func newManager(config Options) (*Manager, error) {
	if config.Namespace == "" || config.Service == "" || config.Kubernetes == nil || config.Aggregator == nil {
		return nil, errors.New("servingcert: Namespace, Service, Kubernetes and Aggregator must all be set")
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	host := config.Service + "." + config.Namespace + ".svc"
	return &Manager{
		config:        config,
		clock:         config.Clock,
		store:         store{secrets: config.Kubernetes.CoreV1().Secrets(config.Namespace), namespace: config.Namespace},
		dnsNames:      []string{host, host + ".cluster.local", "localhost"},
		bundleChanged: make(chan struct{}, 1),
	}, nil
}

// Name identifies the certificate in the server's log.
func (m *Manager) Name() string {
	return "serving-cert::" + m.config.Namespace + "/" + SecretName
}

// CurrentCertKeyContent returns the current certificate and its private key, both in PEM form.
func (m *Manager) CurrentCertKeyContent() (certPEM, keyPEM []byte) {
	l := m.leaf.Load()
	return l.certPEM, l.keyPEM
}

// AddListener registers listener to be notified of each new certificate.
func (m *Manager) AddListener(listener dynamiccertificates.Listener) {
	m.listenerLock.Lock()
	defer m.listenerLock.Unlock()
	m.listeners = append(m.listeners, listener)
}

// CABundle returns the CAs to trust in PEM form, as in spec.caBundle of our APIServices.
func (m *Manager) CABundle() []byte {
	return bytes.Clone(*m.bundle.Load())
}

// Run renews the certificate, rotates the CA and reconciles the caBundles of our APIServices until ctx ends. Errors are logged and retried. Every
// replica runs it. It must be called once.
func (m *Manager) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { m.runRotation(ctx) })
	wg.Go(func() { m.runCABundle(ctx) })
	wg.Wait()
}

func (m *Manager) runRotation(ctx context.Context) {
	pause, retry := syncInterval, minRetry
	for m.wait(ctx, pause) {
		if _, err := m.sync(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			klog.FromContext(ctx).Error(err, "Could not update the serving CA; the current certificate stays in use", "retryIn", retry)
			pause, retry = retry, min(2*retry, maxRetry)
			continue
		}
		pause, retry = syncInterval, minRetry
	}
}

// wait returns true after d, or false if ctx ends before.
func (m *Manager) wait(ctx context.Context, d time.Duration) bool {
	timer := m.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// sync reads the Secret and renews the certificate if it is due or its CA is no longer the one to sign with. If it cannot read the Secret, it
// continues with the CA that it knows; fresh reports whether it could.
func (m *Manager) sync(ctx context.Context) (fresh bool, err error) {
	m.syncLock.Lock()
	defer m.syncLock.Unlock()
	loaded, loadErr := m.store.load(ctx, m.clock.Now())
	if loaded != nil {
		m.content = loaded
	}
	if m.content == nil {
		return false, loadErr
	}
	return loaded != nil, errors.Join(loadErr, m.apply(ctx, m.content))
}

func (m *Manager) apply(ctx context.Context, c *content) error {
	bundle := encodeCertificates(c.bundle...)
	if old := m.bundle.Swap(&bundle); old == nil || !bytes.Equal(*old, bundle) {
		select {
		case m.bundleChanged <- struct{}{}:
		default:
		}
	}
	now := m.clock.Now()
	signer := c.signer(now)
	if l := m.leaf.Load(); l != nil && l.issuer.Equal(signer.cert) && now.Before(l.renewAt) {
		return nil
	}
	renewed, err := signer.issue(m.dnsNames, now)
	if err != nil {
		return fmt.Errorf("cannot make a serving certificate: %w", err)
	}
	m.leaf.Store(renewed)
	expiration.Set(float64(renewed.notAfter.Unix()))
	klog.FromContext(ctx).Info("New serving certificate", "ca", signer.cert.Subject.CommonName, "renewAt", renewed.renewAt)
	m.listenerLock.Lock()
	defer m.listenerLock.Unlock()
	for _, listener := range m.listeners {
		listener.Enqueue()
	}
	return nil
}
