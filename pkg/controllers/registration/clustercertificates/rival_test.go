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
	"errors"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

const bootstrap = "system:bootstrap:abcdef"

// began is the start of a test, long enough ago that everything in it is in the past.
var began = time.Now().Add(-time.Hour).Truncate(time.Second)

// hub is a hub with a cluster c1, and a process that approves requests.
type hub struct {
	*testing.T
	client  client.Client
	process *Reconciler
	said    *events.FakeRecorder
	// ends has the process end before its next approval.
	ends bool
	now  time.Time
	keys map[string]*ecdsa.PrivateKey
}

var errEnded = errors.New("the process has ended")

func newHub(t *testing.T) *hub {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clusterv1.AddToScheme, certificatesv1.AddToScheme, corev1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := &hub{T: t, said: events.NewFakeRecorder(10000), now: began, keys: map[string]*ecdsa.PrivateKey{}}
	h.client = fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&clusterv1.ManagedCluster{}).
		WithIndex(&certificatesv1.CertificateSigningRequest{}, openIndex, openOf).
		WithIndex(&certificatesv1.CertificateSigningRequest{}, pendingIndex, pendingOf).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, _ ...client.SubResourceUpdateOption) error {
				if h.ends && sub == "approval" {
					h.ends = false
					return errEnded
				}
				return c.Status().Update(ctx, obj)
			},
		}).Build()
	h.process = &Reconciler{Options: Options{MaxLifetime: 365 * 24 * time.Hour}, client: h.client, live: h.client, recorder: h.said}
	h.later()
	h.make("uid1")
	return h
}

// make creates the cluster, in the place of an existing one.
func (h *hub) make(uid types.UID) {
	h.Helper()
	if err := client.IgnoreNotFound(h.client.Delete(h.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}})); err != nil {
		h.Fatal(err)
	}
	h.create(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: uid, CreationTimestamp: metav1.NewTime(h.now)}})
	h.later()
}

func (h *hub) create(obj client.Object) {
	h.Helper()
	if err := h.client.Create(h.Context(), obj); err != nil {
		h.Fatal(err)
	}
}

func (h *hub) later() { h.now = h.now.Add(10 * time.Second) }

// accept does what an admin, hub-apiserver and pkg/controllers/registration/clusteracceptance do.
func (h *hub) accept(with func(*record.Record)) {
	h.Helper()
	c := &clusterv1.ManagedCluster{}
	h.get("c1", c)
	c.Spec.HubAcceptsClient = true
	c.Annotations = map[string]string{registration.AnnotationAcceptedAt: h.now.UTC().Format(time.RFC3339Nano)}
	if err := h.client.Update(h.Context(), c); err != nil {
		h.Fatal(err)
	}
	accepted := record.Record{Driver: "csr", UID: c.UID, Granted: began}
	if with != nil {
		with(&accepted)
	}
	kept := record.New("c1")
	accepted.Write(kept)
	h.create(kept)
	h.later()
}

// ask creates a request. The same who has the same key.
func (h *hub) ask(name, who, user string) {
	h.Helper()
	key, ok := h.keys[who]
	if !ok {
		made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			h.Fatal(err)
		}
		key, h.keys[who] = made, made
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: c1Agent, Organization: []string{c1Group, allGroup}}}, key)
	if err != nil {
		h.Fatal(err)
	}
	groups := []string{"system:bootstrappers", "system:authenticated"}
	if user == c1Agent {
		groups = []string{c1Group, allGroup, "system:authenticated"}
	}
	h.create(&certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(h.now),
			Labels: map[string]string{registration.ClusterNameLabel: "c1"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: registration.SignerName, Usages: []certificatesv1.KeyUsage{"client auth"}, Username: user, Groups: groups,
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	})
	h.later()
}

func (h *hub) get(name string, obj client.Object) {
	h.Helper()
	if err := h.client.Get(h.Context(), client.ObjectKey{Name: name}, obj); err != nil {
		h.Fatal(err)
	}
}

// conclude decides on a request as an admin does, or deletes it as the garbage collector does.
func (h *hub) conclude(name string, with certificatesv1.RequestConditionType) {
	h.Helper()
	request := &certificatesv1.CertificateSigningRequest{}
	h.get(name, request)
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: with, Status: "True", Reason: "KubectlApprove", LastTransitionTime: metav1.NewTime(h.now)})
	if err := h.client.Status().Update(h.Context(), request); err != nil {
		h.Fatal(err)
	}
	h.later()
}

func (h *hub) collect(name string) {
	h.Helper()
	if err := h.client.Delete(h.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		h.Fatal(err)
	}
}

// settle has the process reconcile all requests, in both orders, until that changes nothing.
func (h *hub) settle() {
	h.Helper()
	for range 3 {
		list := &certificatesv1.CertificateSigningRequestList{}
		if err := h.client.List(h.Context(), list); err != nil {
			h.Fatal(err)
		}
		for i := range list.Items {
			h.look(list.Items[i].Name)
		}
		for i := range list.Items {
			h.look(list.Items[len(list.Items)-1-i].Name)
		}
	}
	if _, err := (waiting{h.process}).Reconcile(h.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}}); err != nil {
		h.Fatal(err)
	}
}

func (h *hub) look(name string) {
	h.Helper()
	_, err := h.process.Reconcile(h.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	if err != nil && !errors.Is(err, errEnded) && !apierrors.IsConflict(err) {
		h.Fatal(err)
	}
}

// want checks that exactly these requests are approved.
func (h *hub) want(approved ...string) {
	h.Helper()
	h.settle()
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := h.client.List(h.Context(), list); err != nil {
		h.Fatal(err)
	}
	var got []string
	for i := range list.Items {
		if agentcsr.Approval(&list.Items[i]) != nil {
			got = append(got, list.Items[i].Name)
		}
	}
	if strings.Join(got, " ") != strings.Join(approved, " ") {
		h.Errorf("approved are %q, want %q", got, approved)
	}
}

// wantPinned checks whose key is pinned.
func (h *hub) wantPinned(who string) {
	h.Helper()
	kept, err := record.Get(h.Context(), h.client, "c1")
	if err != nil {
		h.Fatal(err)
	}
	if got, want := record.Of(kept).Key, h.keyOf(who); got != want {
		h.Errorf("pinned is %q, want that of %s: %q", got, who, want)
	}
}

// keyOf returns the hash of the key of a requester, or "".
func (h *hub) keyOf(who string) string {
	h.Helper()
	key := h.keys[who]
	if key == nil {
		return ""
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		h.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// waits returns the message of the cluster about requests that wait for an admin.
func (h *hub) waits() string {
	h.Helper()
	c := &clusterv1.ManagedCluster{}
	h.get("c1", c)
	if condition := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionRequestWaits); condition != nil && condition.Status == "True" {
		return condition.Message
	}
	return ""
}
