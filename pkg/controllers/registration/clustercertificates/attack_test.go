// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercertificates

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each of these requests asks for something that is not allowed. None is approved, and none is denied.
func TestAttack_ForgedRequestIsNotApproved(t *testing.T) {
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
		"a user that moves the cursor":    subject(func(n *pkix.Name) { n.CommonName = "system:open-cluster-management:c1:a\x1b[2K" }),
		"a user that turns the direction": subject(func(n *pkix.Name) { n.CommonName = "system:open-cluster-management:c1:a\u202e" }),
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
		"another signer":          func(s *scene) { s.csr.Spec.SignerName = "kubernetes.io/kube-apiserver-client-kubelet" },
		"a legacy signer":         func(s *scene) { s.csr.Spec.SignerName = "kubernetes.io/legacy-unknown" },
		"usable by a server":      func(s *scene) { s.csr.Spec.Usages = append(s.csr.Spec.Usages, "server auth") },
		"usable to sign":          func(s *scene) { s.csr.Spec.Usages = append(s.csr.Spec.Usages, "cert sign") },
		"usable for anything":     func(s *scene) { s.csr.Spec.Usages = []certificatesv1.KeyUsage{"client auth", "any"} },
		"not usable":              func(s *scene) { s.csr.Spec.Usages = []certificatesv1.KeyUsage{"digital signature"} },
		"no label":                func(s *scene) { s.csr.Labels = nil },
		"another label":           func(s *scene) { s.csr.Labels["open-cluster-management.io/cluster-name"] = "c2" },
		"for too long":            func(s *scene) { s.csr.Spec.ExpirationSeconds = new(int32(365*24*60*60 + 1)) },
		"for as long as there is": func(s *scene) { s.csr.Spec.ExpirationSeconds = new(int32(1<<31 - 1)) },
		"a renewal for too long": func(s *scene) {
			s.renewing()
			s.csr.Spec.ExpirationSeconds = new(int32(365*24*60*60 + 1))
		},
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
			s.cluster.Name, s.kept.Name = "managed-clusters", "managed-clusters"
			s.csr.Labels["open-cluster-management.io/cluster-name"] = "managed-clusters"
			s.request.Subject = pkix.Name{CommonName: allGroup + ":agent1", Organization: []string{allGroup, allGroup}}
		},
		// The requester.
		"somebody":                          func(s *scene) { s.csr.Spec.Username = "mallory" },
		"an admin who is not a bootstrap":   func(s *scene) { s.csr.Spec.Username, s.csr.Spec.Groups = "admin", []string{"system:masters"} },
		"another bootstrap ServiceAccount":  func(s *scene) { s.csr.Spec.Username = "system:serviceaccount:default:agent-registration-bootstrap" },
		"a name like a bootstrap token's":   func(s *scene) { s.csr.Spec.Username = "x-system:bootstrap:abcdef" },
		"another cluster's agent":           func(s *scene) { s.renewing(); s.csr.Spec.Username = "system:open-cluster-management:c2:agent1" },
		"another agent of the cluster":      func(s *scene) { s.renewing(); s.csr.Spec.Username = "system:open-cluster-management:c1:agent2" },
		"the user without the groups":       func(s *scene) { s.renewing(); s.csr.Spec.Groups = []string{"system:authenticated"} },
		"the user in groups of others":      func(s *scene) { s.renewing(); s.csr.Spec.Groups = append(s.csr.Spec.Groups, "system:masters") },
		"another key than the cluster's":    func(s *scene) { s.pinned(strings.Repeat("0", 64)) },
		"another key, of a joined cluster":  func(s *scene) { s.pinned(strings.Repeat("0", 64)); s.joined() },
		"a bootstrap token, after the join": func(s *scene) { s.joined() },
		"a key that the cluster names only now": func(s *scene) {
			s.pinned(strings.Repeat("0", 64))
			s.cluster.Annotations["registration.clusterhub.dev/agent-key-sha256"] = s.keyHash()
		},
		"a requester that the cluster names only now": func(s *scene) {
			s.unasked()
			s.cluster.Annotations["registration.clusterhub.dev/requesters"] = s.csr.Spec.Username
		},
		"another requester than accept named": func(s *scene) {
			s.kept.Data["requesters"] = "system:bootstrap:other"
		},
		"somebody whom accept named": func(s *scene) {
			s.csr.Spec.Username = "mallory"
			s.kept.Data["requesters"] = "mallory"
		},
		"who comes after the acceptance":            func(s *scene) { s.unasked() },
		"for a cluster accepted from the start":     func(s *scene) { delete(s.cluster.Annotations, "registration.clusterhub.dev/accepted-at") },
		"any key, when several were asked for once": func(s *scene) { s.pinned("undecided") },
		// The cluster.
		"a cluster that is not there":    func(s *scene) { s.cluster = nil },
		"a cluster that is not accepted": func(s *scene) { s.cluster.Spec.HubAcceptsClient = false },
		"a renewal of a denied cluster":  func(s *scene) { s.renewing(); s.cluster.Spec.HubAcceptsClient = false },
		"a cluster that is being deleted": func(s *scene) {
			now := metav1.Now()
			s.cluster.DeletionTimestamp, s.cluster.Finalizers = &now, []string{"x/y"}
		},
		"an acceptance that is not finished": func(s *scene) { delete(s.kept.Data, "granted") },
		"the acceptance of another cluster":  func(s *scene) { s.cluster.UID = "uid2" },
		"no acceptance":                      func(s *scene) { s.kept = nil },
		"a cluster of another driver":        func(s *scene) { s.kept.Data["driver"] = "awsirsa" },
		"a renewal of another driver":        func(s *scene) { s.renewing(); s.kept.Data["driver"] = "awsirsa" },
		// The decision.
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
