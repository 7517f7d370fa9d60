// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercertificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

const (
	c1Group  = "system:open-cluster-management:c1"
	allGroup = "system:open-cluster-management:managed-clusters"
	c1Agent  = "system:open-cluster-management:c1:agent1"
)

// scene is a request and the hub that receives it. It starts as a valid first request.
type scene struct {
	t       *testing.T
	key     *ecdsa.PrivateKey
	request *x509.CertificateRequest
	csr     *certificatesv1.CertificateSigningRequest
	cluster *clusterv1.ManagedCluster
	kept    *corev1.ConfigMap
	users   []string
	trusted []string
	// pem replaces the request.
	pem []byte
	// asked is the number of live reads.
	asked int
}

func newScene(t *testing.T) *scene {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &scene{
		t: t, key: key,
		request: &x509.CertificateRequest{Subject: pkix.Name{CommonName: c1Agent, Organization: []string{c1Group, allGroup}}},
		csr: &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "c1-abcde", Labels: map[string]string{"open-cluster-management.io/cluster-name": "c1"}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: "kubernetes.io/kube-apiserver-client",
				Usages:     []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"},
				Username:   "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", "system:authenticated"},
			},
		},
		cluster: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{
				Name: "c1", UID: "uid1",
				Annotations: map[string]string{"registration.clusterhub.dev/accepted-at": "2030-01-01T00:00:00.5Z"},
			},
			Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		kept: &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusterhub-registration", Name: "c1"},
			Data:       map[string]string{"driver": "csr", "cluster-uid": "uid1", "granted": "2030-01-01T00:00:00Z"},
		},
	}
}

// joined gives the agent of the cluster its identity.
func (s *scene) joined() {
	s.cluster.Status.Conditions = []metav1.Condition{{Type: "ManagedClusterJoined", Status: "True", Reason: "ManagedClusterJoined"}}
}

// renewing makes the request a renewal by the agent itself.
func (s *scene) renewing() {
	s.joined()
	s.csr.Spec.Username, s.csr.Spec.Groups = c1Agent, []string{c1Group, allGroup, "system:authenticated"}
	s.csr.CreationTimestamp = metav1.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
}

// unasked makes the request later than the acceptance of the cluster.
func (s *scene) unasked() { s.csr.CreationTimestamp = metav1.Date(2030, 1, 1, 0, 0, 1, 0, time.UTC) }

func (s *scene) keyHash() string {
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// pinned pins the key of the cluster's agent.
func (s *scene) pinned(key string) {
	s.kept.Data["key-sha256"] = key
}

// decide returns the decision: approved, left with an event, or ignored.
func (s *scene) decide() (approved bool, happened string) {
	s.t.Helper()
	if s.pem == nil {
		der, err := x509.CreateCertificateRequest(rand.Reader, s.request, s.key)
		if err != nil {
			s.t.Fatal(err)
		}
		s.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	s.csr.Spec.Request = s.pem
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clusterv1.AddToScheme, certificatesv1.AddToScheme, corev1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		s.t.Fatal(err)
	}
	objs := []client.Object{s.csr}
	if s.cluster != nil {
		objs = append(objs, s.cluster)
	}
	if s.kept != nil {
		objs = append(objs, s.kept)
	}
	for _, obj := range objs {
		obj.SetResourceVersion("")
	}
	writes := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithIndex(&certificatesv1.CertificateSigningRequest{}, openIndex, openOf).
		WithIndex(&certificatesv1.CertificateSigningRequest{}, pendingIndex, pendingOf).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(_ context.Context, _ client.Client, sub string, obj client.Object, _ ...client.SubResourceUpdateOption) error {
			writes++
			conditions := obj.(*certificatesv1.CertificateSigningRequest).Status.Conditions
			if sub != "approval" || len(conditions) != 1 || conditions[0].Type != "Approved" || conditions[0].Status != "True" {
				s.t.Errorf("wrote %s %v", sub, conditions)
			}
			return nil
		}}).Build()
	recorder := events.NewFakeRecorder(10)
	live := interceptor.NewClient(c, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
		s.asked++
		return c.Get(ctx, key, obj, options...)
	}})
	r := &Reconciler{Options: Options{BootstrapUsers: s.users, TrustedUsers: s.trusted, MaxLifetime: 365 * 24 * time.Hour}, client: c, live: live, recorder: recorder}
	if _, err := r.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.csr)}); err != nil {
		s.t.Fatal(err)
	}
	select {
	case happened = <-recorder.Events:
	default:
	}
	return writes == 1, happened
}

