// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/cluster/v1"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// upstreamAgent makes the requests of Open Cluster Management's registration agent with one of its identities.
type upstreamAgent struct {
	cluster  string
	config   *rest.Config
	kube     kubernetes.Interface
	clusters clusterclient.ManagedClusterInterface
}

func newUpstreamAgent(t *testing.T, cluster string, config *rest.Config) *upstreamAgent {
	t.Helper()
	config.QPS = -1
	return &upstreamAgent{cluster: cluster, config: config, kube: harness.Kube(t, config), clusters: harness.Ours(t, config).ClusterV1().ManagedClusters()}
}

// bootstrapped returns the agent with the token that a command of the plugin prints.
func bootstrapped(t *testing.T, h *localhub.Instance, cluster string, args ...string) *upstreamAgent {
	t.Helper()
	j := harness.Plugin{Kubeconfig: h.AdminKubeconfig()}.Joining(t, args...)
	config := rest.AnonymousClientConfig(h.AdminConfig())
	config.BearerToken = j.Token
	return newUpstreamAgent(t, cluster, config)
}

// create sends the body that the agent's client writes: with a status, and with null for empty fields.
func (a *upstreamAgent) create(t *testing.T) error {
	t.Helper()
	body := fmt.Sprintf(`{"kind":"ManagedCluster","apiVersion":"cluster.open-cluster-management.io/v1","metadata":{"name":%q,"creationTimestamp":null},`+
		`"spec":{"managedClusterClientConfigs":[{"url":"https://%[1]s.example.com","caBundle":"Y2E="}],"hubAcceptsClient":false},`+
		`"status":{"conditions":null,"version":{}}}`, a.cluster)
	return harness.Ours(t, a.config).ClusterV1().RESTClient().Post().Resource("managedclusters").SetHeader("Content-Type", "application/json").
		Body([]byte(body)).Do(t.Context()).Error()
}

func (a *upstreamAgent) ofCluster() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: registration.ClusterNameLabel + "=" + a.cluster}
}

// certificate lists and watches the requests of its cluster, creates one, and watches until the request has a certificate. It calls meanwhile after
// the request is created, in which the test acts as others would.
func (a *upstreamAgent) certificate(t *testing.T, meanwhile func(request string)) *upstreamAgent {
	t.Helper()
	requests := a.kube.CertificatesV1().CertificateSigningRequests()
	list := harness.Must(requests.List(t.Context(), a.ofCluster()))(t)
	options := a.ofCluster()
	options.ResourceVersion = list.ResourceVersion
	changes := harness.Must(requests.Watch(t.Context(), options))(t)
	defer changes.Stop()

	keyPEM := harness.Must(keyutil.MakeEllipticPrivateKeyPEM())(t)
	key := harness.Must(keyutil.ParsePrivateKeyPEM(keyPEM))(t)
	request := harness.Must(cert.MakeCSRFromTemplate(key, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   registration.ClusterUser(a.cluster, "upstream"),
		Organization: []string{registration.ClusterGroup(a.cluster), registration.ManagedClustersGroup},
	}}))(t)
	made := harness.Must(requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: a.cluster + "-", Labels: map[string]string{registration.ClusterNameLabel: a.cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}},
	}, metav1.CreateOptions{}))(t)
	if meanwhile != nil {
		meanwhile(made.Name)
	}
	config := rest.AnonymousClientConfig(a.config)
	config.KeyData = keyPEM
	config.CertData = issuedIn(t, changes, made.Name)
	return newUpstreamAgent(t, a.cluster, config)
}

// issuedIn returns the certificate of a request from a watch.
func issuedIn(t *testing.T, changes watch.Interface, name string) []byte {
	t.Helper()
	late := time.After(harness.Timeout)
	for {
		select {
		case <-late:
			t.Fatalf("no certificate for %s after %s", name, harness.Timeout)
		case change, open := <-changes.ResultChan():
			if !open {
				t.Fatal("the watch has ended")
			}
			if csr, ok := change.Object.(*certificatesv1.CertificateSigningRequest); ok && csr.Name == name && len(csr.Status.Certificate) > 0 {
				return csr.Status.Certificate
			}
		}
	}
}

