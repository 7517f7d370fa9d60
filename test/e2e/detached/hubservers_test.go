// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestDetached_HubWithSeveralPodsSurvivesLoss makes a hub with options that are not the default: an external etcd, two pods of each server, and the
// address of a load balancer by which the hub reaches them. Later it adds a cluster provider. While nothing changes, hub-operator sends no requests
// to any cluster. Two pods fail, along with the state that they do not share: the hub continues to serve.
func TestDetached_HubWithSeveralPodsSurvivesLoss(t *testing.T) {
	m := sharedManagement()
	w := newWorld(t)
	j := w.joined() // for the hub to be at rest, an agent exists
	before := inventory(t, m.AdminConfig())
	s, audit := newReplicated(t, "red")
	s.begin(m)
	m.AwaitHub(t, s.name, s.Instance)
	servers := s.podsOf(m, deploy.APIServer)
	if len(servers) != 2 || len(s.podsOf(m, deploy.Manager)) != 2 {
		t.Fatalf("the hub has the pods %q and %q", servers, s.podsOf(m, deploy.Manager))
	}
	t.Run("one server sees what the other one writes", func(t *testing.T) { s.sharesObjects(t, m, servers) })
	s.getsProvider(m)
	t.Run("the kubeconfig of its provider may what is documented", func(t *testing.T) { s.providerMayWhatIsDocumented(t, m) })
	t.Run("its provider gives access to a cluster", func(t *testing.T) { s.givesAccess(t) })
	asked := map[string]audited{
		"the management cluster": {m.Audit, ""}, "the hub": {audit, ""}, "the managed cluster of " + j.name: {managedAudit(), "hub-operator"},
	}
	atRest(t, asked)

	leader, since := s.leader(), time.Now()
	for _, pod := range []string{servers[0], leader} {
		m.Node.Kill(harness.ServerNamespace(s.name), pod)
	}
	s.goesOn(servers[0], leader)
	says(t, m.Instance, "the condition reports a missing pod", "hub-apiserver has 1 of 2", "get", "clustermanager", s.name, "-o",
		`jsonpath={.status.conditions[?(@.type=="HubRegistrationDegraded")].message}`)
	says(t, m.Instance, "the hub is available", "True", "get", "clustermanager", s.name, "-o", `jsonpath={.status.conditions[?(@.type=="Available")].status}`)
	// A request would have been recorded before.
	for _, cluster := range []string{"the management cluster", "the hub"} {
		if len(asked[cluster].since(t, since)) == 0 {
			t.Errorf("the audit log of %s shows nothing of a look", cluster)
		}
	}

	for _, pod := range s.pods(t, m) { // their shutdown would take time
		m.Node.Kill(pod.Namespace, pod.Name)
	}
	harness.MustKubectlOf(t, m.Instance, "", "delete", "clustermanager", s.name, "--timeout="+harness.Timeout.String())
	left(t, "the management cluster", m.AdminConfig(), before)
	if !strings.Contains(string(s.ownEtcd(t)), "of-"+servers[0]) {
		t.Error("the etcd of the user has lost the objects of the hub")
	}
}

// balanced is the address of a load balancer. The egress of the hub's kube-apiserver stands in for the load balancer.
const balanced = "198.51.100.1:7443"

// operatorOfHub is the name of the hub's admin whose identity hub-operator has.
const operatorOfHub = "operator-of-hub"

