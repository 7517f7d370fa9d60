// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/clusterhub/clusterhub/test/localhub"
)

func get(t *testing.T, config *rest.Config, path string) (string, error) {
	t.Helper()
	data, err := kube(t, config).Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
	return string(data), err
}

func TestServer_TellsHowItIs(t *testing.T) {
	config := hub.HubAPIServerConfig(0)
	for path, parts := range map[string][]string{
		"/readyz?verbose": {},
		"/livez":          {"ok"},
		"/version":        {"gitVersion"},
		"/metrics":        {"apiserver_request_total", "apiserver_watch_cache", "etcd_request_duration_seconds", "workqueue_"},
	} {
		out, err := get(t, config, strings.TrimSuffix(path, "?verbose"))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		contains(t, out, parts...)
	}
	// Metrics are not for everybody.
	_, err := get(t, hub.HubAPIServerUserConfig(0, unique("nobody"), "system:authenticated"), "/metrics")
	wantForbidden(t, err)
	// A stranger may ask for health and nothing else.
	stranger := rest.AnonymousClientConfig(config)
	if _, err := get(t, stranger, "/readyz"); err != nil {
		t.Errorf("a probe without a name: %v", err)
	}
	if _, err := get(t, stranger, clustersPath); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("a stranger gets %v from %s", err, clustersPath)
	}
}

func TestServer_TrustsNoHeadersWithoutTheFrontsCertificate(t *testing.T) {
	config := rest.AnonymousClientConfig(hub.HubAPIServerConfig(0))
	config.WrapTransport = nil
	client := restClient(t, config)
	err := client.Get().Resource("managedclusters").
		SetHeader("X-Remote-User", "admin").SetHeader("X-Remote-Group", "system:masters").Do(t.Context()).Error()
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("with forged headers: %v", err)
	}
}

func TestServer_PublishesModelsAndDiscovery(t *testing.T) {
	out, err := get(t, hub.AdminConfig(), "/openapi/v2")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, `"io.open-cluster-management.api.cluster.v1.ManagedCluster"`, `"io.open-cluster-management.api.cluster.v1beta2.ManagedClusterSet"`)
	if strings.Contains(out, "com.github.clusterhub") {
		t.Error("a model has the name of a Go package")
	}
	discovery := kube(t, hub.AdminConfig()).Discovery()
	groups, resources, err := discovery.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	preferred := map[string]string{}
	for _, g := range groups {
		preferred[g.Name] = g.PreferredVersion.Version
	}
	if preferred[clusterGroup] != "v1" || preferred["view.clusterhub.dev"] != "v1alpha1" {
		t.Errorf("the preferred versions are %v", preferred)
	}
	found := map[string]bool{}
	for _, list := range resources {
		for _, r := range list.APIResources {
			found[list.GroupVersion+"/"+r.Name] = true
		}
	}
	for _, want := range []string{"v1/managedclusters/status", "v1/managedclusters/label", "v1/managedclusters/accept",
		"v1beta1/managedclustersets", "v1beta2/managedclustersets", "v1beta2/managedclustersetbindings/status"} {
		if !found[clusterGroup+"/"+want] {
			t.Errorf("%s is not in the discovery", want)
		}
	}
}

func TestServer_NobodySkipsTheVerificationOfCertificates(t *testing.T) {
	client := must(aggregatorclient.NewForConfig(hub.AdminConfig()))(t)
	list := must(client.ApiregistrationV1().APIServices().List(t.Context(), metav1.ListOptions{}))(t)
	ours := 0
	for _, s := range list.Items {
		if s.Spec.Service == nil {
			continue
		}
		ours++
		if s.Spec.InsecureSkipTLSVerify || len(s.Spec.CABundle) == 0 {
			t.Errorf("%s: insecureSkipTLSVerify is %t, the CA has %d bytes", s.Name, s.Spec.InsecureSkipTLSVerify, len(s.Spec.CABundle))
		}
	}
	if ours != 4 {
		t.Errorf("%d APIServices are ours, want 4", ours)
	}
	for _, s := range list.Items {
		if s.Name != "v1alpha1.view.clusterhub.dev" {
			continue
		}
		was := s.Spec.CABundle
		s.Spec.CABundle = must(os.ReadFile(filepath.Join(hub.Dir(), "pki", "ca.crt")))(t) // another CA
		must(client.ApiregistrationV1().APIServices().Update(t.Context(), &s, metav1.UpdateOptions{}))(t)
		eventually(t, "the CA is put right", func(ctx context.Context) (bool, error) {
			now, err := client.ApiregistrationV1().APIServices().Get(ctx, s.Name, metav1.GetOptions{})
			return err == nil && string(now.Spec.CABundle) == string(was), err
		})
	}
}