// report makes the requests of an agent that has an identity: it gets its cluster, updates it, sets the condition that it has joined, and renews its
// lease.
func (a *upstreamAgent) report(ctx context.Context) error {
	cluster, err := a.clusters.Get(ctx, a.cluster, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, err := a.clusters.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + a.cluster}); err != nil {
		return err
	}
	cluster.Spec.ManagedClusterClientConfigs = append(cluster.Spec.ManagedClusterClientConfigs[:1:1], clusterv1.ClientConfig{URL: "https://other.example.com"})
	cluster, err = a.clusters.Update(ctx, cluster, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("updating its cluster: %w", err)
	}
	for _, c := range []metav1.Condition{
		{Type: registration.ConditionJoined, Status: metav1.ConditionTrue, Reason: "ManagedClusterJoined", Message: "Managed cluster joined"},
		{Type: registration.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "ManagedClusterAvailable", Message: "Managed cluster is available"},
	} {
		meta.SetStatusCondition(&cluster.Status.Conditions, c)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": cluster.UID, "resourceVersion": cluster.ResourceVersion}, "status": map[string]any{
		"version": map[string]any{"kubernetes": "v1.37.1"}, "capacity": map[string]any{"cpu": "4"}, "conditions": cluster.Status.Conditions}})
	if err != nil {
		return err
	}
	if _, err := a.clusters.Patch(ctx, a.cluster, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return a.renew(ctx)
}

func (a *upstreamAgent) renew(ctx context.Context) error {
	leases := a.kube.CoordinationV1().Leases(a.cluster)
	lease, err := leases.Get(ctx, registration.LeaseName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the lease: %w", err)
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("renewing the lease: %w", err)
	}
	return nil
}

// reports waits until all requests of the agent succeed, as its rights are created after the hub has accepted the cluster.
func (a *upstreamAgent) reports(t *testing.T, when string) {
	t.Helper()
	harness.Eventually(t, "upstream's agent reports "+when, func(ctx context.Context) (bool, error) {
		err := a.report(ctx)
		return err == nil, err
	})
}

// TestUpstreamAgent_JoinsWithRightsOfInit makes the requests of upstream's agent in their order, with a hub that is prepared only by
// kubectl hub init --upstream-agents.
func TestUpstreamAgent_JoinsWithRightsOfInit(t *testing.T) {
	h := controlled(t, func(c *localhub.Options) { c.HubControllerManagerArgs = []string{"--agents-list-csrs"} })
	m := &managed{hub: h, name: harness.Unique("upstream")}
	hubKube := harness.Kube(t, h.AdminConfig())

	// With the narrow role, the first request of the agent fails, which is the documented symptom.
	narrow := bootstrapped(t, h, m.name, "init", "--wait")
	_, err := narrow.clusters.Get(t.Context(), m.name, metav1.GetOptions{})
	harness.WantForbidden(t, err, "managedclusters.cluster.open-cluster-management.io", m.name)
	_, err = narrow.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), narrow.ofCluster())
	harness.WantForbidden(t, err)
	for _, name := range []string{"cluster-info", "kube-root-ca.crt"} {
		_, err = narrow.kube.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(t.Context(), name, metav1.GetOptions{})
		harness.WantForbidden(t, err)
	}

	refusesWithCauses(t, h)
	agent := bootstrapped(t, h, m.name, "init", "--upstream-agents")
	harness.Eventually(t, "its cluster is not there, and it may know that", func(ctx context.Context) (bool, error) {
		_, err := agent.clusters.Get(ctx, m.name, metav1.GetOptions{})
		return harness.Holds(apierrors.IsNotFound(err), err)
	})
	// clusteradm join first requests the CA of the hub.
	for _, name := range []string{"cluster-info", "kube-root-ca.crt"} {
		if _, err := agent.kube.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(t.Context(), name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("clusteradm join asks for %s: %v", name, err)
		}
	}
	_, err = agent.kube.CoreV1().ConfigMaps(metav1.NamespacePublic).List(t.Context(), metav1.ListOptions{})
	harness.WantForbidden(t, err)
	if err := agent.create(t); err != nil {
		t.Fatalf("making its cluster: %v", err)
	}
	joined := agent.certificate(t, func(request string) {
		// The cluster states no key, so an admin chooses the request.
		harness.Plugin{Kubeconfig: h.AdminKubeconfig()}.Must(t, "accept", "--clusters", m.name, "--csr", request)
	})
	joined.reports(t, "after it was accepted")
	m.awaitCondition(t, registration.ConditionAvailable, metav1.ConditionTrue)
	if cluster := m.cluster(t); len(cluster.Spec.ManagedClusterClientConfigs) != 2 || cluster.Status.Version.Kubernetes != "v1.37.1" {
		t.Errorf("the cluster is %+v, %+v", cluster.Spec, cluster.Status)
	}
	joined.seesNoOther(t, m)
	joined.looksForAddons(t)

	// A renewal needs no admin, and the previous certificate stays valid. The request must be younger than the cluster by more than the clocks of the
	// hub may differ, which renewals of agents always are.
	made := m.cluster(t).CreationTimestamp
	harness.Eventually(t, "the cluster is old enough for a renewal", func(context.Context) (bool, error) {
		return harness.Holds(time.Since(made.Time) > 7*time.Second, "it is not")
	})
	renewed := joined.certificate(t, nil)
	renewed.reports(t, "after it was renewed")

	// The agent of a denied cluster can observe the denial, and nothing more. Its namespace is empty and is deleted.
	m.accepted(t, false)
	if reason := m.awaitCondition(t, registration.ConditionHubAccepted, metav1.ConditionFalse); reason != registration.ReasonDenied {
		t.Errorf("denied for the reason %s", reason)
	}
	harness.Eventually(t, "it can only see that it was denied", func(ctx context.Context) (bool, error) {
		cluster, err := renewed.clusters.Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		err = renewed.renew(ctx)
		return harness.Holds(!cluster.Spec.HubAcceptsClient && apierrors.IsForbidden(err), err)
	})
	harness.Eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := hubKube.CoreV1().Namespaces().Get(ctx, m.name, metav1.GetOptions{})
		return harness.Holds(apierrors.IsNotFound(err), err)
	})

	m.accepted(t, true)
	renewed.reports(t, "after it was accepted again")
	renewed.certificate(t, nil).reports(t, "with a certificate that it got after that")

	if err := m.clusters(t).Delete(t.Context(), m.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "it has no rights any more", func(ctx context.Context) (bool, error) {
		_, get := renewed.clusters.Get(ctx, m.name, metav1.GetOptions{})
		err := renewed.renew(ctx)
		return harness.Holds((apierrors.IsForbidden(get) || apierrors.IsNotFound(get)) && apierrors.IsForbidden(err), fmt.Errorf("%w, %w", get, err))
	})
}