// newReplicated returns a cluster that may become a hub of several pods, which is reached by a load balancer only. An etcd for the objects of the hub
// runs beside it. The requests of hub-operator to it are in an audit log.
func newReplicated(t *testing.T, name string) (s *served, audit string) {
	t.Helper()
	m := sharedManagement()
	behind := m.Node.Forward(harness.ServerNamespace(name), deploy.APIServer, 443)
	egress, stop, err := localserver.Egress(func(ctx context.Context, address string) (net.Conn, error) {
		if address != balanced {
			return nil, fmt.Errorf("there is no way to %s, want %s", address, balanced)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", behind)
	}).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	logs, audit := harness.Audited(t, "system:serviceaccount:default:"+operatorOfHub)
	hub := harness.OwnHub(t, func(c *localhub.Options) {
		c.Plain, c.ExternalEtcd = true, true
		c.FrontArgs = slices.Concat(egress, logs, []string{"--enable-aggregator-routing"})
	})
	s = &served{T: t, name: name, Instance: hub}
	harness.MustKubectlOf(t, hub, "", "wait", "--for=create", "namespace/default", "--timeout="+harness.Timeout.String())
	m.OpenWays(t, name, hub)
	if err := m.Node.Reach(localserver.Address(portOf(t, hub, "hub-etcd"))); err != nil {
		t.Fatal(err)
	}
	return s, audit
}

const replicated = `
apiVersion: operator.open-cluster-management.io/v1
kind: ClusterManager
metadata: {name: %s}
spec:
  deployOption: {mode: Detached}
  clusterhub:
    components: [manual-certificates]
    etcd: {type: External, external: {servers: ["https://%s"]}}
    apiServer: {replicas: 2, address: {host: %s, port: %s}}
    controllerManager: {replicas: 2}
`

// begin has hub-operator create the hub.
func (s *served) begin(m *harness.Management) {
	s.Helper()
	namespace, etcd := harness.ServerNamespace(s.name), localserver.Address(portOf(s.T, s.Instance, "hub-etcd"))
	host, port, _ := net.SplitHostPort(balanced)
	harness.MustKubectlOf(s.T, m.Instance, fmt.Sprintf(replicated, s.name, etcd, host, port), "apply", "-f", "-")
	harness.MustKubectlOf(s.T, m.Instance, "", "wait", "--for=condition=ReadyToApply=false", "clustermanager/"+s.name, "--timeout="+harness.Timeout.String())
	pki := func(name string) string { return filepath.Join(s.Dir(), "pki", name) }
	harness.MustKubectlOf(s.T, m.Instance, "", "create", "secret", "generic", "hub-apiserver-etcd", "-n", namespace,
		"--from-file=ca.crt="+pki("ca.crt"), "--from-file=tls.crt="+pki("hub-etcd-client.crt"), "--from-file=tls.key="+pki("hub-etcd-client.key"))
	harness.MustKubectlOf(s.T, m.Instance, "", "create", "secret", "generic", "external-hub-kubeconfig", "-n", namespace, "--from-file=kubeconfig="+s.operatorKubeconfig())
}

// operatorKubeconfig returns the kubeconfig of a separate admin, so that the requests of hub-operator can be distinguished from others.
func (s *served) operatorKubeconfig() (file string) {
	s.Helper()
	harness.MustKubectlOf(s.T, s.Instance, "", "create", "serviceaccount", operatorOfHub)
	harness.MustKubectlOf(s.T, s.Instance, "", "create", "clusterrolebinding", operatorOfHub, "--clusterrole=cluster-admin", "--serviceaccount=default:"+operatorOfHub)
	config := harness.Must(clientcmd.LoadFromFile(s.AdminKubeconfig()))(s.T)
	token := accountOf(s.T, s.Instance, metav1.NamespaceDefault, operatorOfHub).BearerToken
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{operatorOfHub: {Token: token}}
	config.Contexts[config.CurrentContext].AuthInfo = operatorOfHub
	file = filepath.Join(s.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, harness.Must(clientcmd.Write(*config))(s.T), 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

// podsOf returns the names of the pods of a Deployment.
func (s *served) podsOf(m *harness.Management, deployment string) (names []string) {
	s.Helper()
	pods := slices.DeleteFunc(s.pods(s.T, m), func(pod corev1.Pod) bool { return pod.Labels["app.kubernetes.io/name"] != deployment })
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// through returns a client configuration for one pod of hub-apiserver.
func (s *served) through(m *harness.Management, pod string) *rest.Config {
	config := s.HubAPIServerConfig(0)
	config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return m.Node.Dial(ctx, harness.ServerNamespace(s.name), pod, 8443)
	}
	return config
}

// ownEtcd returns all data of the etcd for the objects of the hub.
func (s *served) ownEtcd(t *testing.T) []byte {
	t.Helper()
	return etcd(t, s.Dir(), "hub-etcd", portOf(t, s.Instance, "hub-etcd"))
}

// sharesObjects verifies that each of two pods of hub-apiserver immediately sees the writes of the other one. The objects remain.
func (s *served) sharesObjects(t *testing.T, m *harness.Management, pods []string) {
	t.Helper()
	for i, pod := range pods {
		one := harness.Ours(t, s.through(m, pod)).ClusterV1beta1().ManagedClusterSets()
		other := harness.Ours(t, s.through(m, pods[1-i])).ClusterV1beta1().ManagedClusterSets()
		made := harness.Must(one.Create(t.Context(), harness.LabelSet("of-"+pod, map[string]string{"of": pod}), metav1.CreateOptions{}))(t)
		seen := harness.Must(other.Get(t.Context(), made.Name, metav1.GetOptions{}))(t)
		if seen.UID != made.UID {
			t.Errorf("%s has made %s, and %s has %s", pod, made.UID, pods[1-i], seen.UID)
		}
		eventually(t, "what one reads is not changed meanwhile by the other one", func() error {
			seen := harness.Must(other.Get(t.Context(), made.Name, metav1.GetOptions{}))(t)
			changed := seen.DeepCopy()
			changed.Annotations = map[string]string{"by": pods[1-i]}
			if _, err := other.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
				return err // controllers write the status
			}
			seen.Annotations = map[string]string{"by": pod}
			if _, err := one.Update(t.Context(), seen, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("%s writes over what %s has written: %v", pod, pods[1-i], err)
			}
			return nil
		})
	}
	if kept := string(s.ownEtcd(t)); !strings.Contains(kept, "of-"+pods[0]) || !strings.Contains(kept, "of-"+pods[1]) {
		t.Error("what was written is not in the etcd of the user")
	}
}

// leader returns the pod of hub-controller-manager that leads.
func (s *served) leader() (pod string) {
	s.Helper()
	lease := harness.Must(harness.Kube(s.T, s.AdminConfig()).CoordinationV1().Leases("clusterhub-system").Get(s.Context(), deploy.Manager, metav1.GetOptions{}))(s.T)
	if lease.Spec.HolderIdentity == nil {
		s.Fatal("no hub-controller-manager leads")
	}
	pod, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod
}

// goesOn verifies that the hub serves and reconciles without a pod of hub-apiserver and without the former leader of hub-controller-manager.
func (s *served) goesOn(server, leader string) {
	s.Helper()
	sets := harness.Ours(s.T, s.AdminConfig()).ClusterV1beta1().ManagedClusterSets()
	eventually(s.T, "the hub answers again and again without "+server, func() error {
		for range 20 {
			if _, err := sets.Get(s.Context(), "of-"+server, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		_, err := sets.Create(s.Context(), harness.LabelSet("afterwards", map[string]string{"of": "none"}), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // a previous attempt succeeded despite its error
		}
		return err
	})
	says(s.T, s.Instance, "controllers work without "+leader, "True", "get", "managedclusterset", "afterwards", "-o",
		`jsonpath={.status.conditions[?(@.type=="ClusterSetEmpty")].status}`)
	if now := s.leader(); now == leader {
		s.Errorf("%s leads, which was killed", now)
	}
}