func TestApproved_RequestsOfAgents(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"the first certificate, with a bootstrap token": func(*scene) {},
		"by the bootstrap ServiceAccount": func(s *scene) {
			s.csr.Spec.Username = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"
		},
		"by a user who is named":             func(s *scene) { s.csr.Spec.Username, s.users = "joiner", []string{"joiner"} },
		"with the key of the cluster":        func(s *scene) { s.pinned(s.keyHash()); s.unasked() },
		"again, with the key of the cluster": func(s *scene) { s.pinned(s.keyHash()); s.joined() },
		"asked for by whom accept named": func(s *scene) {
			s.unasked()
			s.kept.Data["requesters"] = "joiner,system:bootstrap:abcdef"
		},
		"asked for by a trusted user": func(s *scene) {
			s.unasked()
			s.csr.Spec.Username, s.users, s.trusted = "joiner", []string{"joiner"}, []string{"joiner"}
		},
		"for as long as it may live":           func(s *scene) { s.csr.Spec.ExpirationSeconds = new(int32(365 * 24 * 60 * 60)) },
		"a renewal":                            func(s *scene) { s.renewing() },
		"a renewal with another key":           func(s *scene) { s.renewing(); s.pinned("another") },
		"fewer usages":                         func(s *scene) { s.csr.Spec.Usages = []certificatesv1.KeyUsage{"client auth"} },
		"the groups the other way round":       func(s *scene) { s.request.Subject.Organization = []string{allGroup, c1Group} },
		"a renewal, the groups in other order": func(s *scene) { s.renewing(); s.csr.Spec.Groups = []string{"system:authenticated", allGroup, c1Group} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			change(s)
			if approved, happened := s.decide(); !approved || !strings.HasPrefix(happened, "Normal ManagedClusterCSRAutoApproved") {
				t.Errorf("not approved: %s", happened)
			}
		})
	}
}

// The cluster and the events say why a request waits for an admin.
func TestPending_ReportsReason(t *testing.T) {
	for want, change := range map[string]func(*scene){
		"the cluster has joined already":                                               func(s *scene) { s.joined() },
		"it is for another key than the agent of the cluster has, whose SHA-256 is 00": func(s *scene) { s.pinned("00") },
		"several keys were requested at the same time":                                 func(s *scene) { s.pinned("undecided") },
		"it asks for a lifetime of 8760h0m1s, and hub-certificate-approver approves at most 8760h0m0s (--max-certificate-duration)": func(s *scene) {
			s.csr.Spec.ExpirationSeconds = new(int32(365*24*60*60 + 1))
		},
		"no certificate of the cluster had been requested when":             func(s *scene) { s.unasked() },
		`the user "mallory" is neither the agent`:                           func(s *scene) { s.csr.Spec.Username = "mallory" },
		`the cluster is accepted by the registration driver "awsirsa"`:      func(s *scene) { s.kept.Data["driver"] = "awsirsa" },
		"it asks for alternative names":                                     func(s *scene) { s.request.DNSNames = []string{"a"} },
		`it asks for the usage "server auth"`:                               func(s *scene) { s.csr.Spec.Usages = append(s.csr.Spec.Usages, "server auth") },
		`it asks for the groups ["system:masters"]`:                         func(s *scene) { s.request.Subject.Organization = []string{"system:masters"} },
		`it asks for the user ["system:open-cluster-management:c2:agent1"]`: func(s *scene) { s.request.Subject.CommonName = "system:open-cluster-management:c2:agent1" },
		`it asks for the user ["` + strings.Repeat("long", 50):              func(s *scene) { s.request.Subject.CommonName = strings.Repeat("long", 500) },
		`it asks for the user ["x` + strings.Repeat("ä", 50):                func(s *scene) { s.request.Subject.CommonName = "x" + strings.Repeat("ä", 1000) },
		`it asks for the user ["xx` + strings.Repeat("ä", 50):               func(s *scene) { s.request.Subject.CommonName = "xx" + strings.Repeat("ä", 1000) },
	} {
		s := newScene(t)
		change(s)
		approved, happened := s.decide()
		if approved || !strings.HasPrefix(happened, "Warning ManagedClusterCSRPending The certificate request c1-abcde waits for an admin") ||
			!strings.Contains(happened, want) || len(happened) > 1100 || !utf8.ValidString(happened) {
			t.Errorf("approved %t, event %q, want %q", approved, happened, want)
		}
	}
	// Requests of others, and those that may become valid, cause no events.
	for name, change := range map[string]func(*scene){
		"another signer":   func(s *scene) { s.csr.Spec.SignerName = "example.com/signer" },
		"not yet accepted": func(s *scene) { s.cluster.Spec.HubAcceptsClient = false },
	} {
		s := newScene(t)
		change(s)
		if _, happened := s.decide(); happened != "" {
			t.Errorf("%s: %s", name, happened)
		}
	}
}