// seesNoOther tries to misuse the rights on the requests of all clusters.
func (a *upstreamAgent) seesNoOther(t *testing.T, m *managed) {
	t.Helper()
	other := harness.Unique("other")
	harness.Must(m.clusters(t).Create(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{}))(t)
	_, err := a.clusters.Get(t.Context(), other, metav1.GetOptions{})
	harness.WantForbidden(t, err)
	_, err = a.clusters.List(t.Context(), metav1.ListOptions{})
	harness.WantForbidden(t, err)
}

// looksForAddons verifies that without upstream's CustomResourceDefinitions the agent logs that they are missing, and continues.
func (a *upstreamAgent) looksForAddons(t *testing.T) {
	t.Helper()
	err := harness.ErrorOf(a.kube.Discovery().RESTClient().Get().
		AbsPath("/apis/addon.open-cluster-management.io/v1alpha1/namespaces/" + a.cluster + "/managedclusteraddons").DoRaw(t.Context()))
	if !apierrors.IsNotFound(err) || strings.Contains(err.Error(), "forbidden") {
		t.Errorf("add-ons: %v, want a 404", err)
	}
}

// refusesWithCauses tries writes that upstream's webhook rejects with 400. The messages are the same, and the response is a 422 that names the field.
func refusesWithCauses(t *testing.T, h *localhub.Instance) {
	t.Helper()
	ours := harness.Ours(t, h.AdminConfig())
	clusters, dry := ours.ClusterV1().ManagedClusters(), []string{metav1.DryRunAll}
	create := func(name string, change func(*clusterv1.ManagedCluster)) error {
		cluster := harness.ManagedCluster(name, nil)
		change(cluster)
		return harness.ErrorOf(clusters.Create(t.Context(), cluster, metav1.CreateOptions{DryRun: dry}))
	}
	there := harness.Must(clusters.Create(t.Context(), harness.ManagedCluster(harness.Unique("there"), nil), metav1.CreateOptions{}))(t)
	const taint = `{"spec":{"taints":[{"key":"a","effect":"NoSelect","timeAdded":"2026-01-01T00:00:00Z"}]}}`
	for field, err := range map[string]error{
		"metadata.name": create("a.b", func(*clusterv1.ManagedCluster) {}),
		"spec.managedClusterClientConfigs[0].url": create("a", func(c *clusterv1.ManagedCluster) {
			c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "http://a.example.com"}}
		}),
		"spec.taints":     harness.ErrorOf(clusters.Patch(t.Context(), there.Name, types.MergePatchType, []byte(taint), metav1.PatchOptions{DryRun: dry})),
		"spec.clusterSet": harness.ErrorOf(ours.ClusterV1beta2().ManagedClusterSetBindings("default").Create(t.Context(), harness.Binding("default", "default", "global"), metav1.CreateOptions{DryRun: dry})),
	} {
		var status apierrors.APIStatus
		if !apierrors.IsInvalid(err) || !errors.As(err, &status) || len(status.Status().Details.Causes) == 0 || status.Status().Details.Causes[0].Field != field {
			t.Errorf("%s: %v, want a 422 that names it", field, err)
		}
	}
}
