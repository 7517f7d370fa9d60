// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	tracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// collector receives spans by OTLP, as a collector of traces does.
type collector struct {
	tracev1.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans map[string][]string // names of spans, by trace ID
}

// serve listens on loopback until the test ends, and returns the flag with which servers trace every request.
func (c *collector) serve(t *testing.T) (flag string) {
	t.Helper()
	listener := harness.Must((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	server := grpc.NewServer()
	tracev1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	file := filepath.Join(t.TempDir(), "tracing.json")
	err := os.WriteFile(file, fmt.Appendf(nil,
		`{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration", "endpoint": %q, "samplingRatePerMillion": 1000000}`, listener.Addr().String()), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return "--tracing-config-file=" + file
}

// Export implements TraceServiceServer.
func (c *collector) Export(_ context.Context, request *tracev1.ExportTraceServiceRequest) (*tracev1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range request.GetResourceSpans() {
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				id := hex.EncodeToString(s.GetTraceId())
				c.spans[id] = append(c.spans[id], s.GetName())
			}
		}
	}
	return &tracev1.ExportTraceServiceResponse{}, nil
}

// of returns the spans of a trace that were received so far.
func (c *collector) of(trace string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans[trace])
}
