// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agenttest provides a hub and a managed cluster for the tests of agents and of their tasks.
package agenttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterfake "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/fake"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// BootstrapUser is the user of the bootstrap token.
	BootstrapUser = "bootstrap"
	// ClusterName is the cluster's name on the hub.
	ClusterName = "c1"
	// Namespace is the agent's namespace on its cluster.
	Namespace = "agent"
)

// The second handler delays errors by the time since the start of the process, which is decades away from a bubble's.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

// World is a hub and a managed cluster, with the rights that a real hub gives: the bootstrap user may create clusters, and create and get certificate
// requests, and the cluster's agent has its rights once the cluster is accepted.
type World struct {
	T *testing.T
	// Spoke is the managed cluster, and Management the one that stores the agent's state: the same, unless the world is detached.
	Spoke, Management *kubefake.Clientset

	HubKube     *kubefake.Clientset
	HubClusters *clusterfake.Clientset
	// CertLife is the lifetime of certificates that the hub signs.
	CertLife time.Duration

	authority *x509.Certificate
	signer    *ecdsa.PrivateKey

	mu sync.Mutex
	// rights are those of the agent, and of the bootstrap user.
	rights rights.Rights
	// requests are all requests to the hub, "<user> <verb> <resource>".
	requests []string
	// Refuse, if it is set, is called before the rights are checked.
	Refuse func(user, verb, resource string) error
	// Granted is whether the agent has its rights.
	Granted bool
	csrs    int
	// Write, if it is set, is called around every write to the hub and to the agent's clusters.
	Write func(do func())
}

// NewWorld returns a World in which the cluster is not registered with the hub.
func NewWorld(t *testing.T) *World {
	t.Helper()
	w := &World{T: t, CertLife: 10 * time.Hour}
	w.Spoke = kubefake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-of-kube-system"}})
	w.Management = w.Spoke
	w.HubKube, w.HubClusters = kubefake.NewClientset(), clusterfake.NewSimpleClientset()
	w.watchWrites(w.Spoke)
	var err error
	w.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now(), NotAfter: time.Now().Add(100 * 365 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &w.signer.PublicKey, w.signer)
	if err != nil {
		t.Fatal(err)
	}
	w.authority, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *World) watchWrites(cluster *kubefake.Clientset) {
	cluster.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return w.around(action, cluster.Tracker())
	})
}

// Detach makes a different cluster than the managed one store the agent's state.
func (w *World) Detach() {
	w.Management = kubefake.NewClientset()
	w.watchWrites(w.Management)
}

// IsWrite reports whether a verb changes something.
func IsWrite(verb string) bool {
	return verb == "create" || verb == "update" || verb == "patch" || verb == "delete"
}

// around runs an action on the objects of a tracker.
func (w *World) around(action clienttesting.Action, tracker clienttesting.ObjectTracker) (handled bool, object runtime.Object, err error) {
	do := func() { handled, object, err = clienttesting.ObjectReaction(tracker)(action) }
	w.mu.Lock()
	write := w.Write
	w.mu.Unlock()
	if write == nil || !IsWrite(action.GetVerb()) {
		do()
		return handled, object, err
	}
	handled, err = true, context.Canceled
	write(do)
	return handled, object, err
}

// Connect returns clients of the hub for the user whose credentials a configuration has.
func (w *World) Connect(config *rest.Config) (*hub.Hub, error) {
	user := BootstrapUser
	if config.BearerToken == "" {
		block, _ := pem.Decode(config.CertData)
		if block == nil {
			return nil, fmt.Errorf("no credentials")
		}
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		user = leaf.Subject.CommonName
	}
	return w.ConnectAs(user)
}

// ConnectAs returns clients of the hub for a user.
func (w *World) ConnectAs(user string) (*hub.Hub, error) {
	kube, clusters := &kubefake.Clientset{}, &clusterfake.Clientset{}
	kube.AddReactor("*", "*", w.react(user, w.HubKube.Tracker()))
	clusters.AddReactor("*", "*", w.react(user, w.HubClusters.Tracker()))
	return &hub.Hub{Kube: kube, Clusters: clusters}, nil
}

