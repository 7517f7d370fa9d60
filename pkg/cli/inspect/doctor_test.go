// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/inspect"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const clustersAPIService = "v1.cluster.open-cluster-management.io"

func withVersion(s *clitest.Server) *clitest.Server {
	s.Answer("GET /version", map[string]string{"gitVersion": "v1.37.0"})
	return s
}

// found verifies that the doctor ends with exit code 2.
func found(t *testing.T, stdout string, err error, want ...string) {
	t.Helper()
	exit := (*command.Exit)(nil)
	if !errors.As(err, &exit) || exit.Code != inspect.ErrorFound {
		t.Errorf("it ends with %v", err)
	}
	clitest.Says(t, stdout, want...)
}

// TestReader_ReturnsCertificateOfServer verifies that the reader knows the certificate by which it trusts the server. It is compared
// with what agents report.
func TestReader_ReturnsCertificateOfServer(t *testing.T) {
	s := withVersion(clitest.NewServer(t))
	for _, insecure := range []bool{false, true} {
		config := &rest.Config{Host: s.URL}
		want := registration.CertificateHashes(s.CA())
		config.Insecure = insecure
		if insecure {
			want = nil
		} else {
			config.CAData = s.CA()
		}
		r, err := answers.NewReader(t.Context(), config, false)
		if err != nil || !slices.Equal(r.Authorities, want) {
			t.Errorf("insecure %t: %v, not %v: %v", insecure, r.Authorities, want, err)
		}
	}
}

func TestDoctor_NoRoom(t *testing.T) {
	hub := withVersion(clitest.NewServer(t))
	hub.Objects["/apis/apiregistration.k8s.io/v1/apiservices/"+clustersAPIService] = map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": clustersAPIService}}
	hub.Answer("GET /readyz", "ok")
	hub.Answer("GET /metrics", "")
	hub.Refuse("POST /apis/cluster.open-cluster-management.io/v1beta2/managedclustersets", &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage", Message: "the database is full"}})
	stdout, _, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": hub}), "doctor")
	found(t, stdout, err, "ERROR StorageFull  etcd\n", "the database is full", "docs/findings.md#storagefull")
	// Nothing is changed: the only write is a dry run.
	for _, asked := range hub.Asked {
		if !strings.HasPrefix(asked, "GET ") && !strings.HasPrefix(asked, "POST /apis/cluster.open-cluster-management.io/v1beta2/managedclustersets?dryRun=All&") {
			t.Errorf("it asks for %s", asked)
		}
	}
}

func TestDoctor_ReadFails(t *testing.T) {
	server := withVersion(clitest.NewServer(t))
	server.Answer("GET /apis", metav1.APIGroupList{})
	file := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": server})
	for _, args := range [][]string{{"doctor"}, {"doctor", "--patience", "-1s"}, {"doctor", "--show", "nothing"}, {"doctor", "--show", "clusterrole/nothing"},
		{"doctor", "--show", "secret/bootstrap-hub-kubeconfig"}, {"doctor", "-o", "xml"}} {
		_, _, err := clitest.Run(t, file, args...)
		if exit := (*command.Exit)(nil); err == nil || errors.As(err, &exit) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, _, err := clitest.Run(t, clitest.AddDead(t), "doctor", "--context", "dead"); err == nil || !strings.Contains(err.Error(), "the doctor cannot check the cluster") {
		t.Errorf("a server that is not there: %v", err)
	}
	clitest.Says(t, clitest.MustRun(t, file, "doctor", "--show", "ClusterRole/clusterhub:hub-apiserver"), "kind: ClusterRole", "name: clusterhub:hub-apiserver")
	clitest.Says(t, clitest.MustRun(t, file, "doctor", "--show", "rolebinding/clusterhub:hub-agent", "-n", "shop"), "namespace: shop")
}

// withoutRights responds with 403 to all requests for objects.
func withoutRights(s *clitest.Server) {
	for _, path := range []string{"/apis/apps/v1/namespaces/open-cluster-management-agent/deployments", "/api/v1/namespaces/open-cluster-management-agent/pods",
		"/api/v1/namespaces/open-cluster-management-agent/events", "/api/v1/namespaces/open-cluster-management-agent/secrets/bootstrap-hub-kubeconfig",
		"/api/v1/namespaces/open-cluster-management-agent/secrets/hub-kubeconfig-secret"} {
		s.Refuse("GET "+path, apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no")))
	}
}

func TestDoctor_WithoutRights(t *testing.T) {
	spoke := withVersion(clitest.NewServer(t))
	withoutRights(spoke)
	stdout, _, err := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"c1": spoke}), "doctor", "--managed")
	if err != nil {
		t.Error(err)
	}
	clitest.Says(t, stdout, "No problems found.", "Not seen, and therefore not checked:", "deployments: you may not read them", "secret bootstrap-hub-kubeconfig: you may not read them")
}

