// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/cert"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	clusterfake "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/fake"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// newCaptured returns the options of a command, and what it prints to stderr.
func newCaptured() (*kit.Options, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &kit.Options{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: out}}, out
}

const tokenUser = "system:bootstrap:abcdef"

func newCSR(t *testing.T, name, user string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return newCSRFor(t, name, user, pkix.Name{CommonName: registration.ClusterUser("c1", "agent"),
		Organization: []string{registration.ClusterGroup("c1"), registration.ManagedClustersGroup}})
}

func newCSRFor(t *testing.T, name, user string, subject pkix.Name) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := cert.MakeCSRFromTemplate(key, &x509.CertificateRequest{Subject: subject})
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{registration.ClusterNameLabel: "c1"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: request, SignerName: registration.SignerName, Username: user,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}},
	}
}

func keyOf(t *testing.T, request *certificatesv1.CertificateSigningRequest) string {
	t.Helper()
	parsed, err := agentcsr.Parse(request)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.KeySHA256
}

// TestAccept_ShowsKeysAndChoosesNone verifies that accept shows the key that is accepted, and that an admin must select one of
// several keys.
func TestAccept_ShowsKeysAndChoosesNone(t *testing.T) {
	agent, rival := newCSR(t, "agent", tokenUser), newCSR(t, "rival", tokenUser)
	forged := newCSRFor(t, "forged", tokenUser, pkix.Name{CommonName: "system:kube-controller-manager"})
	for name, test := range map[string]struct {
		rivals []*certificatesv1.CertificateSigningRequest
		change func(*acceptOptions, *clusterv1.ManagedCluster)
		// fails is the expected error; if it is empty, the cluster is accepted.
		fails, approved string
	}{
		"one": {},
		"two keys": {rivals: []*certificatesv1.CertificateSigningRequest{rival},
			fails: "agent, requested by " + tokenUser + ", for the key with SHA-256 " + keyOf(t, agent)},
		"two keys, and the cluster was made with one": {rivals: []*certificatesv1.CertificateSigningRequest{rival},
			change: func(_ *acceptOptions, c *clusterv1.ManagedCluster) {
				c.Annotations = map[string]string{registration.AnnotationAgentKey: strings.ToUpper(keyOf(t, agent))}
			}},
		"two keys, one is chosen": {rivals: []*certificatesv1.CertificateSigningRequest{rival},
			change: func(o *acceptOptions, _ *clusterv1.ManagedCluster) { o.csr = "agent" }, approved: "agent"},
		"the cluster was made with another key": {
			change: func(_ *acceptOptions, c *clusterv1.ManagedCluster) {
				c.Annotations = map[string]string{registration.AnnotationAgentKey: keyOf(t, rival)}
			}, fails: "c1 was created with the key with SHA-256 " + keyOf(t, rival)},
		"the cluster was made with another key, one is chosen": {rivals: []*certificatesv1.CertificateSigningRequest{rival},
			change: func(o *acceptOptions, c *clusterv1.ManagedCluster) {
				o.csr, c.Annotations = "agent", map[string]string{registration.AnnotationAgentKey: keyOf(t, rival)}
			}, approved: "agent"},
		"another than those who are named": {rivals: []*certificatesv1.CertificateSigningRequest{newCSR(t, "other", "system:bootstrap:other1")},
			change: func(o *acceptOptions, c *clusterv1.ManagedCluster) {
				o.requesters, c.Annotations = []string{tokenUser}, map[string]string{registration.AnnotationAgentKey: keyOf(t, agent)}
			}},
		"requesters of a cluster that is accepted already": {change: func(o *acceptOptions, c *clusterv1.ManagedCluster) {
			o.requesters, c.Spec.HubAcceptsClient = []string{tokenUser}, true
		}, fails: "already accepted"},
		"one that is for another identity beside it": {rivals: []*certificatesv1.CertificateSigningRequest{forged}},
		"one that is for another identity is chosen": {rivals: []*certificatesv1.CertificateSigningRequest{forged},
			change: func(o *acceptOptions, _ *clusterv1.ManagedCluster) { o.csr = "forged" }, fails: "certificate request forged, requested by " +
				tokenUser + ", is not a request of an agent"},
		"one that is not there": {change: func(o *acceptOptions, _ *clusterv1.ManagedCluster) { o.csr = "other" },
			fails: "managed cluster c1 has no pending certificate request other"},
		"of a cluster that is accepted already": {change: func(o *acceptOptions, c *clusterv1.ManagedCluster) {
			o.csr, c.Spec.HubAcceptsClient = "agent", true
		}, approved: "agent"},
		"of a stranger": {rivals: []*certificatesv1.CertificateSigningRequest{newCSR(t, "stranger", "eve")}, fails: "eve"},
		"requesters of a cluster that was made with an ARN": {change: func(o *acceptOptions, c *clusterv1.ManagedCluster) {
			o.requesters, c.Annotations = []string{tokenUser}, map[string]string{registration.AnnotationManagedClusterARN: "arn:aws:eks:a"}
		}, fails: "registers by AWS IAM"},
		"of those who are named": {change: func(o *acceptOptions, _ *clusterv1.ManagedCluster) {
			o.requesters = []string{tokenUser, "joiner"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			opts, out := newCaptured()
			o := &acceptOptions{Options: opts}
			c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "uid1"}}
			if test.change != nil {
				test.change(o, c)
			}
			h := &kit.HubClient{Kube: fake.NewClientset(agent.DeepCopy()), Clusters: clusterfake.NewClientset(c)}
			for _, rival := range test.rivals {
				if _, err := h.Kube.CertificatesV1().CertificateSigningRequests().Create(t.Context(), rival.DeepCopy(), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := o.accept(t.Context(), h, "c1")
			after, getErr := h.Clusters.ClusterV1().ManagedClusters().Get(t.Context(), "c1", metav1.GetOptions{})
			if getErr != nil {
				t.Fatal(getErr)
			}
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) || after.Spec.HubAcceptsClient != c.Spec.HubAcceptsClient {
					t.Errorf("accepted %t, error %v, want %q", after.Spec.HubAcceptsClient, err, test.fails)
				}
				return
			}
			if err != nil || !after.Spec.HubAcceptsClient || after.Annotations[registration.AnnotationRequesters] != strings.Join(o.requesters, ",") {
				t.Errorf("accepted %t, annotations %v, error %v", after.Spec.HubAcceptsClient, after.Annotations, err)
			}
			if got := after.Annotations[registration.AnnotationAgentKey]; !c.Spec.HubAcceptsClient && got != keyOf(t, agent) {
				t.Errorf("it is accepted with the key %q, and what was looked at is %q", got, keyOf(t, agent))
			}
			if !strings.Contains(out.String(), "certificate request agent, requested by "+tokenUser+", for the key with SHA-256 "+keyOf(t, agent)) {
				t.Errorf("it says %q", out)
			}
			list, err := h.Kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				if approved := len(list.Items[i].Status.Conditions) > 0; approved != (list.Items[i].Name == test.approved) {
					t.Errorf("%s: approved %t", list.Items[i].Name, approved)
				}
			}
		})
	}
}

