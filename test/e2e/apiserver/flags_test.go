// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const (
	auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  omitStages: [RequestReceived]
`
	tracing = `
apiVersion: apiserver.config.k8s.io/v1
kind: TracingConfiguration
samplingRatePerMillion: 1000000
endpoint: `
)

func written(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// undecoded passes messages through without decoding.
type undecoded struct{}

func (undecoded) Marshal(any) ([]byte, error) { return nil, nil } // the empty response
func (undecoded) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(data)
	return nil
}
func (undecoded) Name() string { return "proto" }

// collector receives spans over OTLP and records the requests.
func collector(t *testing.T) (address string, got *harness.Buffer) {
	t.Helper()
	got = &harness.Buffer{}
	server := grpc.NewServer(grpc.ForceServerCodec(undecoded{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		_, _ = got.Write(append([]byte(method), request...))
		return stream.SendMsg(nil)
	}))
	listener := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String(), got
}

// encryption covers all resources, with a key of 32 bytes.
const encryption = `
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: ["*.*"]
  providers: [{aesgcm: {keys: [{name: key1, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}]
`

// TestFlags_GenericServerFlags starts a hub-apiserver with flags that operators also set on a kube-apiserver.
func TestFlags_GenericServerFlags(t *testing.T) {
	endpoint, spans := collector(t)
	auditLog := filepath.Join(t.TempDir(), "audit.log")
	dir := t.TempDir()
	p := readyProcess(t, dir, "--encryption-provider-config="+written(t, encryption), "--audit-policy-file="+written(t, auditPolicy), "--audit-log-path="+auditLog,
		"--tracing-config-file="+written(t, tracing+endpoint), "--goaway-chance=0.02",
		"--max-requests-inflight=50", "--max-mutating-requests-inflight=20")

	t.Run("embedded etcd is among the checks", func(t *testing.T) {
		out, err := harness.Get(t, p.config(), "/readyz?verbose")
		if err != nil {
			t.Error(err)
		}
		harness.Contains(t, out, "[+]etcd ok", "[+]embedded-etcd ok")
	})
	t.Run("a body that is too large", func(t *testing.T) {
		config := `{"url":"https://a","caBundle":"` + strings.Repeat("QUFB", 1<<14) + `"}`
		spec := `"spec":{"managedClusterClientConfigs":[` + strings.Repeat(config+",", 7) + config + `]}`
		code, answer := rawClient{harness.RESTClient(t, p.config())}.do(t, badRequest{body: clusterBody(`"metadata":{"name":"large"},` + spec)})
		if code != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d %s, want a 413", code, answer)
		}
	})
	t.Run("audit", func(t *testing.T) {
		config := p.config()
		who := harness.User(t, harness.Rule("create", "managedclusters"))
		config.Impersonate = rest.ImpersonationConfig{UserName: who}
		_, err := harness.Ours(t, config).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster("refused", map[string]string{harness.SetLabel: "a"}), metav1.CreateOptions{})
		harness.WantForbidden(t, err)
		harness.Must(harness.Ours(t, p.config()).ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster("audited", nil), metav1.CreateOptions{}))(t)
		found := map[string]auditv1.Event{}
		for _, e := range harness.AuditEvents(t, auditLog) {
			if e.Verb == "create" && e.ObjectRef != nil && e.ObjectRef.Resource == "managedclusters" {
				found[e.ObjectRef.Name] = e
			}
		}
		if e := found["audited"]; e.User.Username != "admin" || e.ResponseStatus == nil || e.ResponseStatus.Code != http.StatusCreated {
			t.Errorf("a write is in the log as %+v", e)
		}
		if e := found["refused"]; e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != who || e.ResponseStatus.Code != http.StatusForbidden {
			t.Errorf("a refusal is in the log as %+v", e)
		}
	})
	t.Run("encryption", func(t *testing.T) {
		const secret = "s3cret-of-a-cluster"
		cluster := harness.ManagedCluster("encrypted", nil)
		cluster.Annotations = map[string]string{"secret": secret}
		clusters := harness.Ours(t, p.config()).ClusterV1().ManagedClusters()
		harness.Must(clusters.Create(t.Context(), cluster, metav1.CreateOptions{}))(t)
		if have := harness.Must(clusters.Get(t.Context(), "encrypted", metav1.GetOptions{}))(t); have.Annotations["secret"] != secret {
			t.Errorf("it is read as %v", have.Annotations)
		}
		stored := ""
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			stored += string(data)
			return err
		})
		if err != nil || !strings.Contains(stored, "k8s:enc:aesgcm:v1:key1:") || strings.Contains(stored, secret) {
			t.Errorf("what is stored is not encrypted, or not all of it: %v", err)
		}
	})
	t.Run("tracing", func(t *testing.T) {
		harness.Eventually(t, "the spans of the write arrive", func(context.Context) (bool, error) {
			got := spans.String()
			return strings.Contains(got, "/opentelemetry.proto.collector.trace.v1.TraceService/Export") && strings.Contains(got, "managedclusters"), nil
		})
	})
	t.Run("goaway", func(t *testing.T) {
		config := p.config()
		var connections atomic.Int32
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			connections.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		client := harness.RESTClient(t, config)
		harness.Eventually(t, "a client is sent to another connection", func(ctx context.Context) (bool, error) {
			for range 50 {
				if err := client.Get().AbsPath("/livez").Do(ctx).Error(); err != nil {
					return false, err
				}
			}
			return connections.Load() > 1, nil
		})
	})
}

// TestFlags_InvalidAreRejected verifies that a hub-apiserver with invalid flags exits, and names the flag.
func TestFlags_InvalidAreRejected(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct{ flag, says string }{
		"tracing":         {"--tracing-config-file=" + written(t, tracing+"nowhere\nsamplingRate: 1"), "samplingRate"},
		"no tracing file": {"--tracing-config-file=" + filepath.Join(t.TempDir(), "missing"), "missing"},
		"audit":           {"--audit-policy-file=" + written(t, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []"), "rules"},
		"goaway":          {"--goaway-chance=0.5", "goaway-chance"},
		"a time limit":    {"--request-timeout=-1s", "request-timeout"},
	} {
		t.Run(what, func(t *testing.T) {
			p := startProcess(t, t.TempDir(), test.flag, "--audit-log-path=-")
			if code := p.exitCode(t); code == 0 {
				t.Error("the exit code is 0")
			}
			harness.Contains(t, p.out.String(), test.says)
		})
	}
}
