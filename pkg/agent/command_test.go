// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/work"
)

// Several tests run the command in this process.
func init() { logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged }

func byCertificate(o *Options) *csr.RegisterDriver {
	return o.Drivers.Named("csr").(*csr.RegisterDriver)
}

func byAWS(o *Options) *awsirsa.RegisterDriver {
	return o.Drivers.Named("awsirsa").(*awsirsa.RegisterDriver)
}

func TestOptions_ErrorsNameFlag(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	ca := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(ca, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"--spoke-kubeconfig": func(o *Options) { o.Spoke.Kubeconfig = "" },
		"--detached needs": func(o *Options) {
			o.Spoke.Detached, o.Spoke.Kubeconfig, o.Spoke.ManagementKubeconfig = true, "", "file"
		},
		"--management-kubeconfig must":  func(o *Options) { o.Spoke.Detached = true },
		"--management-kubeconfig needs": func(o *Options) { o.Spoke.ManagementKubeconfig = "file" },
		"--spoke-namespace needs":       func(o *Options) { o.Spoke.ManagedNamespace = "n" },
		"--same-cluster needs":          func(o *Options) { o.Spoke.SameCluster = true },
		"--registration=false needs":    func(o *Options) { o.Registration = false },
		"--hub-kubeconfig-dir needs":    func(o *Options) { o.Works.Enabled, o.HubKubeconfigDir = true, "dir" },
		"--bootstrap-kubeconfig must":   func(o *Options) { o.Registration, o.Works.Enabled, o.BootstrapKubeconfig = false, true, "file" },
		"--bootstrap-kubeconfig must not be set with --bootstrap-kubeconfigs": func(o *Options) {
			o.Hubs.Files, o.BootstrapKubeconfig = []string{"a", "b"}, "file"
		},
		"--bootstrap-kubeconfigs must not be set with --registration=false": func(o *Options) {
			o.Hubs.Files, o.Registration, o.Works.Enabled = []string{"a", "b"}, false, true
		},
		"--hub-connection-timeout-seconds": func(o *Options) { o.Hubs.TimeoutSeconds = 1 },
		"--namespace":                      func(o *Options) { o.Spoke.Namespace = "" },
		"--cluster-name: \"A b\"":          func(o *Options) { o.ClusterName = "A b" },
		"--cluster-name: no cluster":       func(o *Options) { o.ClusterName = "managed-clusters" },
		"--cluster-addresses must":         func(o *Options) { o.Addresses = `[{"url": "http://x"}]` },
		"--cluster-server-url: \"http":     func(o *Options) { o.ServerURL = "http://x" },
		"--cluster-ca-file needs":          func(o *Options) { o.ServerCAFile = ca },
		"has no PEM certificates":          func(o *Options) { o.ServerURL, o.ServerCAFile = "https://x", ca },
		"--cluster-annotations":            func(o *Options) { o.ClusterAnnotations = map[string]string{"x": "y"} },
		"--lease-duration-seconds":         func(o *Options) { o.LeaseSeconds = 0 },
		"--max-custom-cluster-claims":      func(o *Options) { o.Claims.Most = -1 },
		"--reserved-cluster-claim":         func(o *Options) { o.Claims.Reserved = []string{".a", ""} },
		"--kube-api-qps":                   func(o *Options) { o.Spoke.Requests.QPS = 0 },
		"--works-kube-api-burst":           func(o *Options) { o.Works.Requests.Burst = -1 },
		"--works-hub-kube-api-qps":         func(o *Options) { o.Works.HubRequests.QPS = -1 },
		"--client-cert-expiration-seconds": func(o *Options) { byCertificate(o).ExpirationSeconds = 60 },
		"--max-json-raw-length":            func(o *Options) { o.Works.Feedback.MaxJSONRaw = 1025 },
		"--works-namespace":                func(o *Options) { o.Works.Namespace = "A" },
		"--edge-namespace: \"A\"":          func(o *Options) { o.Edge.Namespace = "A" },
		"--edge needs":                     func(o *Options) { o.Edge.Enabled, o.Registration, o.Works.Enabled = true, false, true },
		"--edge-namespace must not be \"team\", which": func(o *Options) {
			o.Edge.Enabled, o.Edge.Namespace, o.Spoke.Namespace = true, "team", "team"
		},
		"--edge-namespace must not be \"pods\", which": func(o *Options) {
			o.Edge.Enabled, o.Edge.Namespace = true, "pods"
			o.Spoke.Detached, o.Spoke.SameCluster, o.Spoke.ManagementKubeconfig, o.Spoke.Namespace, o.Spoke.ManagedNamespace = true, true, "file", "pods", "team"
		},
		"--edge-namespace must not be \"accounts\"": func(o *Options) {
			o.Edge.Enabled, o.Edge.Namespace = true, "accounts"
			o.Spoke.Detached, o.Spoke.ManagementKubeconfig, o.Spoke.ManagedNamespace = true, "file", "accounts"
		},
		"--works-namespace must be \"team\"": func(o *Options) {
			o.Spoke.NamespaceScoped, o.Spoke.Namespace, o.ClusterName, o.Works.Namespace = true, "team", "c1", "other"
		},
		"--namespace-scoped needs":    func(o *Options) { o.Spoke.NamespaceScoped = true },
		"--namespace-scoped must not": func(o *Options) { o.Spoke.NamespaceScoped, o.ClusterName, o.Spoke.Detached = true, "c1", true },
		"--detect-cluster-labels must not": func(o *Options) {
			o.Spoke.NamespaceScoped, o.ClusterName, o.ClusterLabels.Detect = true, "c1", true
		},
		"--registration-auth":   func(o *Options) { o.Auth = "grpc" },
		"--hub-cluster-arn":     func(o *Options) { o.Auth, byAWS(o).ManagedARN = "aws-irsa", managedARN },
		"--managed-cluster-arn": func(o *Options) { o.Auth, byAWS(o).HubARN = "awsirsa", hubARN },
		"--eks-token-command": func(o *Options) {
			o.Auth, *byAWS(o) = "awsirsa", awsirsa.RegisterDriver{HubARN: hubARN, ManagedARN: managedARN, TokenCommand: "x"}
		},
		"--hub-role-path": func(o *Options) {
			o.Auth, *byAWS(o) = "awsirsa", awsirsa.RegisterDriver{HubARN: hubARN, ManagedARN: managedARN, TokenCommand: "aws", HubRolePath: "clusterhub"}
		},
	} {
		o := NewOptions()
		o.Spoke.Kubeconfig = "file"
		if err := o.Validate(); err != nil {
			t.Fatalf("the defaults: %v", err)
		}
		change(o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Without the defaults, objects would be deleted as soon as the hub does not know their work.
func TestOptions_WorkDefaults(t *testing.T) {
	if got, want := NewOptions().Works, work.NewOptions(); got != want || got.Enabled || got.Grace == 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOptions_FeedbackListsNeedFeatureGate(t *testing.T) {
	o := NewOptions()
	if o.works().Feedback.Raw {
		t.Error("they are on by default")
	}
	if err := o.FeatureGate.Set("RawFeedbackJsonString=true"); err != nil || !o.works().Feedback.Raw || o.works().Feedback.MaxJSONRaw != 1024 {
		t.Errorf("they are %+v: %v", o.works().Feedback, err)
	}
}

func TestOptions_WorksNamespace(t *testing.T) {
	for scoped, want := range map[bool]string{false: "", true: "team"} {
		o := NewOptions()
		o.Spoke.NamespaceScoped, o.Spoke.Namespace = scoped, "team"
		if got := o.works().Namespace; got != want {
			t.Errorf("with rights in one namespace alone, %t: works are kept in %q, want %q", scoped, got, want)
		}
	}
}

func TestOptions_HubARNSpellings(t *testing.T) {
	for _, flag := range []string{"--hub-cluster-arn", "--eks-hub-cluster-arn"} {
		o := NewOptions()
		flags := o.Flags()
		if err := flags.FlagSet("registration").Parse([]string{flag + "=" + hubARN}); err != nil || byAWS(o).HubARN != hubARN {
			t.Errorf("%s: %v, %q", flag, err, byAWS(o).HubARN)
		}
	}
}

func TestCommand_InvalidStartPrintsOneLine(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, args := range [][]string{
		{},
		{"--spoke-kubeconfig=/nowhere", "--registration=false"},
		{"--detached"},
		{"unjoin"},
		{"unjoin", "--detached", "--management-kubeconfig=/nowhere", "--spoke-kubeconfig=/nowhere"},
		{"unjoin", "--spoke-kubeconfig=/nowhere"},
		{"unjoin", "--spoke-kubeconfig=/nowhere", "--timeout=-1s"},
		{"unjoin", "more"},
	} {
		cmd := NewCommand()
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestCommand_HelpListsFlagsAndCommands(t *testing.T) {
	out := &bytes.Buffer{}
	cmd := NewCommand()
	cmd.SetArgs([]string{"--help"})
	cmd.SetOut(out)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--bootstrap-kubeconfig", "--cluster-name", "--spoke-kubeconfig"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in the help", want)
		}
	}
	if o := NewOptions(); o.Spoke.Namespace != "open-cluster-management-agent" {
		t.Errorf("the namespace is %s", o.Spoke.Namespace)
	}
}

// The whole process, with a managed cluster that does not respond, ends with its context.
func TestRun_EndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(agenttest.Quiet(t))
	defer cancel()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NotFound(w, r)
		cancel() // it has sent a request
	}))
	defer own.Close()
	o := NewOptions()
	o.HealthAddress, o.Metrics.Address = "127.0.0.1:0", "127.0.0.1:0"
	o.Spoke.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + own.URL + "\"}}]\n" +
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(o.Spoke.Kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.Run(ctx); err != nil {
		t.Error(err)
	}
}

// A process that has the identity in a folder does not need the management cluster.
func TestOptions_WorksAloneNeedNoManagementCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	o := NewOptions()
	o.Registration, o.Works.Enabled, o.Spoke.Detached, o.Spoke.Kubeconfig = false, true, true, "file"
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--management-kubeconfig") {
		t.Errorf("without a folder: %v", err)
	}
	o.HubKubeconfigDir = "dir"
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}