// agentsSecret returns a Secret with a kubeconfig that another user has written.
func agentsSecret(t *testing.T, name string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *corev1.Secret {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.AuthInfos["default-auth"], config.CurrentContext = cluster, user, "x"
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "default-auth"}
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: registration.AgentNamespace, Name: name},
		Data: map[string][]byte{registration.KeyKubeconfig: data}}
}

// TestDoctor_RunsNothingLocally: a user who may write the Secrets of an agent must not be able to run programs on the machine of an admin who
// runs the doctor, or to get files or credentials of that machine.
func TestDoctor_RunsNothingLocally(t *testing.T) {
	trace, token := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-of-this-machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, user := range map[string]*clientcmdapi.AuthInfo{
		"a program": {Exec: &clientcmdapi.ExecConfig{Command: "touch", Args: []string{trace}, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}},
		"a file":    {TokenFile: token},
		"a key":     {ClientCertificate: token, ClientKey: token},
		"no one":    {},
	} {
		for _, secret := range []string{registration.BootstrapSecret, registration.HubKubeconfigSecret} {
			hub := withVersion(clitest.NewServer(t))
			spoke := withVersion(clitest.NewServer(t, agentsSecret(t, secret, &clientcmdapi.Cluster{Server: hub.URL, CertificateAuthorityData: hub.CA()}, user)))
			stdout, _, _ := clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"c1": spoke}), "doctor", "--managed")
			if _, err := os.Stat(trace); err == nil {
				t.Errorf("%s in %s: it was run", name, secret)
			}
			for credentials := range hub.Credentials {
				if strings.Contains(credentials, "token") {
					t.Errorf("%s in %s: the hub has got %q", name, secret, credentials)
				}
			}
			if strings.Contains(stdout, "a-token-of-this-machine") {
				t.Errorf("%s in %s: it prints the file", name, secret)
			}
			if name == "a file" {
				clitest.Says(t, stdout, "cannot be used: it names a file")
			}
		}
	}
}

// TestDoctor_DoesNotFollowRedirects: the doctor follows no redirect of a hub, so no other server gets the credentials of the agent or of the user.
func TestDoctor_DoesNotFollowRedirects(t *testing.T) {
	thief, hub := withVersion(clitest.NewServer(t)), clitest.NewServer(t)
	hub.On["GET /version"] = func(w http.ResponseWriter, _ []byte) bool {
		w.Header().Set("Location", thief.URL+"/version")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	}
	cluster := &clientcmdapi.Cluster{Server: hub.URL, CertificateAuthorityData: append(hub.CA(), thief.CA()...)}
	spoke := withVersion(clitest.NewServer(t, agentsSecret(t, registration.BootstrapSecret, cluster, &clientcmdapi.AuthInfo{Token: "abcdef.0123456789abcdef"})))
	_, _, _ = clitest.Run(t, clitest.Kubeconfig(t, map[string]*clitest.Server{"c1": spoke}), "doctor", "--managed")
	if !hub.Credentials["Bearer abcdef.0123456789abcdef"] || len(hub.Credentials) != 1 {
		t.Errorf("the hub has got %v", hub.Credentials)
	}
	if len(thief.Asked) > 0 || len(thief.Credentials) > 0 {
		t.Errorf("another server was asked: %v with %v", thief.Asked, thief.Credentials)
	}
}
