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
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

const (
	c1Group  = "system:open-cluster-management:c1"
	allGroup = "system:open-cluster-management:managed-clusters"
	c1Agent  = "system:open-cluster-management:c1:agent1"
)

// scene is a request, and the hub that it is made to. It begins as a first request that is right.
type scene struct {
	t       *testing.T
	key     *ecdsa.PrivateKey
	request *x509.CertificateRequest
	csr     *certificatesv1.CertificateSigningRequest
	cluster *clusterv1.ManagedCluster
	role    *rbacv1.ClusterRole
	users   []string
	// pem replaces the request.
	pem []byte
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
			ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "uid1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		role: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: "open-cluster-management:managedcluster:c1",
			Annotations: map[string]string{
				"registration.clusterhub.dev/driver": "csr", "registration.clusterhub.dev/cluster-uid": "uid1",
				"registration.clusterhub.dev/granted": "2030-01-01T00:00:00Z",
			},
		}},
	}
}

// joined makes it a cluster whose agent has its identity.
func (s *scene) joined() {
	s.cluster.Status.Conditions = []metav1.Condition{{Type: "ManagedClusterJoined", Status: "True", Reason: "ManagedClusterJoined"}}
}

// renewing makes the request one of the agent itself.
func (s *scene) renewing() {
	s.joined()
	s.csr.Spec.Username, s.csr.Spec.Groups = c1Agent, []string{c1Group, allGroup, "system:authenticated"}
}

func (s *scene) keyHash() string {
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

func (s *scene) madeWith(key string) {
	s.cluster.Annotations = map[string]string{"registration.clusterhub.dev/agent-key-sha256": key}
}

// decide says what becomes of the request: approved, left with an event, or left alone.
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
	builder := runtime.NewSchemeBuilder(clusterv1.AddToScheme, certificatesv1.AddToScheme, rbacv1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		s.t.Fatal(err)
	}
	objs := []client.Object{s.csr}
	if s.cluster != nil {
		objs = append(objs, s.cluster)
	}
	if s.role != nil {
		objs = append(objs, s.role)
	}
	for _, obj := range objs {
		obj.SetResourceVersion("")
	}
	writes := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(_ context.Context, _ client.Client, sub string, obj client.Object, _ ...client.SubResourceUpdateOption) error {
			writes++
			conditions := obj.(*certificatesv1.CertificateSigningRequest).Status.Conditions
			if sub != "approval" || len(conditions) != 1 || conditions[0].Type != "Approved" || conditions[0].Status != "True" {
				s.t.Errorf("wrote %s %v", sub, conditions)
			}
			return nil
		}}).Build()
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Options: Options{BootstrapUsers: s.users}, client: c, live: c, recorder: recorder}
	if _, err := r.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.csr)}); err != nil {
		s.t.Fatal(err)
	}
	select {
	case happened = <-recorder.Events:
	default:
	}
	return writes == 1, happened
}

