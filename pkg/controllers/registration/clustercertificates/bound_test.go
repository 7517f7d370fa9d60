// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercertificates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// flood creates requests of a user that cannot be approved, as a user who wants to fill etcd does.
func (h *hub) flood(n int, user string, change func(i int, request *certificatesv1.CertificateSigningRequest)) {
	h.Helper()
	for i := range n {
		request := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("flood-%03d", i), UID: types.UID(fmt.Sprint("flood", i)), CreationTimestamp: metav1.NewTime(h.now),
				Labels: map[string]string{registration.ClusterNameLabel: "c1"}},
			Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: registration.SignerName, Username: user, Request: []byte("none")},
		}
		change(i, request)
		h.create(request)
		h.later()
	}
}

// names returns the names of all requests, in order.
func (h *hub) names() (names []string) {
	h.Helper()
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := h.client.List(h.Context(), list); err != nil {
		h.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func TestBound_LimitsPendingPerRequester(t *testing.T) {
	const flood = maxUnknown + maxPending
	ofAgent := func(_ int, r *certificatesv1.CertificateSigningRequest) {
		r.Spec.Groups = []string{c1Group, allGroup, "system:authenticated"}
	}
	for name, c := range map[string]struct {
		user   string
		change func(i int, r *certificatesv1.CertificateSigningRequest)
		want   int
	}{
		"for a cluster":         {bootstrap, func(int, *certificatesv1.CertificateSigningRequest) {}, maxPending},
		"by the ServiceAccount": {registration.BootstrapServiceAccount, func(int, *certificatesv1.CertificateSigningRequest) {}, maxPending},
		"for clusters of no hub": {bootstrap, func(i int, r *certificatesv1.CertificateSigningRequest) {
			r.Labels[registration.ClusterNameLabel] = fmt.Sprint("x", i)
		}, maxUnknown},
		"by an agent": {c1Agent, ofAgent, maxPending},
		"by an agent, for others": {c1Agent, func(i int, r *certificatesv1.CertificateSigningRequest) {
			ofAgent(i, r)
			r.Labels[registration.ClusterNameLabel] = fmt.Sprint("x", i)
		}, maxPending},
		// Add-ons have signers of their own.
		"by an agent, for other signers": {c1Agent, func(i int, r *certificatesv1.CertificateSigningRequest) {
			ofAgent(i, r)
			r.Spec.SignerName = fmt.Sprint("example.com/signer-", i%7)
		}, maxPending},
		"by a person, for another signer": {"alice", func(_ int, r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = "example.com/signer"
		}, flood},
		// Requests that are not of a cluster's agent, or were decided, stay.
		"by a person": {"alice", func(int, *certificatesv1.CertificateSigningRequest) {}, flood},
		"by a node":   {"system:node:a", func(int, *certificatesv1.CertificateSigningRequest) {}, flood},
		"for another signer": {bootstrap, func(_ int, r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = "kubernetes.io/kube-apiserver-client-kubelet"
		}, flood},
		"that name no cluster": {bootstrap, func(_ int, r *certificatesv1.CertificateSigningRequest) { r.Labels = nil }, flood},
		"of which half is decided": {bootstrap, func(i int, r *certificatesv1.CertificateSigningRequest) {
			if i%2 == 0 {
				r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: "Denied", Status: "True"}}
			}
		}, flood/2 + maxPending},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.flood(flood, c.user, c.change)
			for _, name := range h.names() {
				h.look(name)
			}
			if got := h.names(); len(got) != c.want || got[len(got)-1] != fmt.Sprintf("flood-%03d", flood-1) {
				t.Errorf("%d requests are there, up to %s; want %d with the newest", len(got), got[len(got)-1], c.want)
			}
		})
	}
}

// Names of requests are random, and many are created in a second.
func TestCompareAge(t *testing.T) {
	request := func(second int64, version, name string) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(second, 0), ResourceVersion: version, Name: name}}
	}
	want := []*certificatesv1.CertificateSigningRequest{request(1, "12", "z"), request(2, "9", "y"), request(2, "10", "x"), request(2, "10", "z"), request(3, "8", "a")}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareAge)
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// A flood of requests for other signers deletes none that the agent has for the registration's signer, and vice versa.
func TestBound_SignersAreSeparate(t *testing.T) {
	h := newHub(t)
	h.flood(2*maxPending, c1Agent, func(i int, r *certificatesv1.CertificateSigningRequest) {
		r.Spec.Groups = []string{c1Group, allGroup, "system:authenticated"}
		if i >= maxPending {
			r.Spec.SignerName = "example.com/signer"
		}
	})
	for _, name := range h.names() {
		h.look(name)
	}
	if got := h.names(); len(got) != 2*maxPending {
		t.Errorf("%d requests are there, want all of %d", len(got), 2*maxPending)
	}
}

// A flood deletes no request that prevents the approval of an attacker's key: neither that of the right agent while the attacker's stays, nor that
// of another user.
func TestBound_FloodDoesNotSelectKey(t *testing.T) {
	for _, user := range []string{bootstrap, "system:bootstrap:123456"} {
		h := newHub(t)
		h.ask("agent", "agent", bootstrap)
		for i := range 3 * maxPending {
			h.ask(fmt.Sprintf("eve-%02d", i), "eve", user)
		}
		h.flood(3*maxPending, user, func(int, *certificatesv1.CertificateSigningRequest) {})
		h.settle()
		if names := h.names(); !slices.Contains(names, "agent") || !slices.Contains(names, "eve-00") || len(names) > maxPending+1 {
			t.Errorf("left are %v", names)
		}
		h.accept(nil)
		h.want()
		if !strings.Contains(h.waits(), "several keys") {
			t.Errorf("the cluster says %q", h.waits())
		}
	}
}

// Of many keys more than one stays, so that only an admin decides.
func TestBound_ManyKeysRemainAmbiguous(t *testing.T) {
	h := newHub(t)
	h.ask("agent", "agent", bootstrap)
	for i := range 2 * maxPending {
		h.ask(fmt.Sprintf("eve-%02d", i), fmt.Sprint("eve", i), bootstrap)
	}
	h.settle()
	if names := h.names(); len(names) != maxPending {
		t.Errorf("left are %v", names)
	}
	h.accept(nil)
	h.want()
	// The agent creates a new request when its request is gone.
	h.ask("again", "agent", bootstrap)
	h.want()
}

// A request that was decided after it was read stays.
func TestBound_DeletesOnlyReadVersion(t *testing.T) {
	h := newHub(t)
	h.flood(maxPending+1, bootstrap, func(int, *certificatesv1.CertificateSigningRequest) {})
	request := &certificatesv1.CertificateSigningRequest{}
	h.get("flood-000", request)
	h.conclude("flood-000", certificatesv1.CertificateApproved)
	h.process.client = stale{h.client, request}
	h.look("flood-000")
	if names := h.names(); len(names) != maxPending+1 {
		t.Errorf("left are %v", names)
	}
}

// stale is a cache that has not seen the decision on a request.
type stale struct {
	client.Client
	request *certificatesv1.CertificateSigningRequest
}

func (s stale) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if request, ok := obj.(*certificatesv1.CertificateSigningRequest); ok && key.Name == s.request.Name {
		s.request.DeepCopyInto(request)
		return nil
	}
	return s.Client.Get(ctx, key, obj, options...)
}

func (s stale) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := s.Client.List(ctx, list, options...)
	if requests, ok := list.(*certificatesv1.CertificateSigningRequestList); ok {
		requests.Items = append(requests.Items, *s.request)
	}
	return err
}