func (w *World) react(user string, tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource().Resource
		if sub := action.GetSubresource(); sub != "" {
			resource += "/" + sub
		}
		w.mu.Lock()
		w.requests = append(w.requests, user+" "+action.GetVerb()+" "+resource)
		err := w.authorize(user, action.GetVerb(), resource, action.GetNamespace())
		if create, ok := action.(clienttesting.CreateAction); ok && err == nil && resource == "certificatesigningrequests" {
			w.csrs++
			csr := create.GetObject().(*certificatesv1.CertificateSigningRequest)
			csr.Name = fmt.Sprintf("%s%d", csr.GenerateName, w.csrs)
		}
		w.mu.Unlock()
		if err != nil {
			return true, nil, err
		}
		return w.around(action, tracker)
	}
}

// Set changes fields while something runs.
func (w *World) Set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// Asked returns the number of requests that contain a text.
func (w *World) Asked(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, request := range w.requests {
		if strings.Contains(request, text) {
			n++
		}
	}
	return n
}

// Accept does what a hub does for a cluster that an admin accepts.
func (w *World) Accept() {
	w.T.Helper()
	w.Set(func() { w.Granted = true })
	if cluster, err := w.HubClusters.ClusterV1().ManagedClusters().Get(w.T.Context(), ClusterName, metav1.GetOptions{}); err == nil {
		cluster.Spec.HubAcceptsClient = true
		w.Update(cluster)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: registration.LeaseName, Namespace: ClusterName}}
	_ = w.HubKube.Tracker().Add(lease)
	w.Approve()
}

// Approve signs the pending requests.
func (w *World) Approve() {
	w.T.Helper()
	for _, csr := range w.CSRs() {
		if len(csr.Status.Certificate) > 0 {
			continue
		}
		csr.Status.Certificate = w.Sign(csr.Spec.Request)
		if err := w.HubKube.Tracker().Update(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), &csr, ""); err != nil {
			w.T.Fatal(err)
		}
	}
}

// CSRs returns the certificate requests on the hub.
func (w *World) CSRs() []certificatesv1.CertificateSigningRequest {
	w.T.Helper()
	list, err := w.HubKube.CertificatesV1().CertificateSigningRequests().List(w.T.Context(), metav1.ListOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return list.Items
}

// Sign returns a certificate for a request.
func (w *World) Sign(request []byte) []byte {
	w.T.Helper()
	block, _ := pem.Decode(request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		w.T.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: csr.Subject,
		NotBefore: time.Now(), NotAfter: time.Now().Add(w.CertLife)}
	der, err := x509.CreateCertificate(rand.Reader, template, w.authority, csr.PublicKey, w.signer)
	if err != nil {
		w.T.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// SignKey returns a certificate for a key, for a user.
func (w *World) SignKey(key []byte, user string) []byte {
	w.T.Helper()
	signer, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		w.T.Fatal(err)
	}
	request, err := cert.MakeCSR(signer, &pkix.Name{CommonName: user}, nil, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	return w.Sign(request)
}

// Cluster returns the ManagedCluster on the hub.
func (w *World) Cluster() *clusterv1.ManagedCluster {
	w.T.Helper()
	cluster, err := w.HubClusters.ClusterV1().ManagedClusters().Get(w.T.Context(), ClusterName, metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return cluster
}

// Lease returns the lease of the cluster.
func (w *World) Lease() *coordinationv1.Lease {
	w.T.Helper()
	lease, err := w.HubKube.CoordinationV1().Leases(ClusterName).Get(w.T.Context(), registration.LeaseName, metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return lease
}

// Store returns the agent's store, for a process that has read nothing yet.
func (w *World) Store() *state.Store {
	return &state.Store{Client: w.Home().Client, Namespace: Namespace}
}

// State returns the agent's state in the secret.
func (w *World) State() state.State {
	w.T.Helper()
	s, err := (&state.Store{Client: w.Management, Namespace: Namespace}).Load(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}

// Events returns the messages of the agent's events.
func (w *World) Events() (messages []string) {
	w.T.Helper()
	list, err := w.Management.CoreV1().Events(Namespace).List(w.T.Context(), metav1.ListOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	for _, event := range list.Items {
		messages = append(messages, event.Message)
	}
	return messages
}

// BootstrapKubeconfig returns a bootstrap kubeconfig for the hub.
func BootstrapKubeconfig() *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: "https://hub:6443", CertificateAuthorityData: []byte("ca"),
		ProxyURL: "http://proxy:3128", TLSServerName: "hub.example"}
	config.AuthInfos["joiner"] = &clientcmdapi.AuthInfo{Token: "boot"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "joiner"}
	config.CurrentContext = "x"
	return config
}

// Pass advances the time of the bubble, which takes no real time.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Quiet returns the test's context without a log.
func Quiet(t testing.TB) context.Context { return klog.NewContext(t.Context(), klog.New(nil)) }
