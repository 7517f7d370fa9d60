// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/cli"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

// Forbidden returns the error for a user without a permission.
func Forbidden(resource, verb string) *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Group: "cluster.open-cluster-management.io", Resource: resource}, "",
		fmt.Errorf("User \"ann\" cannot %s resource %q", verb, resource)) //nolint:staticcheck // the text is kube-apiserver's
}

// AddBroken adds contexts with servers that do not respond or are not a hub.
func AddBroken(t *testing.T, file string, s *Server) {
	t.Helper()
	plain := newPlainServer(t)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, cluster := range map[string]*clientcmdapi.Cluster{
		"dead": {Server: "https://127.0.0.1:1"}, "nohost": {Server: "https://hub.invalid"}, "noca": {Server: s.URL}, "plain": {Server: plain},
	} {
		config.Clusters[name] = cluster
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "hub"}
	}
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
}

// UserToken is the token of the contexts of the servers. No command may print it.
const UserToken = "the-users-token"

// Kubeconfig writes a kubeconfig with a context for each server. The first of "hub" and "c1" is the current one.
func Kubeconfig(t *testing.T, servers map[string]*Server) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for name, s := range servers {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: s.CA()}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: UserToken}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	config.CurrentContext = "c1"
	if servers["hub"] != nil {
		config.CurrentContext = "hub"
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// Run runs a command with a kubeconfig. Waits poll without delay.
func Run(t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return RunIn(t.Context(), t, kubeconfig, args...)
}

// RunIn runs a command until the context ends, as if the user presses Ctrl-C.
func RunIn(ctx context.Context, t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return RunWith(ctx, t, &kit.Options{PollInterval: time.Millisecond}, kubeconfig, args...)
}

// RunWith runs a command with options of all commands.
func RunWith(ctx context.Context, t *testing.T, opts *kit.Options, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	// An endless wait fails this test, and not the whole package.
	return RunFor(ctx, t, time.Minute, opts, kubeconfig, args...)
}

// RunFor runs a command with options of all commands and a time limit.
func RunFor(ctx context.Context, t *testing.T, limit time.Duration, opts *kit.Options, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	opts.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	opts.ConfigFlags, opts.Version = genericclioptions.NewConfigFlags(true), "v1.2.3"
	cmd := cli.NewCommandWithOptions(opts)
	at := 0
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		at = 1 // the last argument is the one to complete
	}
	cmd.SetArgs(slices.Insert(slices.Clone(args), at, "--kubeconfig", kubeconfig))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = cmd.ExecuteContext(ctx)
	if all := out.String() + errOut.String(); strings.Contains(all, UserToken) || err != nil && strings.Contains(err.Error(), UserToken) {
		t.Errorf("%v prints the user's token: %v %s", args, err, all)
	}
	return out.String(), errOut.String(), err
}

// InterruptedAt returns a context that ends at the nth such request, so that a wait has polled that often.
func (s *Server) InterruptedAt(request string, n int) context.Context {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	answer, seen := s.On[request], 0
	s.On[request] = func(w http.ResponseWriter, body []byte) bool {
		seen++
		if seen == n {
			cancel()
		}
		return answer != nil && answer(w, body)
	}
	return ctx
}

// MustRun verifies that there is no error and no output on stderr, and returns stdout.
func MustRun(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	stdout, stderr, err := Run(t, kubeconfig, args...)
	if err != nil || stderr != "" {
		t.Fatalf("%v: %s\n(kubectl hub %s)", err, stderr, strings.Join(args, " "))
	}
	return stdout
}

// Says verifies that the text contains all of these.
func Says(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("it says %q, without %q", text, w)
		}
	}
}

// WantAsked compares the requests to a server with the expected ones, in order. A star stands for the rest of a request.
func (s *Server) WantAsked(want ...string) {
	s.t.Helper()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	same := slices.EqualFunc(s.Asked, want, func(got, want string) bool {
		prefix, open := strings.CutSuffix(want, "*")
		return got == want || open && strings.HasPrefix(got, prefix)
	})
	if !same {
		s.t.Errorf("asked\n%s\nwant\n%s", strings.Join(s.Asked, "\n"), strings.Join(want, "\n"))
	}
	s.Asked = nil
}

// WantUnchanged verifies that no request changes anything.
func (s *Server) WantUnchanged() {
	s.t.Helper()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, request := range s.Asked {
		if !strings.HasPrefix(request, "GET ") && !strings.Contains(request, "dryRun=All") && !strings.Contains(request, "subject") {
			s.t.Errorf("it asked for %s", request)
		}
	}
}

// These are paths of collections.
const (
	ClustersPath = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
	SetsPath     = "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets"
	MembersPath  = "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers"
)

// newPlainServer returns the https URL of a server that does not speak TLS.
func newPlainServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "http:", "https:", 1)
}

// These are requests.
const (
	WhoAmI       = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"
	TokenRequest = "POST /api/v1/namespaces/open-cluster-management/serviceaccounts/agent-registration-bootstrap/token"
)

// AddDead writes a kubeconfig whose context "dead" has an address without a listener.
func AddDead(t *testing.T) string {
	t.Helper()
	s := NewServer(t)
	file := Kubeconfig(t, map[string]*Server{"hub": s})
	AddBroken(t, file, s)
	return file
}
