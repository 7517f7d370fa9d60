// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/work"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

// worksAlone is a real cluster that is both hub and managed cluster, with a user who has the rights that the part declares on the hub, and a
// ServiceAccount that has those on the managed cluster.
type worksAlone struct {
	*testing.T
	kube kubernetes.Interface
	hub  *hub.Hub
	// cluster is the namespace on the hub, own that of the ServiceAccount, and target that of the objects of works.
	cluster, own, target string
	// dir has the kubeconfig of the managed cluster, and the folder with the identity.
	dir     string
	version int
}

func newWorksAlone(t *testing.T) *worksAlone {
	w := &worksAlone{T: t, cluster: worktest.Namespace(t), own: worktest.Namespace(t), target: worktest.Namespace(t), dir: t.TempDir()}
	w.kube = kubernetes.NewForConfigOrDie(worktest.Config(t))
	var err error
	w.hub, err = hub.New(worktest.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	account, err := w.kube.CoreV1().ServiceAccounts(w.own).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "work"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	agent := rbacv1.Subject{Kind: "User", Name: registration.ClusterUser(w.cluster, "a"), APIGroup: rbacv1.GroupName}
	part := rbacv1.Subject{Kind: "ServiceAccount", Name: account.Name, Namespace: w.own}
	objects := rights.Rule("", "serviceaccounts", "get", "list", "watch", "create", "update", "patch", "delete")
	bind(t, w.kube, w.cluster, work.Rights.Hub.Namespace, agent)
	bind(t, w.kube, w.target, []rbacv1.PolicyRule{objects}, part)
	bind(t, w.kube, "", work.Rights.Own.Cluster, part)
	return w
}

// bind grants rules to a subject, in a namespace or in the whole cluster.
func bind(t *testing.T, kube kubernetes.Interface, namespace string, rules []rbacv1.PolicyRule, to rbacv1.Subject) {
	t.Helper()
	rbac, name, ctx := kube.RbacV1(), metav1.ObjectMeta{Name: "t-" + string(uuid.NewUUID())}, t.Context()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Name: name.Name}
	var ofRole, ofBinding error
	if namespace == "" {
		ref.Kind = "ClusterRole"
		_, ofRole = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
		_, ofBinding = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: name, RoleRef: ref, Subjects: []rbacv1.Subject{to}}, metav1.CreateOptions{})
	} else {
		ref.Kind = "Role"
		_, ofRole = rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
		_, ofBinding = rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: name, RoleRef: ref, Subjects: []rbacv1.Subject{to}}, metav1.CreateOptions{})
	}
	if ofRole != nil || ofBinding != nil {
		t.Fatal(ofRole, ofBinding)
	}
}

func (w *worksAlone) put(name, content string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
}

// reachBy writes the kubeconfig of the managed cluster, as it is minted.
func (w *worksAlone) reachBy(server string) {
	w.Helper()
	token, err := w.kube.CoreV1().ServiceAccounts(w.own).CreateToken(w.Context(), "work", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.put("token", token.Status.Token)
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: worktest.Config(w).CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{TokenFile: "token"}
	config.Contexts["context"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "context"
	written, err := clientcmd.Write(*config)
	if err != nil {
		w.Fatal(err)
	}
	w.put("kubeconfig", string(written))
}

// identify writes a certificate for the hub, in the way in which a mounted Secret is replaced.
func (w *worksAlone) identify() {
	w.Helper()
	certificate, key := worktest.ClientCertificate(w, pkix.Name{CommonName: registration.ClusterUser(w.cluster, "a")})
	bootstrap := clientcmdapi.NewConfig()
	bootstrap.Clusters["hub"] = &clientcmdapi.Cluster{Server: worktest.Config(w).Host, CertificateAuthorityData: worktest.Config(w).CAData}
	bootstrap.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub"}
	bootstrap.CurrentContext = "hub"
	kubeconfig, err := hub.Kubeconfig(bootstrap, w.cluster, &clientcmdapi.AuthInfo{ClientCertificate: registration.KeyTLSCert, ClientKey: registration.KeyTLSKey})
	if err != nil {
		w.Fatal(err)
	}
	w.version++
	version := fmt.Sprintf("..v%d", w.version)
	if err := os.MkdirAll(filepath.Join(w.dir, "identity", version), 0o700); err != nil {
		w.Fatal(err)
	}
	for name, data := range map[string][]byte{registration.KeyKubeconfig: kubeconfig, registration.KeyTLSCert: certificate, registration.KeyTLSKey: key,
		registration.KeyClusterName: []byte(w.cluster), registration.KeyAgentName: []byte("a")} {
		w.put(filepath.Join("identity", version, name), string(data))
	}
	link := filepath.Join(w.dir, "identity", "..tmp")
	if err := os.Symlink(version, link); err != nil {
		w.Fatal(err)
	}
	if err := os.Rename(link, filepath.Join(w.dir, "identity", "..data")); err != nil {
		w.Fatal(err)
	}
}

// bring creates a work and waits until it is applied.
func (w *worksAlone) bring(name string) {
	w.Helper()
	works := w.hub.Works.ManifestWorks(w.cluster)
	made := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"` + name + `","namespace":"` + w.target + `"}}`)}}}
	if _, err := works.Create(w.Context(), made, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	worktest.Eventually(w, "the work "+name+" is applied", func() bool {
		have, err := works.Get(w.Context(), name, metav1.GetOptions{})
		return err == nil && meta.IsStatusConditionTrue(have.Status.Conditions, workv1.WorkApplied)
	})
}

// forward forwards connections from another address to a server, and counts them.
func forward(t *testing.T, to string) (address string, n *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	n = &atomic.Int32{}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	return listener.Addr().String(), n
}

// The part has the rights that it declares, and none on a management cluster, which it does not use. Everything that it needs is created late, and
// changes while it runs.
func TestWorksAlone_OnRealClusterWithOwnRights(t *testing.T) {
	w := newWorksAlone(t)
	o := NewOptions()
	o.Registration, o.Works.Enabled, o.Works.AgentID = false, true, w.own
	o.HubKubeconfigDir = filepath.Join(w.dir, "identity")
	o.Spoke.Detached, o.Spoke.Kubeconfig, o.Spoke.Namespace = true, filepath.Join(w.dir, "kubeconfig"), w.own
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	p := &process{Options: o, health: &health.Health{}}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(agenttest.Quiet(t))
	go func() { ended <- p.run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	ready := func(want string) {
		t.Helper()
		worktest.Eventually(t, "readiness is "+want, func() bool {
			err := p.health.Ready()
			return err == nil && want == "" || err != nil && want != "" && strings.Contains(err.Error(), want)
		})
	}
	ready("--spoke-kubeconfig")
	server := worktest.Config(t).Host
	w.reachBy(server)
	ready("there is no identity in the folder")
	w.identify()
	w.bring("first")
	ready("")
	w.identify()
	w.bring("second")

	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	address, connections := forward(t, at.Host)
	w.reachBy("https://" + address)
	worktest.Eventually(t, "the managed cluster is reached in another way", func() bool { return connections.Load() > 0 })
	w.bring("third")
	ready("")
	names := []string{}
	list, err := w.kube.CoreV1().ServiceAccounts(w.target).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	for _, want := range []string{"first", "second", "third"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not there: %q", want, names)
		}
	}
}
