// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	aggregatorfake "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/fake"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterhub/clusterhub/test/await"
)

const (
	testNamespace = "hub"
	testService   = "hub-apiserver"
	testHost      = "hub-apiserver.hub.svc"
)

var begin = time.Date(2030, 1, 1, 0, 0, 0, 123456789, time.UTC)

// newKubernetes returns a fake that rejects an update of a Secret that has changed since it was read, as a kube-apiserver does.
func newKubernetes(objects ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(objects...)
	version := 0
	client.PrependReactor("*", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		// The fake runs one reactor at a time. CreateAction has the same methods as UpdateAction.
		write, ok := action.(clienttesting.CreateAction)
		if !ok {
			return false, nil, nil
		}
		secret := write.GetObject().(*corev1.Secret)
		if action.GetVerb() == "update" {
			current, err := client.Tracker().Get(action.GetResource(), secret.Namespace, secret.Name)
			if err != nil {
				return true, nil, err
			}
			if current.(*corev1.Secret).ResourceVersion != secret.ResourceVersion {
				return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), secret.Name, nil)
			}
		}
		version++
		secret.ResourceVersion = strconv.Itoa(version)
		return false, nil, nil
	})
	return client
}

func testConfig(kube kubernetes.Interface, aggregator aggregatorclient.Interface, clock clock.Clock) Options {
	if aggregator == nil {
		aggregator = aggregatorfake.NewClientset()
	}
	return Options{Namespace: testNamespace, Service: testService, Kubernetes: kube, Aggregator: aggregator, Clock: clock}
}

func mustNew(ctx context.Context, t *testing.T, config Options) *Manager {
	t.Helper()
	m, err := New(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustSync(ctx context.Context, t *testing.T, managers ...*Manager) {
	t.Helper()
	for _, m := range managers {
		if _, err := m.sync(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func getSecret(t *testing.T, kube kubernetes.Interface) *corev1.Secret {
	t.Helper()
	secret, err := kube.CoreV1().Secrets(testNamespace).Get(t.Context(), SecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// signedBy returns the CA that signed the certificate which m serves.
func signedBy(t *testing.T, m *Manager) *x509.Certificate {
	t.Helper()
	return m.leaf.Load().issuer
}

func bundleOf(t *testing.T, m *Manager) []*x509.Certificate {
	t.Helper()
	certs, err := parseCertificates(m.CABundle())
	if err != nil {
		t.Fatal(err)
	}
	return certs
}

// handshake connects to a TLS server that serves m's certificate, as a kube-apiserver with that bundle does at now.
func handshake(t *testing.T, m *Manager, bundle []byte, serverName string, now time.Time) error {
	t.Helper()
	certPEM, keyPEM := m.CurrentCertKeyContent()
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_ = conn.(*tls.Conn).HandshakeContext(context.Background())
			_ = conn.Close()
		}
	}()
	_, err = dial(listener.Addr(), bundle, serverName, now)
	return err
}

// dial returns the certificate of the server at address, after verification.
func dial(address net.Addr, bundle []byte, serverName string, now time.Time) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	conn, err := tls.Dial("tcp", address.String(), &tls.Config{
		RootCAs: roots, ServerName: serverName, Time: func() time.Time { return now },
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// eventually waits for a condition that another goroutine makes true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(await.Limit)
	for !condition() {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("did not happen in %s: %s", await.Limit, what)
		}
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	lock   sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.buffer.String()
}

// withLog returns a context whose logger writes everything, at any verbosity, to the buffer.
func withLog(ctx context.Context) (context.Context, *lockedBuffer) {
	log := &lockedBuffer{}
	return klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(10)))), log
}

// leaks reports whether text contains any line of the private key.
func leaks(text string, keyPEM []byte) bool {
	for line := range strings.Lines(string(keyPEM)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "-----") && strings.Contains(text, line[:min(len(line), 24)]) {
			return true
		}
	}
	return false
}

// gatedKubernetes delays the responses to Gets of a Secret until the given number of them was requested.
type gatedKubernetes struct {
	kubernetes.Interface
	gate *sync.WaitGroup
}

func (g gatedKubernetes) CoreV1() corev1client.CoreV1Interface {
	return gatedCore{g.Interface.CoreV1(), g.gate}
}

type gatedCore struct {
	corev1client.CoreV1Interface
	gate *sync.WaitGroup
}

func (g gatedCore) Secrets(namespace string) corev1client.SecretInterface {
	return &gatedSecrets{SecretInterface: g.CoreV1Interface.Secrets(namespace), gate: g.gate}
}

type gatedSecrets struct {
	corev1client.SecretInterface
	gate *sync.WaitGroup
	once sync.Once
}

func (g *gatedSecrets) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error) {
	secret, err := g.SecretInterface.Get(ctx, name, options)
	g.once.Do(func() {
		g.gate.Done()
		g.gate.Wait()
	})
	return secret, err
}

func newClock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(begin)
}

// contentOf returns the content that m read last, even while m runs.
func contentOf(m *Manager) *content {
	m.syncLock.Lock()
	defer m.syncLock.Unlock()
	return m.content
}
