// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/test/leak"
)

const adminToken = "hunter2-hunter2-hunter2-hunter2"

// server is a hostile server that counts its requests.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
}

// serve starts a server, with HTTP/2 like API servers.
func serve(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests++
		s.mu.Unlock()
		handler(w, r)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// kubeconfig returns the kubeconfig of an admin for the server, with more fields of the cluster.
func (s *server) kubeconfig(more string) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s%s}}], users: [{name: u, user: {token: %s}}]}`,
		s.URL, base64.StdEncoding.EncodeToString(ca), more, adminToken)
}

// connect returns the Connection to a server.
func connect(t *testing.T, s *server) *Connection {
	t.Helper()
	source, err := mint.Parse(s.kubeconfig(""))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(source, Options{UserAgent: "test", QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// impatient sets other time limits.
func (c *Connection) impatient(request, idle time.Duration) *Connection {
	g := c.config.Transport.(*guard)
	g.requestTimeout, g.watchIdle = request, idle
	return c
}

// small sets limits of a few bytes, since counting many takes long.
func (c *Connection) small() *Connection {
	g := c.config.Transport.(*guard)
	g.answer, g.entries, g.metadata, g.metadataEntries = smallAnswer, smallEntries, smallEvent, smallEntries
	return c
}

const smallAnswer, smallEvent, smallEntries = 100_000, 40_000, 1000

func (c *Connection) controllerClient(t *testing.T) client.WithWatch {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "ServiceAccount"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	made, err := c.Client(client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// ways returns all ways to send requests to a cluster, as users of the package do.
func ways(t *testing.T, c *Connection) map[string]func(context.Context) error {
	t.Helper()
	typed, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	own := c.controllerClient(t)
	key := client.ObjectKey{Namespace: "n", Name: "x"}
	return map[string]func(context.Context) error{
		"get":  func(ctx context.Context) error { return own.Get(ctx, key, &corev1.Secret{}) },
		"list": func(ctx context.Context) error { return own.List(ctx, &corev1.SecretList{}) },
		"write": func(ctx context.Context) error {
			return own.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}})
		},
		"token": func(ctx context.Context) error {
			_, err := c.Token(ctx, mint.Account{Namespace: "n", Name: "x", UID: "u"}, time.Hour)
			return err
		},
		"discovery": func(context.Context) error { _, err := discovered.ServerVersion(); return err },
		"clientset": func(ctx context.Context) error {
			_, err := typed.CoreV1().Secrets("n").Get(ctx, "x", metav1.GetOptions{})
			return err
		},
	}
}

// shown returns an error as it is shown; it fails if that contains a secret, or more than a line.
func shown(t *testing.T, c *Connection, err error) string {
	t.Helper()
	text := c.Explain(err)
	if found := (leak.Secrets{"admin's token": []byte(adminToken), "granted": []byte(grantedToken)}).Find([]byte(text)); len(found) > 0 {
		t.Errorf("%q shows %v", text, found)
	}
	if len(text) > MaxMessage {
		t.Errorf("it has %d bytes: %s", len(text), text)
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f || r == 0x9b || r == 0x202e {
			t.Errorf("%q has control characters", text)
			break
		}
	}
	return text
}

func reasonOf(err error) string {
	var ours *Error
	if errors.As(err, &ours) {
		return ours.Reason
	}
	return ""
}