// TestRequests_OfUnacceptedClustersCauseNoReads verifies that requests of clusters that are not accepted cause no live reads: a
// fleet that joins at once has many of them, and so has a flood.
func TestRequests_OfUnacceptedClustersCauseNoReads(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scene)
		want   int
	}{
		"granted":          {func(*scene) {}, 2},
		"not there":        {func(s *scene) { s.cluster = nil }, 0},
		"not accepted":     {func(s *scene) { s.cluster.Spec.HubAcceptsClient = false }, 0},
		"without a record": {func(s *scene) { s.kept = nil }, 0},
		"not granted":      {func(s *scene) { delete(s.kept.Data, "granted") }, 0},
		"another's before": {func(s *scene) { s.cluster.UID = "uid2" }, 0},
		"not its agent":    {func(s *scene) { s.csr.Spec.Username = "somebody" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			test.change(s)
			if approved, _ := s.decide(); approved != (test.want > 0) || s.asked != test.want {
				t.Errorf("approved %t after %d reads, want %d", approved, s.asked, test.want)
			}
		})
	}
}

func TestEvents_OfOtherClusterOfSameName(t *testing.T) {
	s := newScene(t)
	cluster, kept := s.cluster.DeepCopy(), s.kept.DeepCopy()
	cluster.UID, kept.Data["cluster-uid"] = "uid2", "uid2"
	if !clusterChanged(event.UpdateEvent{ObjectOld: s.cluster, ObjectNew: cluster}) ||
		!recordChanged(event.UpdateEvent{ObjectOld: s.kept, ObjectNew: kept}) {
		t.Error("a request of the new cluster would not be looked at again")
	}
	if clusterChanged(event.UpdateEvent{ObjectOld: s.cluster, ObjectNew: s.cluster}) ||
		recordChanged(event.UpdateEvent{ObjectOld: s.kept, ObjectNew: s.kept}) {
		t.Error("what has not changed is looked at again")
	}
}

func TestRequests_AreRequeuedOnAcceptance(t *testing.T) {
	s := newScene(t)
	scheme := runtime.NewScheme()
	if err := certificatesv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decided, other := s.csr.DeepCopy(), s.csr.DeepCopy()
	decided.Name, decided.Status.Conditions = "decided", []certificatesv1.CertificateSigningRequestCondition{{Type: "Denied", Status: "True"}}
	other.Name, other.Labels = "other", map[string]string{"open-cluster-management.io/cluster-name": "c2"}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.csr, decided, other).
		WithIndex(&certificatesv1.CertificateSigningRequest{}, openIndex, openOf).Build()
	r := &Reconciler{client: c}
	s.kept.Labels = map[string]string{"open-cluster-management.io/cluster-name": "c1"}
	for _, obj := range []client.Object{s.cluster, s.kept} {
		got := r.requestsOf(t.Context(), obj)
		if len(got) != 1 || got[0].Name != "c1-abcde" {
			t.Errorf("%T requests %v", obj, got)
		}
	}
}

// A request without a lifetime gets the signer's, which is a year by default.
func TestLifetime_DefaultsToSigner(t *testing.T) {
	for bound, approved := range map[time.Duration]bool{365 * 24 * time.Hour: true, 365*24*time.Hour - time.Second: false} {
		r := &Reconciler{Options: Options{MaxLifetime: bound}}
		if why := r.checkLifetime(&certificatesv1.CertificateSigningRequestSpec{}); (why == "") != approved {
			t.Errorf("at most %s: %q", bound, why)
		}
	}
}