// TestDeploy_TheManifestsAreAccepted applies what a user applies to a real kube-apiserver.
func TestDeploy_TheManifestsAreAccepted(t *testing.T) {
	h := ownHub(t, func(c *localhub.Config) {
		c.WithoutHubControllerManager, c.WithoutKubeControllerManager = true, true
	})
	for overlay, replicas := range map[string]int32{"base": 1, "external-etcd": 3} {
		path := filepath.Join("..", "..", "artifacts", "deploy", overlay)
		out, err := h.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", path).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", overlay, err, out)
		}
		d := must(kube(t, h.AdminConfig()).AppsV1().Deployments("clusterhub-system").Get(t.Context(), "hub-apiserver", metav1.GetOptions{}))(t)
		if *d.Spec.Replicas != replicas {
			t.Errorf("%s: %d replicas, want %d", overlay, *d.Spec.Replicas, replicas)
		}
		if replicas > 1 && hasVolume(d, "data") {
			t.Errorf("%s: three replicas share a volume", overlay)
		}
		if err := kube(t, h.AdminConfig()).AppsV1().Deployments("clusterhub-system").Delete(t.Context(), "hub-apiserver", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The flags in it are flags that there are.
	data := must(exec.CommandContext(t.Context(), h.Kubectl(t.Context()).Path, "kustomize", "../../artifacts/deploy/external-etcd").Output())(t)
	for _, line := range strings.Split(string(data), "\n") {
		if flag, ok := strings.CutPrefix(strings.TrimSpace(line), "- --"); ok {
			name, _, _ := strings.Cut(flag, "=")
			known := false
			for _, binary := range []string{"hub-apiserver", "hub-controller-manager"} {
				help, _ := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(h.Kubectl(t.Context()).Path), binary), "--help").CombinedOutput()
				known = known || strings.Contains(string(help), "--"+name+" ")
			}
			if !known {
				t.Errorf("--%s is no flag of ours", name)
			}
		}
	}
}

func hasVolume(d *appsv1.Deployment, name string) bool {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name == name {
			return true
		}
	}
	return false
}

// TestLocalHub_SaysWhatIsWrong covers what a newcomer meets.
func TestLocalHub_SaysWhatIsWrong(t *testing.T) {
	start := func(t *testing.T, c localhub.Config) string {
		t.Helper()
		h, err := localhub.Start(t.Context(), c)
		if err == nil {
			h.Stop()
			t.Fatal("the hub has started")
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("not one line: %v", err)
		}
		return err.Error()
	}
	t.Run("a missing tool", func(t *testing.T) {
		c := hubConfig(t.TempDir())
		c.BinDir = t.TempDir()
		contains(t, start(t, c), "is missing", "make build kube")
	})
	t.Run("a taken port", func(t *testing.T) {
		listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		c := hubConfig(t.TempDir())
		ports := must(json.Marshal(map[string]int{"kube-apiserver": port}))(t)
		if err := os.WriteFile(filepath.Join(c.Dir, "ports.json"), ports, 0o600); err != nil {
			t.Fatal(err)
		}
		contains(t, start(t, c), fmt.Sprint(port), "kube-apiserver", "taken", "ports.json")
	})
	t.Run("a process that dies at its start", func(t *testing.T) {
		c := hubConfig(t.TempDir())
		c.FrontArgs = []string{"--no-such-flag"}
		contains(t, start(t, c), "kube-apiserver has ended", "no-such-flag", "kube-apiserver.log")
	})
}

// TestServer_UsesAProvidedCertificate starts hub-apiserver with a certificate of an operator's own CA.
func TestServer_UsesAProvidedCertificate(t *testing.T) {
	pki := filepath.Join(hub.Dir(), "pki")
	kubeconfig := filepath.Join(hub.Dir(), "hub-apiserver.kubeconfig")
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(hub.Kubectl(t.Context()).Path), "hub-apiserver"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig, "--data-dir="+t.TempDir(),
		"--tls-cert-file="+filepath.Join(pki, "kube-apiserver.crt"), "--tls-private-key-file="+filepath.Join(pki, "kube-apiserver.key"))
	var out synced
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually(t, "it serves with that certificate", func(ctx context.Context) (bool, error) {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port)) // only to look at it
		if err != nil {
			return false, fmt.Errorf("%w\n%s", err, out.String())
		}
		defer conn.Close()
		got := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
		if got != "kube-apiserver" {
			return false, fmt.Errorf("the certificate is of %q", got)
		}
		return true, nil
	})
}
