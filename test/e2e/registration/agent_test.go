// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// managed is a plain cluster, and the bootstrap kubeconfig with which its agent joins a hub.
type managed struct {
	*localhub.Instance
	hub       *localhub.Instance
	name      string
	bootstrap string
	// env is the additional environment of its agents, and said their output.
	env  []string
	said harness.Buffer
}

// newManaged lends a plain cluster that the hub does not know, with a bootstrap identity that may only join.
func newManaged(t *testing.T, hub *localhub.Instance) *managed {
	t.Helper()
	return managedOn(t, hub, plains.Lend(t, 1)[0])
}

// managedOn is newManaged for a plain cluster of the test.
func managedOn(t *testing.T, hub, plain *localhub.Instance) *managed {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registration.AgentNamespace}}
	harness.Must(harness.Kube(t, plain.AdminConfig()).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}))(t)
	return &managed{Instance: plain, hub: hub, name: harness.Unique("managed"), bootstrap: bootstrapKubeconfig(t, hub)}
}

// joiners is the bootstrap identity of a hub, which all tests on the hub share.
const joiners = `
apiVersion: v1
kind: Namespace
metadata: {name: open-cluster-management}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent-registration-bootstrap, namespace: open-cluster-management}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bootstrap}
rules:
- {apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters], verbs: [create]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters/label], resourceNames: ["cluster.open-cluster-management.io/clusterset:default"], verbs: [create]}
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bootstrap}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bootstrap}
subjects: [{kind: ServiceAccount, name: agent-registration-bootstrap, namespace: open-cluster-management}]
`

// bootstrapKubeconfig returns a kubeconfig file of a user of the hub that may create clusters in the default set, and request certificates.
func bootstrapKubeconfig(t *testing.T, hub *localhub.Instance) string {
	t.Helper()
	harness.MustKubectlOf(t, hub, joiners, "apply", "--server-side", "-f", "-")
	harness.Eventually(t, "the rights of the bootstrap identity", func(context.Context) (bool, error) {
		out, err := hub.Kubectl(t.Context(), "auth", "can-i", "create", "certificatesigningrequests", "--as="+registration.BootstrapServiceAccount).CombinedOutput()
		return harness.Holds(err == nil, string(out))
	})
	return accountKubeconfig(t, hub, "open-cluster-management", "agent-registration-bootstrap")
}

func tolerate(t *testing.T, err error) {
	t.Helper()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// agent starts the cluster's agent. stop stops it and waits.
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

// secret returns the Secret of the agent, or nil if it does not exist.
func (m *managed) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := harness.Kube(t, m.AdminConfig()).CoreV1().Secrets(registration.AgentNamespace).
		Get(t.Context(), registration.HubKubeconfigSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return harness.Must(secret, err)(t)
}

// identity returns a client configuration for the hub with the identity of the cluster's agent.
func (m *managed) identity(t *testing.T) *rest.Config {
	t.Helper()
	data := m.secret(t).Data
	file := harness.Must(clientcmd.Load(data[registration.KeyKubeconfig]))(t)
	for _, auth := range file.AuthInfos { // the paths are relative to the folder of the mounted kubeconfig
		auth.ClientCertificate, auth.ClientKey = "", ""
		auth.ClientCertificateData, auth.ClientKeyData = data[registration.KeyTLSCert], data[registration.KeyTLSKey]
	}
	return harness.Must(clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig())(t)
}