func TestApproved_IsWhatAnAgentOfAnAcceptedClusterAsksFor(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"the first certificate, with a bootstrap token": func(*scene) {},
		"by the bootstrap ServiceAccount": func(s *scene) {
			s.csr.Spec.Username = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"
		},
		"by a user who is named":               func(s *scene) { s.csr.Spec.Username, s.users = "joiner", []string{"joiner"} },
		"with the key of the cluster":          func(s *scene) { s.madeWith(s.keyHash()) },
		"again, with the key of the cluster":   func(s *scene) { s.madeWith(s.keyHash()); s.joined() },
		"the key in capital letters":           func(s *scene) { s.madeWith(strings.ToUpper(s.keyHash())) },
		"a renewal":                            func(s *scene) { s.renewing() },
		"a renewal with another key":           func(s *scene) { s.renewing(); s.madeWith("another") },
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

// Each of these asks for what it may not have. None is approved, and none is denied.
func TestAttack_NoForgedRequestIsApproved(t *testing.T) {
	sans := func(change func(*x509.CertificateRequest)) func(*scene) {
		return func(s *scene) { change(s.request) }
	}
	subject := func(change func(*pkix.Name)) func(*scene) {
		return func(s *scene) { change(&s.request.Subject) }
	}
	attribute := func(oid asn1.ObjectIdentifier, value any) func(*scene) {
		return subject(func(n *pkix.Name) {
			n.ExtraNames = append(n.ExtraNames, pkix.AttributeTypeAndValue{Type: oid, Value: value})
		})
	}
	for name, change := range map[string]func(*scene){
		// The subject.
		"another cluster's user":          subject(func(n *pkix.Name) { n.CommonName = "system:open-cluster-management:c2:agent1" }),
		"a user of a longer name":         subject(func(n *pkix.Name) { n.CommonName = "system:open-cluster-management:c1:a:b" }),
		"a user without an agent":         subject(func(n *pkix.Name) { n.CommonName = "system:open-cluster-management:c1:" }),
		"the cluster as the user":         subject(func(n *pkix.Name) { n.CommonName = "system:open-cluster-management:c1" }),
		"a prefix of another cluster":     subject(func(n *pkix.Name) { n.CommonName = "system:open-cluster-management:c11:agent1" }),
		"an admin":                        subject(func(n *pkix.Name) { n.CommonName = "kubernetes-admin" }),
		"no user":                         subject(func(n *pkix.Name) { n.CommonName = "" }),
		"system:masters":                  subject(func(n *pkix.Name) { n.Organization = []string{c1Group, allGroup, "system:masters"} }),
		"system:masters instead":          subject(func(n *pkix.Name) { n.Organization = []string{"system:masters", allGroup} }),
		"another cluster's group":         subject(func(n *pkix.Name) { n.Organization = []string{"system:open-cluster-management:c2", allGroup} }),
		"another cluster's group as well": subject(func(n *pkix.Name) { n.Organization = append(n.Organization, "system:open-cluster-management:c2") }),
		"a group less":                    subject(func(n *pkix.Name) { n.Organization = []string{c1Group} }),
		"no group":                        subject(func(n *pkix.Name) { n.Organization = nil }),
		"a group twice":                   subject(func(n *pkix.Name) { n.Organization = []string{c1Group, allGroup, allGroup} }),
		"the group of AWS":                subject(func(n *pkix.Name) { n.Organization = append(n.Organization, "open-cluster-management:c1") }),
		"an organizational unit":          subject(func(n *pkix.Name) { n.OrganizationalUnit = []string{"system:masters"} }),
		"a second user":                   attribute(asn1.ObjectIdentifier{2, 5, 4, 3}, "kubernetes-admin"),
		"a UID":                           attribute(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, "uid"),
		"a user that is no text":          attribute(asn1.ObjectIdentifier{2, 5, 4, 3}, 7),
		"a serial number":                 subject(func(n *pkix.Name) { n.SerialNumber = "1" }),
		// Alternative names.
		"a DNS name": sans(func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes.default.svc"} }),
		"an address": sans(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }),
		"an e-mail":  sans(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@example.com"} }),
		"a URI":      sans(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "admin"}} }),
		"another kind": sans(func(r *x509.CertificateRequest) {
			// otherName, which Go does not parse.
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: []byte{0x30, 0x06, 0xA0, 0x04, 0x06, 0x02, 0x2A, 0x03}}}
		}),
		"a certificate authority": sans(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xFF}}}
		}),
		// The rest of the request.
		"another signer":      func(s *scene) { s.csr.Spec.SignerName = "kubernetes.io/kube-apiserver-client-kubelet" },
		"a legacy signer":     func(s *scene) { s.csr.Spec.SignerName = "kubernetes.io/legacy-unknown" },
		"usable by a server":  func(s *scene) { s.csr.Spec.Usages = append(s.csr.Spec.Usages, "server auth") },
		"usable to sign":      func(s *scene) { s.csr.Spec.Usages = append(s.csr.Spec.Usages, "cert sign") },
		"usable for anything": func(s *scene) { s.csr.Spec.Usages = []certificatesv1.KeyUsage{"client auth", "any"} },
		"not usable":          func(s *scene) { s.csr.Spec.Usages = []certificatesv1.KeyUsage{"digital signature"} },
		"no label":            func(s *scene) { s.csr.Labels = nil },
		"another label":       func(s *scene) { s.csr.Labels["open-cluster-management.io/cluster-name"] = "c2" },
		"not a request": func(s *scene) {
			s.pem = []byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n")
		},
		"nothing": func(s *scene) { s.pem = []byte{} },
		"a signature of others": func(s *scene) {
			der, err := x509.CreateCertificateRequest(rand.Reader, s.request, s.key)
			if err != nil {
				t.Fatal(err)
			}
			der[len(der)-1] ^= 1
			s.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		},
		"two requests": func(s *scene) {
			der, err := x509.CreateCertificateRequest(rand.Reader, s.request, s.key)
			if err != nil {
				t.Fatal(err)
			}
			one := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
			s.pem = append(one, one...)
		},
		"the group of all as the cluster": func(s *scene) {
			s.cluster.Name, s.role.Name = "managed-clusters", "open-cluster-management:managedcluster:managed-clusters"
			s.csr.Labels["open-cluster-management.io/cluster-name"] = "managed-clusters"
			s.request.Subject = pkix.Name{CommonName: allGroup + ":agent1", Organization: []string{allGroup, allGroup}}
		},
		// Who asks.
		"somebody":                          func(s *scene) { s.csr.Spec.Username = "mallory" },
		"an admin who is not a bootstrap":   func(s *scene) { s.csr.Spec.Username, s.csr.Spec.Groups = "admin", []string{"system:masters"} },
		"another bootstrap ServiceAccount":  func(s *scene) { s.csr.Spec.Username = "system:serviceaccount:default:agent-registration-bootstrap" },
		"a name like a bootstrap token's":   func(s *scene) { s.csr.Spec.Username = "x-system:bootstrap:abcdef" },
		"another cluster's agent":           func(s *scene) { s.renewing(); s.csr.Spec.Username = "system:open-cluster-management:c2:agent1" },
		"another agent of the cluster":      func(s *scene) { s.renewing(); s.csr.Spec.Username = "system:open-cluster-management:c1:agent2" },
		"the user without the groups":       func(s *scene) { s.renewing(); s.csr.Spec.Groups = []string{"system:authenticated"} },
		"the user in groups of others":      func(s *scene) { s.renewing(); s.csr.Spec.Groups = append(s.csr.Spec.Groups, "system:masters") },
		"another key than the cluster's":    func(s *scene) { s.madeWith(strings.Repeat("0", 64)) },
		"another key, of a joined cluster":  func(s *scene) { s.madeWith(strings.Repeat("0", 64)); s.joined() },
		"a bootstrap token, after the join": func(s *scene) { s.joined() },
		// The cluster.
		"a cluster that is not there":    func(s *scene) { s.cluster = nil },
		"a cluster that is not accepted": func(s *scene) { s.cluster.Spec.HubAcceptsClient = false },
		"a renewal of a denied cluster":  func(s *scene) { s.renewing(); s.cluster.Spec.HubAcceptsClient = false },
		"a cluster that is being deleted": func(s *scene) {
			now := metav1.Now()
			s.cluster.DeletionTimestamp, s.cluster.Finalizers = &now, []string{"x/y"}
		},
		"an acceptance that is not finished": func(s *scene) { delete(s.role.Annotations, "registration.clusterhub.dev/granted") },
		"the acceptance of another cluster":  func(s *scene) { s.cluster.UID = "uid2" },
		"no acceptance":                      func(s *scene) { s.role = nil },
		"a cluster of another driver":        func(s *scene) { s.role.Annotations["registration.clusterhub.dev/driver"] = "awsirsa" },
		"a renewal of another driver":        func(s *scene) { s.renewing(); s.role.Annotations["registration.clusterhub.dev/driver"] = "awsirsa" },
		// What has been decided.
		"a request that is denied": func(s *scene) {
			s.csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: "Denied", Status: "True"}}
		},
		"a request that is approved": func(s *scene) {
			s.csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: "Approved", Status: "True"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			change(s)
			if approved, _ := s.decide(); approved {
				t.Error("approved")
			}
		})
	}
}

