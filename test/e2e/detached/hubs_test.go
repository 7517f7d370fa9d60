// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestDetached_BareClustersServeAsHubs makes hubs of two clusters that have a kube-apiserver and no nodes: blue by kubectl hub, and green by hand.
// Their servers are pods of one management cluster. A cluster joins blue, without effect on green. In the end all clusters are as they were.
func TestDetached_BareClustersServeAsHubs(t *testing.T) {
	m := sharedManagement()
	before := inventory(t, m.AdminConfig())
	hubs := newServed(t, "blue", "green")
	blue, green := hubs[0], hubs[1]
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		// The next tests share the management cluster, and compare its objects. The hubs still exist and must be cleaned up.
		ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout)
		defer cancel()
		if out, err := m.Kubectl(ctx, "delete", "clustermanager", blue.name, green.name, "--ignore-not-found").CombinedOutput(); err != nil {
			t.Logf("%s: %v", out, err)
		}
	})
	t.Run("hub-operator is installed by hand", func(t *testing.T) {
		newReader(t, map[string]*localhub.Instance{"mgmt": m.Instance}).Types(shown(t, "TestDetached_BareClustersServeAsHubs", "kubectl --context mgmt apply -k"))
	})
	t.Run("made", func(t *testing.T) { // both concurrently
		typed := func(of *served, begins string, texts ...string) {
			t.Run(of.name, func(t *testing.T) {
				t.Parallel()
				r := newReader(t, map[string]*localhub.Instance{"mgmt": m.Instance})
				withKubeconfig(t, r, of.name+".kubeconfig", of.Instance)
				r.Instead(texts...)
				r.Types(shown(t, "TestDetached_BareClustersServeAsHubs", begins))
			})
		}
		typed(blue, "kubectl hub init", "--name blue", "--operator-image="+harness.OperatorImage+" --name blue", "https://blue.example.com", blue.AdminConfig().Host,
			installed, "")
		typed(green, "kubectl --context mgmt apply -f", "blue", "green")
	})
	if t.Failed() {
		t.FailNow()
	}
	m.AwaitHub(t, green.name, green.Instance)
	m.AwaitHub(t, blue.name, blue.Instance)
	plugin := harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{"mgmt": m.Instance})}
	if stdout, stderr, err := plugin.Run(t, "init", "--mode=detached", "--name=blue", "--management-context=mgmt", "--hub-kubeconfig="+blue.AdminKubeconfig(),
		"--operator-image="+harness.OperatorImage); err != nil || strings.Contains(stderr, " created\n") {
		t.Errorf("kubectl hub init, again: %v\n%s%s", err, stdout, stderr)
	}

	const set = `{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet, metadata: {name: of-blue}}`
	harness.MustKubectlOf(t, blue.Instance, set, "apply", "-f", "-")
	j := newWorldOf(t, blue.Instance).joinByHand()
	j.brings()
	j.losesNamespace()
	blue.wants("managedclustersets", "default", "global", "of-blue")
	blue.wants("managedclusters", j.name)
	green.wants("managedclustersets", "default", "global")
	green.wants("managedclusters")
	t.Run("a kube-apiserver is trusted by its own hub-apiserver only", func(t *testing.T) {
		for _, at := range []*served{blue, green} {
			for _, as := range []*served{blue, green} {
				want := http.StatusUnauthorized
				if at == as {
					want = http.StatusOK
				}
				if got := at.answersFrontOf(t, as); got != want {
					t.Errorf("hub-apiserver of %s answers the kube-apiserver of %s with %d, want %d", at.name, as.name, got, want)
				}
			}
		}
	})
	t.Run("a token is for one hub", func(t *testing.T) {
		for _, of := range []*served{blue, green} {
			for account, token := range of.tokens(t, m) {
				for _, at := range []*served{blue, green} {
					config := rest.AnonymousClientConfig(at.AdminConfig())
					config.BearerToken = token
					_, err := harness.Get(t, config, "/api") // allowed to each authenticated user
					if (err == nil) != (at == of) {
						t.Errorf("the token of %s for %s is used at %s: %v", account, of.name, at.name, err)
					}
				}
			}
		}
	})

	t.Run("minted kubeconfigs may what is documented", func(t *testing.T) { blue.mayWhatIsDocumented(t, m) })
	apart(t, m, blue, green)

	green.goesBeside(t, m, blue, j)
	// A hub is deleted while a cluster is in it. The agent has no rights there any more, and is deleted as others are.
	clean := []string{"clean", "--name", blue.name, "--management-context", "mgmt"}
	for _, want := range []string{"The hub blue is removed.\n", "No ClusterManager blue found on the management cluster.\n"} {
		if stdout, stderr, err := plugin.Run(t, clean...); err != nil || stdout != want {
			t.Fatalf("kubectl hub clean: %v\n%s%s", err, stdout, stderr)
		}
	}
	j.mayNothing()
	harness.MustKubectlOf(t, m.Instance, "", "delete", "klusterlet", j.name, "--timeout="+harness.Timeout.String())
	// The admin must delete the namespace of the cluster.
	harness.MustKubectlOf(t, blue.Instance, "", "delete", "namespace", j.name, "--timeout="+harness.Timeout.String())
	left(t, "the managed cluster", j.managed.AdminConfig(), append(j.before.managed, "v1 configmaps default/"+j.name))
	harness.MustKubectlOf(t, j.managed.Instance, "", "delete", "configmap", j.name)
	left(t, "the management cluster", m.AdminConfig(), before)
	green.isPlain()
	blue.isPlain()
}

