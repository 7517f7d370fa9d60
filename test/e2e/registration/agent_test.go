// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// managed is a cluster of its own, and what its agent joins a hub with.
type managed struct {
	*localhub.Hub
	hub       *localhub.Hub
	name      string
	bootstrap string
	// env is what its agent's environment has besides this process's, and said what its agents have said.
	env  []string
	said harness.Buffer
}

// newManaged starts a cluster that a hub does not know, with a bootstrap identity that may do no more than join.
func newManaged(t *testing.T, hub *localhub.Hub, issuer string) *managed {
	t.Helper()
	return newManagedAs(t, hub, func(c *localhub.Config) { c.WithoutKubeControllerManager, c.Issuer = true, issuer })
}

// newManagedAs is newManaged with a cluster as a test needs it.
func newManagedAs(t *testing.T, hub *localhub.Hub, adapt func(*localhub.Config)) *managed {
	t.Helper()
	h := harness.OwnHub(t, func(c *localhub.Config) {
		c.Plain = true
		adapt(c)
	})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registration.AgentNamespace}}
	harness.Must(harness.Kube(t, h.AdminConfig()).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}))(t)
	return &managed{Hub: h, hub: hub, name: harness.Unique("managed"), bootstrap: bootstrapKubeconfig(t, hub)}
}

// bootstrapKubeconfig is that of a new user of the hub who may make clusters in the default set, and ask for certificates.
func bootstrapKubeconfig(t *testing.T, hub *localhub.Hub) string {
	t.Helper()
	client := harness.Kube(t, hub.AdminConfig())
	namespace, account := "open-cluster-management", "agent-registration-bootstrap"
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	tolerate(t, err)
	_, err = client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	tolerate(t, err)
	if err == nil {
		certificates := rbacv1.PolicyRule{Verbs: []string{"create", "get"}, APIGroups: []string{"certificates.k8s.io"},
			Resources: []string{"certificatesigningrequests"}}
		harness.Grant(t, hub, "bootstrap", "system:serviceaccount:"+namespace+":"+account,
			harness.Rule("create", "managedclusters"), harness.Rule("create", "managedclusters/label", harness.SetLabel+":default"), certificates)
	}
	token := harness.Must(client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	config := hub.AdminConfig()
	file := filepath.Join(t.TempDir(), "bootstrap.kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bootstrap": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "bootstrap"}},
		CurrentContext: "hub",
	}, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func tolerate(t *testing.T, err error) {
	t.Helper()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// agent starts the cluster's agent. stop ends it and waits.
func (m *managed) agent(t *testing.T, args ...string) (stop func()) {
	t.Helper()
	config := m.AdminConfig()
	cmd := exec.CommandContext(t.Context(), harness.Binary(t, "hub-agent"), append([]string{
		"--spoke-kubeconfig=" + m.AdminKubeconfig(), "--bootstrap-kubeconfig=" + m.bootstrap, "--cluster-name=" + m.name,
		"--cluster-server-url=" + config.Host, "--cluster-ca-file=" + filepath.Join(m.Dir(), "pki", "ca.crt"),
		"--lease-duration-seconds=5", "--health-probe-bind-address=0", "-v=2",
	}, args...)...)
	cmd.Env = append(os.Environ(), m.env...)
	cmd.Stdout, cmd.Stderr = &m.said, &m.said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the agent of %s said:\n%s", m.name, m.said.String())
		}
	})
	return stop
}

// secret is the agent's, nil when there is none.
func (m *managed) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := harness.Kube(t, m.AdminConfig()).CoreV1().Secrets(registration.AgentNamespace).
		Get(t.Context(), registration.HubKubeconfigSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return harness.Must(secret, err)(t)
}

// identity reaches the hub as the cluster's agent does.
func (m *managed) identity(t *testing.T) *rest.Config {
	t.Helper()
	data := m.secret(t).Data
	file := harness.Must(clientcmd.Load(data[registration.KeyKubeconfig]))(t)
	for _, auth := range file.AuthInfos { // the files are beside the kubeconfig where it is mounted
		auth.ClientCertificate, auth.ClientKey = "", ""
		auth.ClientCertificateData, auth.ClientKeyData = data[registration.KeyTLSCert], data[registration.KeyTLSKey]
	}
	return harness.Must(clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig())(t)
}
