// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// TestApply_LogsNoContent sets the highest verbosity in every possible way.
func TestApply_LogsNoContent(t *testing.T) {
	out := captured(t)
	config := logsapi.NewLoggingConfiguration()
	config.Verbosity = 10
	config.VModule = logsapi.VModuleConfiguration{{FilePattern: "*", Verbosity: 10}}
	if err := Apply(config, gates(t, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = logsapi.ResetForTest(nil) })
	if _, err := logs.GlogSetter("10"); err != nil { // PUT /debug/flags/v
		t.Fatal(err)
	}

	client := secretsClient(t)
	for name, ctx := range map[string]context.Context{
		"no logger": context.Background(),
		"a logger":  klog.NewContext(context.Background(), klog.Background().WithName("x").WithValues("k", "v").WithCallDepth(0)),
	} {
		if _, err := client.CoreV1().Secrets("ns").Get(ctx, "s", metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	klog.V(8).InfoS("structured, too much")
	klog.V(7).InfoS("structured, enough")
	slog.Log(t.Context(), -8, "slog, too much")
	slog.Log(t.Context(), -7, "slog, enough")
	klog.Infof("plain")

	log := out()
	for _, secret := range []string{"aHVudGVyMi1odW50ZXIy", "too much"} {
		if strings.Contains(log, secret) {
			t.Errorf("%q is in the log:\n%s", secret, log)
		}
	}
	for _, line := range []string{
		`verbosity=7 asked=10`, "/api/v1/namespaces/ns/secrets/s", "structured, enough", "slog, enough",
		"] plain", "logging_test.go:",
	} {
		if !strings.Contains(log, line) {
			t.Errorf("%q is not in the log:\n%s", line, log)
		}
	}
}

// TestLimit_IsNecessary: without it the same request is logged with all of its content.
func TestLimit_IsNecessary(t *testing.T) {
	var out bytes.Buffer
	open := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(10), textlogger.Output(&out)))
	for name, test := range map[string]struct {
		logger logr.Logger
		logged bool
	}{"open": {open, true}, "limited": {Limit(open), false}} {
		out.Reset()
		_, err := secretsClient(t).CoreV1().Secrets("ns").Get(klog.NewContext(t.Context(), test.logger), "s", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if logged := strings.Contains(out.String(), "aHVudGVyMi1odW50ZXIy"); logged != test.logged {
			t.Errorf("%s: the secret is logged: %v", name, logged)
		}
	}
}

func TestLimit_PreservesCaller(t *testing.T) {
	var out bytes.Buffer
	logger := Limit(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out))))
	for name, l := range map[string]logr.Logger{
		"as it is": logger, "named": logger.WithName("n"), "with values": logger.WithValues("k", "v"),
		"deeper and back": logger.WithCallDepth(1).WithCallDepth(-1),
	} {
		out.Reset()
		l.Info("here")
		l.Error(nil, "here")
		if strings.Count(out.String(), "logging_test.go:") != 2 {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}

func TestApply_RejectsHigherVerbosity(t *testing.T) {
	buffered := logsapi.NewLoggingConfiguration()
	if err := buffered.Options.Text.InfoBufferSize.Set("1Ki"); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"feature gate ContextualLogging": Apply(logsapi.NewLoggingConfiguration(), gates(t, "ContextualLogging=false")),
		"--log-text-info-buffer-size":    Apply(buffered, gates(t, "LoggingAlphaOptions=true")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %s", err, want)
		}
	}
}

func gates(t *testing.T, set string) featuregate.FeatureGate {
	t.Helper()
	gate := featuregate.NewFeatureGate()
	if err := logsapi.AddFeatureGates(gate); err != nil {
		t.Fatal(err)
	}
	if err := gate.Set(set); err != nil {
		t.Fatal(err)
	}
	return gate
}

// secretsClient returns a client that reads a secret from a server.
func secretsClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"key":"aHVudGVyMi1odW50ZXIy"}}`)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// captured returns a function that returns what the process has written to stderr since then.
func captured(t *testing.T) (read func() string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = file
	t.Cleanup(func() { os.Stderr = stderr; _ = file.Close() })
	return func() string {
		t.Helper()
		klog.Flush()
		data, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}
