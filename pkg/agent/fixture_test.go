// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"k8s.io/klog/v2"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterfake "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/fake"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	bootstrapUser = "bootstrap"
	clusterName   = "c1"
	namespace     = "agent"
)

// The second handler slows errors down by the time since the start of the process, which is decades away from a bubble's.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

// world is a hub and a managed cluster, with the rights that a real hub gives: the bootstrap user may create clusters,
// and create and get certificate requests, and the cluster's agent what it is granted once it is accepted.
type world struct {
	t     *testing.T
	spoke *kubefake.Clientset

	hubKube     *kubefake.Clientset
	hubClusters *clusterfake.Clientset
	authority   *x509.Certificate
	signer      *ecdsa.PrivateKey
	certLife    time.Duration

	mu sync.Mutex
	// requests are all that the hub was asked, "<user> <verb> <resource>".
	requests []string
	// refuse, when it is set, is asked before the rights are.
	refuse  func(user, verb, resource string) error
	granted bool
	csrs    int
	// write, when it is set, is called around every write to the hub and to the managed cluster.
	write func(do func())
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, certLife: 10 * time.Hour}
	w.spoke = kubefake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-of-kube-system"}})
	w.hubKube, w.hubClusters = kubefake.NewClientset(), clusterfake.NewSimpleClientset()
	w.spoke.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return w.around(action, w.spoke.Tracker())
	})
	var err error
	if w.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now(), NotAfter: time.Now().Add(100 * 365 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &w.signer.PublicKey, w.signer)
	if err != nil {
		t.Fatal(err)
	}
	if w.authority, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return w
}

func isWrite(verb string) bool {
	return verb == "create" || verb == "update" || verb == "patch" || verb == "delete"
}

// around runs an action on what a tracker has.
func (w *world) around(action clienttesting.Action, tracker clienttesting.ObjectTracker) (handled bool, object runtime.Object, err error) {
	do := func() { handled, object, err = clienttesting.ObjectReaction(tracker)(action) }
	w.mu.Lock()
	write := w.write
	w.mu.Unlock()
	if write == nil || !isWrite(action.GetVerb()) {
		do()
		return handled, object, err
	}
	handled, err = true, context.Canceled
	write(do)
	return handled, object, err
}

// connect is a way to the hub as the user whose credentials a configuration has.
func (w *world) connect(config *rest.Config) (*hub, error) {
	user := bootstrapUser
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
	return w.connectAs(user)
}

func (w *world) connectAs(user string) (*hub, error) {
	kube, clusters := &kubefake.Clientset{}, &clusterfake.Clientset{}
	kube.AddReactor("*", "*", w.react(user, w.hubKube.Tracker()))
	clusters.AddReactor("*", "*", w.react(user, w.hubClusters.Tracker()))
	return &hub{kube: kube, clusters: clusters}, nil
}

