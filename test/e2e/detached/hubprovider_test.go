// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"encoding/base64"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// provider is the name of the cluster provider's ServiceAccount and Deployment.
const provider = "cluster-provider-kubeconfig"

// getsProvider adds the component cluster-provider to the hub.
func (s *served) getsProvider(m *harness.Management) {
	s.Helper()
	namespace := harness.ServerNamespace(s.name)
	harness.MustKubectlOf(s.T, m.Instance, "", "patch", "clustermanager", s.name, "--type=merge", "-p",
		`{"spec":{"clusterhub":{"components":["manual-certificates","cluster-provider"]}}}`)
	harness.MustKubectlOf(s.T, m.Instance, "", "wait", "--for=create", "deployment/"+provider, "-n", namespace, "--timeout="+harness.Timeout.String())
	harness.MustKubectlOf(s.T, m.Instance, "", "wait", "--for=condition=Available", "deployment/"+provider, "-n", namespace, "--timeout="+harness.Timeout.String())
}

// providerMayWhatIsDocumented compares the rights of the provider with the documentation.
func (s *served) providerMayWhatIsDocumented(t *testing.T, m *harness.Management) {
	t.Helper()
	secret := harness.Must(harness.Kube(t, m.AdminConfig()).CoreV1().Secrets(harness.ServerNamespace(s.name)).
		Get(t.Context(), deploy.KubeconfigSecret(provider), metav1.GetOptions{}))(t)
	s.accountMayWhatIsDocumented(t, provider, string(secret.Data[operatorv1.KeyToken]), withoutRights(t, s.Instance))
}

const provided = `
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: Cluster
metadata: {name: berlin, namespace: teams}
spec: {profile: default.kubeconfig.berlin, purposes: [workload], tenancy: Shared}
---
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: AccessRequest
metadata: {name: ann, namespace: teams}
spec:
  clusterRef: {name: berlin, namespace: teams}
  token: {roleRefs: [{kind: ClusterRole, name: view}]}
`

// givesAccess admits a cluster as docs/cluster-providers.md does. The cluster is the hub itself. A user requests access to it, is granted access, and
// loses it.
func (s *served) givesAccess(t *testing.T) {
	on := func(args ...string) string { t.Helper(); return harness.MustKubectlOf(t, s.Instance, "", args...) }
	on("create", "secret", "generic", "berlin", "-n", deploy.ProviderNamespace, "--type=clusters.clusterhub.dev/kubeconfig", "--from-file=kubeconfig="+s.AdminKubeconfig())
	on("annotate", "secret", "berlin", "-n", deploy.ProviderNamespace, "clusters.clusterhub.dev/namespaces=teams")
	on("label", "secret", "berlin", "-n", deploy.ProviderNamespace, "clusters.openmcp.cloud/provider=kubeconfig")
	on("create", "namespace", "teams")
	on("create", "rolebinding", provider, "-n", "teams", "--clusterrole=clusterhub:cluster-provider-secrets", "--serviceaccount="+deploy.ProviderNamespace+":"+provider)
	on("wait", "--for=create", "clusterprofile/default.kubeconfig.berlin", "--timeout="+harness.Timeout.String())
	harness.MustKubectlOf(t, s.Instance, provided, "apply", "-f", "-")
	on("wait", "--for=jsonpath={.status.phase}=Ready", "clusters.clusters.openmcp.cloud/berlin", "-n", "teams", "--timeout="+harness.Timeout.String())
	on("wait", "--for=jsonpath={.status.phase}=Granted", "accessrequest/ann", "-n", "teams", "--timeout="+harness.Timeout.String())
	encoded := on("get", "secret", "ann.kubeconfig", "-n", "teams", "-o", "jsonpath={.data.kubeconfig}")
	ann := harness.Kube(t, harness.Must(clientcmd.RESTConfigFromKubeConfig(harness.Must(base64.StdEncoding.DecodeString(encoded))(t)))(t)).CoreV1()
	eventually(t, "ann has the role view", func() error {
		_, err := ann.ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		return err
	})
	harness.WantForbidden(t, harness.ErrorOf(ann.Secrets(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})))
	harness.WantForbidden(t, harness.ErrorOf(ann.ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: harness.Named("by-ann")}, metav1.CreateOptions{})))
	on("delete", "accessrequest", "ann", "-n", "teams", "--timeout="+harness.Timeout.String())
	eventually(t, "the token is worth nothing", func() error {
		_, err := ann.ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("it is answered with %w", err)
		}
		return nil
	})
	on("delete", "clusters.clusters.openmcp.cloud", "berlin", "-n", "teams", "--timeout="+harness.Timeout.String())
}