// isPlain verifies that the cluster is as it was before it became a hub.
func (s *served) isPlain() {
	s.Helper()
	left(s.T, s.name, s.AdminConfig(), s.before)
	// The list comes from the front: our APIs are not registered, rather than unavailable.
	if got, err := kubectl(s.T, s.Instance, "get", "apiservices", "-o", "name"); err != nil || strings.Contains(got, "open-cluster-management.io") {
		s.Errorf("%s still has APIServices: %s, %v", s.name, got, err)
	}
}

// served is a cluster that became a hub.
type served struct {
	*localhub.Instance
	*testing.T
	name string
	// before has the objects of the plain cluster.
	before []string
}

// newServed returns new clusters that may become hubs.
func newServed(t *testing.T, names ...string) (all []*served) {
	t.Helper()
	m := sharedManagement()
	var adapt []func(*localhub.Options)
	for range names {
		adapt = append(adapt, func(c *localhub.Options) {
			c.Plain, c.FrontArgs = true, append(m.Node.Egress(), "--enable-bootstrap-token-auth")
		})
	}
	for i, hub := range harness.OwnHubs(t, adapt...) {
		s := &served{T: t, name: names[i], Instance: hub}
		harness.MustKubectlOf(t, s.Instance, "", "wait", "--for=create", "service/kubernetes", "--timeout="+harness.Timeout.String()) // the last object that it creates by itself
		s.before = inventory(t, s.AdminConfig())
		m.OpenWays(t, s.name, s.Instance)
		all = append(all, s)
	}
	return all
}

// wants waits until the hub lists exactly these objects by its kube-apiserver.
func (s *served) wants(resource string, names ...string) {
	s.Helper()
	eventually(s.T, "the "+resource+" of "+s.name, func() error {
		got, err := s.Kubectl(s.Context(), "get", resource, "-o", "jsonpath={.items[*].metadata.name}").Output()
		if want := strings.Join(names, " "); err != nil || string(got) != want {
			return fmt.Errorf("they are %q, %w, want %q", got, err, want)
		}
		return nil
	})
}

// answersFrontOf returns the status code of hub-apiserver for a request with the client certificate of a kube-apiserver, in the name of an
// administrator.
func (s *served) answersFrontOf(t *testing.T, of *served) int {
	t.Helper()
	config := s.HubAPIServerConfig(0)
	trust := harness.Must(rest.TLSConfigFor(rest.AnonymousClientConfig(config)))(t)
	pki := func(name string) string { return filepath.Join(of.Dir(), "pki", name) }
	trust.Certificates = []tls.Certificate{harness.Must(tls.LoadX509KeyPair(pki("front-proxy.crt"), pki("front-proxy.key")))(t)}
	request := harness.Must(http.NewRequestWithContext(t.Context(), http.MethodGet,
		config.Host+"/apis/cluster.open-cluster-management.io/v1/managedclusters", nil))(t)
	request.Header.Set("X-Remote-User", "admin")
	request.Header.Set("X-Remote-Group", "system:masters")
	transport := &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}
	response := harness.Must((&http.Client{Transport: transport}).Do(request))(t)
	_ = response.Body.Close()
	return response.StatusCode
}

// tokens returns the tokens with which the servers reach the hub, by ServiceAccount.
func (s *served) tokens(t *testing.T, m *harness.Management) map[string]string {
	t.Helper()
	tokens := map[string]string{}
	secrets := harness.Must(harness.Kube(t, m.AdminConfig()).CoreV1().Secrets(harness.ServerNamespace(s.name)).List(context.Background(), metav1.ListOptions{}))(t)
	for _, secret := range secrets.Items {
		if account, ok := strings.CutSuffix(secret.Name, "-kubeconfig"); ok && secret.Type == corev1.SecretTypeOpaque && secret.Data["token"] != nil {
			tokens[account] = string(secret.Data["token"])
		}
	}
	if len(tokens) != 3 {
		t.Errorf("%s has %d tokens, want one for each of hub-apiserver, hub-controller-manager and hub-certificate-approver", s.name, len(tokens))
	}
	return tokens
}