func (w *world) react(user string, tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource().Resource
		if sub := action.GetSubresource(); sub != "" {
			resource += "/" + sub
		}
		w.mu.Lock()
		w.requests = append(w.requests, user+" "+action.GetVerb()+" "+resource)
		err := w.authorize(user, action.GetVerb(), resource)
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

// authorize is called with the lock.
func (w *world) authorize(user, verb, resource string) error {
	if w.refuse != nil {
		if err := w.refuse(user, verb, resource); err != nil {
			return err
		}
	}
	allowed := map[string]bool{"create managedclusters": true, "create certificatesigningrequests": true,
		"get certificatesigningrequests": true}
	if user != bootstrapUser {
		allowed = map[string]bool{}
	}
	if user != bootstrapUser && w.granted {
		allowed = map[string]bool{"get managedclusters": true, "update managedclusters": true,
			"patch managedclusters/status": true, "get leases": true, "update leases": true,
			"create certificatesigningrequests": true, "get certificatesigningrequests": true}
	}
	if !allowed[verb+" "+resource] {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", fmt.Errorf("%s may not %s", user, verb))
	}
	return nil
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// asked counts the requests that contain a text.
func (w *world) asked(text string) int {
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

// accept does what a hub does for a cluster that an admin accepts.
func (w *world) accept() {
	w.t.Helper()
	w.set(func() { w.granted = true })
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: registration.LeaseName, Namespace: clusterName}}
	_ = w.hubKube.Tracker().Add(lease)
	w.approve()
}

// approve signs the requests that are pending.
func (w *world) approve() {
	w.t.Helper()
	for _, csr := range w.listCSRs() {
		if len(csr.Status.Certificate) > 0 {
			continue
		}
		csr.Status.Certificate = w.sign(csr.Spec.Request)
		if err := w.hubKube.Tracker().Update(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), &csr, ""); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) listCSRs() []certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	list, err := w.hubKube.CertificatesV1().CertificateSigningRequests().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

func (w *world) sign(request []byte) []byte {
	w.t.Helper()
	block, _ := pem.Decode(request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: csr.Subject,
		NotBefore: time.Now(), NotAfter: time.Now().Add(w.certLife)}
	der, err := x509.CreateCertificate(rand.Reader, template, w.authority, csr.PublicKey, w.signer)
	if err != nil {
		w.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (w *world) cluster() *clusterv1.ManagedCluster {
	w.t.Helper()
	cluster, err := w.hubClusters.ClusterV1().ManagedClusters().Get(w.t.Context(), clusterName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return cluster
}

func (w *world) lease() *coordinationv1.Lease {
	w.t.Helper()
	lease, err := w.hubKube.CoordinationV1().Leases(clusterName).Get(w.t.Context(), registration.LeaseName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return lease
}

// secret is the agent's state as it is in the secret.
func (w *world) secret() state {
	w.t.Helper()
	s, err := (&store{client: w.spoke, namespace: namespace}).load(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) events() (messages []string) {
	w.t.Helper()
	list, err := w.spoke.CoreV1().Events(namespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, event := range list.Items {
		messages = append(messages, event.Message)
	}
	return messages
}

func bootstrapKubeconfig() *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: "https://hub:6443", CertificateAuthorityData: []byte("ca"),
		ProxyURL: "http://proxy:3128", TLSServerName: "hub.example"}
	config.AuthInfos["joiner"] = &clientcmdapi.AuthInfo{Token: "boot"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "joiner"}
	config.CurrentContext = "x"
	return config
}

type fakeFacts struct {
	mu  sync.Mutex
	now observation
}

func (f *fakeFacts) observe(context.Context) observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeFacts) set(o observation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = o
}

// newAgent is an agent of the managed cluster, with nothing in memory.
func (w *world) newAgent() *agent {
	w.t.Helper()
	a := &agent{
		settings:  settings{clusterName: clusterName, leaseSeconds: 60, namespace: namespace},
		spoke:     w.spoke,
		store:     &store{client: w.spoke, namespace: namespace},
		facts:     &fakeFacts{now: observation{version: "v1.37.1"}},
		bootstrap: func(context.Context) (*clientcmdapi.Config, error) { return bootstrapKubeconfig(), nil },
		connect:   w.connect,
		random:    func() float64 { return 0.5 },
		health:    &health{},
		kicked:    make(chan struct{}, 1),
	}
	a.identity = a.csrIdentity(0)
	return a
}

// start runs an agent until stop, which waits for its end, or the end of the test.
func start(t *testing.T, a *agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(quiet(t))
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// pass lets an amount of the bubble's time pass, which costs none of ours.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// joined runs an agent until its cluster has joined.
func (w *world) joined() (a *agent, stop func()) {
	w.t.Helper()
	a = w.newAgent()
	stop = start(w.t, a)
	pass(5 * time.Second)
	w.accept()
	pass(time.Minute)
	if len(w.secret().cert) == 0 {
		w.t.Fatal("the cluster has not joined")
	}
	return a, stop
}

func mustHash(t *testing.T, key []byte) string {
	t.Helper()
	hash, err := keyHash(key)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func loadKubeconfig(t *testing.T, data []byte) *clientcmdapi.Config {
	t.Helper()
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// quiet is the test's context without a log.
func quiet(t *testing.T) context.Context { return klog.NewContext(t.Context(), klog.New(nil)) }