// Who waits for an admin learns why.
func TestLeft_SaysWhy(t *testing.T) {
	for want, change := range map[string]func(*scene){
		"the cluster has joined already":                                    func(s *scene) { s.joined() },
		"it is for another key than the one that the cluster was made with": func(s *scene) { s.madeWith("00") },
		`the user "mallory" is neither the agent`:                           func(s *scene) { s.csr.Spec.Username = "mallory" },
		`the cluster is accepted by the registration driver "awsirsa"`:      func(s *scene) { s.role.Annotations["registration.clusterhub.dev/driver"] = "awsirsa" },
		"it asks for alternative names":                                     func(s *scene) { s.request.DNSNames = []string{"a"} },
		`it asks for the usage "server auth"`:                               func(s *scene) { s.csr.Spec.Usages = append(s.csr.Spec.Usages, "server auth") },
		`it asks for the groups ["system:masters"]`:                         func(s *scene) { s.request.Subject.Organization = []string{"system:masters"} },
		`it asks for the user ["system:open-cluster-management:c2:agent1"]`: func(s *scene) { s.request.Subject.CommonName = "system:open-cluster-management:c2:agent1" },
		`it asks for the user ["` + strings.Repeat("long", 50):              func(s *scene) { s.request.Subject.CommonName = strings.Repeat("long", 500) },
	} {
		s := newScene(t)
		change(s)
		approved, happened := s.decide()
		if approved || !strings.HasPrefix(happened, "Warning ManagedClusterCSRPending The certificate request c1-abcde waits for an admin") ||
			!strings.Contains(happened, want) || len(happened) > 1100 {
			t.Errorf("approved %t, event %q, want %q", approved, happened, want)
		}
	}
	// What is nobody's business, and what may come right by itself, makes no noise.
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

func TestRequests_AreLookedAtAgainWhenTheirClusterIsAccepted(t *testing.T) {
	s := newScene(t)
	scheme := runtime.NewScheme()
	if err := certificatesv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decided, other := s.csr.DeepCopy(), s.csr.DeepCopy()
	decided.Name, decided.Status.Conditions = "decided", []certificatesv1.CertificateSigningRequestCondition{{Type: "Denied", Status: "True"}}
	other.Name, other.Labels = "other", map[string]string{"open-cluster-management.io/cluster-name": "c2"}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.csr, decided, other).
		WithIndex(&certificatesv1.CertificateSigningRequest{}, pendingIndex, pendingOf).Build()
	r := &Reconciler{client: c}
	s.role.Labels = map[string]string{"open-cluster-management.io/cluster-name": "c1"}
	for _, obj := range []client.Object{s.cluster, s.role} {
		got := r.requestsOf(t.Context(), obj)
		if len(got) != 1 || got[0].Name != "c1-abcde" {
			t.Errorf("%T requests %v", obj, got)
		}
	}
}
