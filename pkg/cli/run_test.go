// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
)

// userToken is the token of the contexts of the servers. No command may print it.
const userToken = "the-users-token"

// kubeconfig writes a kubeconfig with a context for each server. The first of "hub" and "c1" is the current one.
func kubeconfig(t *testing.T, servers map[string]*fakeServer) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for name, s := range servers {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: s.ca()}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: userToken}
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

// run runs a command with a kubeconfig. Waits poll without delay.
func run(t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return runIn(t.Context(), t, kubeconfig, args...)
}

// runIn runs a command until the context ends, as if the user presses Ctrl-C.
func runIn(ctx context.Context, t *testing.T, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return runWith(ctx, t, &global{poll: time.Millisecond}, kubeconfig, args...)
}

func runWith(ctx context.Context, t *testing.T, g *global, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	// An endless wait fails this test, and not the whole package.
	return runFor(ctx, t, time.Minute, g, kubeconfig, args...)
}

func runFor(ctx context.Context, t *testing.T, limit time.Duration, g *global, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	g.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	g.flags, g.version = genericclioptions.NewConfigFlags(true), "v1.2.3"
	cmd := newCommand(g)
	at := 0
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		at = 1 // the last argument is the one to complete
	}
	cmd.SetArgs(slices.Insert(slices.Clone(args), at, "--kubeconfig", kubeconfig))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = cmd.ExecuteContext(ctx)
	if all := out.String() + errOut.String(); strings.Contains(all, userToken) || err != nil && strings.Contains(err.Error(), userToken) {
		t.Errorf("%v prints the user's token: %v %s", args, err, all)
	}
	return out.String(), errOut.String(), err
}

// interruptedAt returns a context that ends at the nth such request, so that a wait has polled that often.
func (s *fakeServer) interruptedAt(request string, n int) context.Context {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	answer, seen := s.on[request], 0
	s.on[request] = func(w http.ResponseWriter, body []byte) bool {
		seen++
		if seen == n {
			cancel()
		}
		return answer != nil && answer(w, body)
	}
	return ctx
}

// mustRun verifies that there is no error and no output on stderr, and returns stdout.
func mustRun(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	stdout, stderr, err := run(t, kubeconfig, args...)
	if err != nil || stderr != "" {
		t.Fatalf("%v: %s\n(kubectl hub %s)", err, stderr, strings.Join(args, " "))
	}
	return stdout
}

// says verifies that the text contains all of these.
func says(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("it says %q, without %q", text, w)
		}
	}
}

// wantAsked compares the requests to a server with the expected ones, in order. A star stands for the rest of a request.
func (s *fakeServer) wantAsked(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	same := slices.EqualFunc(s.asked, want, func(got, want string) bool {
		prefix, open := strings.CutSuffix(want, "*")
		return got == want || open && strings.HasPrefix(got, prefix)
	})
	if !same {
		s.t.Errorf("asked\n%s\nwant\n%s", strings.Join(s.asked, "\n"), strings.Join(want, "\n"))
	}
	s.asked = nil
}

// wantUnchanged verifies that no request changes anything.
func (s *fakeServer) wantUnchanged() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.asked {
		if !strings.HasPrefix(request, "GET ") && !strings.Contains(request, "dryRun=All") && !strings.Contains(request, "subject") {
			s.t.Errorf("it asked for %s", request)
		}
	}
}

const (
	clustersPath = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
	setsPath     = "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets"
	membersPath  = "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers"
)

func newCluster(name string, labels map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func newSet(name string) *v1beta2.ManagedClusterSet {
	return &v1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta2.ManagedClusterSetSpec{ClusterSelector: v1beta2.ManagedClusterSelector{SelectorType: v1beta2.LabelSelector}}}
}

func newMember(set, cluster, selector string) *viewv1alpha1.ClusterSetMember {
	return &viewv1alpha1.ClusterSetMember{
		ObjectMeta: metav1.ObjectMeta{Name: cluster + "." + set},
		Spec:       viewv1alpha1.ClusterSetMemberSpec{ClusterSet: set, Cluster: cluster},
		Status: viewv1alpha1.ClusterSetMemberStatus{Joined: "True", Available: "Unknown",
			SelectedBy: viewv1alpha1.SelectedBy{Selector: selector}},
	}
}

// newPlainServer returns the https URL of a server that does not speak TLS.
func newPlainServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "http:", "https:", 1)
}

const (
	whoAmI       = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"
	tokenRequest = "POST /api/v1/namespaces/open-cluster-management/serviceaccounts/agent-registration-bootstrap/token"
)

// addDead writes a kubeconfig whose context "dead" has an address without a listener.
func addDead(t *testing.T) string {
	t.Helper()
	s := newServer(t)
	file := kubeconfig(t, map[string]*fakeServer{"hub": s})
	addBroken(t, file, s)
	return file
}