// TestAccept_EscapesControlCharacters: a client with a bootstrap token writes the cluster that an admin reviews, and other users
// choose the name of the requester. None of this text can overwrite the lines that show which key is accepted, or add such a line.
func TestAccept_EscapesControlCharacters(t *testing.T) {
	const forging = "a\x1b[1A\x1b[2K\nmanaged cluster c1: certificate request agent, requested by you\u202e\u009b"
	for name, test := range map[string]struct {
		annotation, requester, condition string
	}{
		"the key": {annotation: registration.AnnotationAgentKey}, "the ARN": {annotation: registration.AnnotationManagedClusterARN},
		"the user": {requester: forging}, "the condition": {condition: forging},
	} {
		t.Run(name, func(t *testing.T) {
			opts, errOut := newCaptured()
			o := &acceptOptions{Options: opts, csr: "agent"}
			c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "uid1"}}
			if test.annotation != "" {
				o.csr, c.Annotations = "", map[string]string{test.annotation: forging}
			}
			if test.condition != "" {
				o.csr = ""
				c.Status.Conditions = []metav1.Condition{{Type: registration.ConditionRequestWaits, Status: metav1.ConditionTrue, Message: forging}}
			}
			h := &kit.HubClient{Kube: fake.NewClientset(newCSR(t, "agent", cmp.Or(test.requester, tokenUser)),
				newCSRFor(t, "forged", tokenUser, pkix.Name{CommonName: "a", OrganizationalUnit: []string{forging}})),
				Clusters: clusterfake.NewClientset(c)}
			a, err := o.accept(t.Context(), h, "c1")
			text := errOut.String()
			if a != nil {
				text += a.String()
			}
			if err != nil {
				text += err.Error()
			}
			if !strings.Contains(text, `[1A`) || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }) ||
				strings.Contains(text, "\nmanaged cluster c1: certificate request agent, requested by you") {
				t.Errorf("it says %q", text)
			}
		})
	}
}

func TestAccept_LimitsRequesters(t *testing.T) {
	opts, _ := newCaptured()
	o := &acceptOptions{Options: opts, clusters: []string{"c1"}, requesters: slices.Repeat([]string{tokenUser}, 100)}
	if err := o.run(t.Context()); err == nil || !strings.Contains(err.Error(), "--requesters: ") {
		t.Errorf("got %v", err)
	}
}
