// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/retry"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// request is a certificate request that waits.
type request struct {
	Name      string `json:"name"`
	Requester string `json:"requester"`
	// Key is the SHA-256 of its public key, in hex, empty for a request that cannot be read.
	Key string `json:"keySHA256,omitempty"`
}

func (r request) String() string {
	return fmt.Sprintf("%s, asked for by %s, for the key with SHA-256 %s", r.Name, r.Requester, orNone(r.Key))
}

func requesters(requests []request) []string {
	users := sets.New[string]()
	for _, r := range requests {
		users.Insert(r.Requester)
	}
	return sets.List(users)
}

// requestsOf are the requests of a cluster that wait. Of a cluster that is to be accepted, it refuses what an admin has to
// look at first: a user who does not come by a bootstrap token and is not expected, and several keys.
func (o *acceptOptions) requestsOf(ctx context.Context, h *hub, cluster *clusterv1.ManagedCluster, check bool) ([]request, error) {
	pending, err := h.pendingRequests(ctx, cluster.Name)
	if err != nil {
		if o.csr == "" && (o.skipCheck || !check) {
			return nil, nil
		}
		return nil, fmt.Errorf("who asks for managed cluster %s: %w (--skip-approve-check accepts it without knowing)",
			cluster.Name, err)
	}
	var requests []request
	for i := range pending {
		requests = append(requests, request{pending[i].Name, pending[i].Spec.Username, keyOf(&pending[i])})
	}
	if o.csr != "" {
		if !slices.ContainsFunc(requests, func(r request) bool { return r.Name == o.csr }) {
			return nil, fmt.Errorf("no certificate request %s of managed cluster %s waits: kubectl get csr -l %s=%[2]s shows those "+
				"that there are", o.csr, cluster.Name, registration.ClusterNameLabel)
		}
		return requests, nil
	}
	if !check || o.skipCheck {
		return requests, nil
	}
	for _, r := range requests {
		if !isBootstrap(r.Requester) && !slices.Contains(o.requesters, r.Requester) {
			return nil, fmt.Errorf("certificate request %s of managed cluster %s comes from %q, who does not come by a bootstrap "+
				"token: --requesters=%[3]s accepts the cluster all the same", r.Name, cluster.Name, r.Requester)
		}
	}
	return requests, checkKeys(cluster, requests)
}

// checkKeys refuses requests for several keys, unless the cluster was made with one of them: the hub takes that. If it was made
// with another one, the hub would approve none of those that an admin sees.
func checkKeys(cluster *clusterv1.ManagedCluster, requests []request) error {
	keys, text := keysOf(requests)
	made := madeWith(cluster)
	switch {
	case keys.Has(made) || len(keys) == 0 || made == "" && len(keys) == 1:
		return nil
	case made != "":
		return fmt.Errorf("managed cluster %s was made with the key with SHA-256 %s, and its certificate is asked for with another: "+
			"if one of these is its agent's, --csr names it: %s", cluster.Name, made, text)
	}
	return fmt.Errorf("certificates of managed cluster %s are asked for with several keys, and one of them only is its agent's: "+
		"--csr names the right one of %s", cluster.Name, text)
}

// keyOf is the key that an admin has looked at and accepts the cluster with: that of --csr, or the only one. It is empty if
// that cannot be said.
func (o *acceptOptions) keyOf(cluster *clusterv1.ManagedCluster, requests []request) string {
	considered := slices.DeleteFunc(slices.Clone(requests), func(r request) bool {
		if o.csr != "" {
			return r.Name != o.csr
		}
		return o.skipCheck || len(o.requesters) > 0 && !slices.Contains(o.requesters, r.Requester)
	})
	keys, _ := keysOf(considered)
	if made := madeWith(cluster); o.csr == "" && keys.Has(made) {
		return made
	}
	if len(keys) != 1 {
		return ""
	}
	return keys.UnsortedList()[0]
}

func keysOf(requests []request) (keys sets.Set[string], text string) {
	keys = sets.New[string]()
	all := make([]string, len(requests))
	for i, r := range requests {
		all[i] = r.String()
		if r.Key != "" {
			keys.Insert(r.Key)
		}
	}
	return keys, strings.Join(all, "; ")
}

// madeWith is the key that the cluster was made with, empty if it names none.
func madeWith(cluster *clusterv1.ManagedCluster) string {
	return strings.ToLower(cluster.Annotations[registration.AnnotationAgentKey])
}

// pendingRequests are those for certificates of a cluster that nobody has decided on.
func (h *hub) pendingRequests(ctx context.Context, cluster string) ([]certificatesv1.CertificateSigningRequest, error) {
	list, err := h.kube.CertificatesV1().CertificateSigningRequests().List(ctx,
		metav1.ListOptions{LabelSelector: registration.ClusterNameLabel + "=" + cluster})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(r certificatesv1.CertificateSigningRequest) bool {
		return r.Spec.SignerName != registration.SignerName || !isPending(&r)
	}), nil
}

// approve does what kubectl certificate approve does. The hub pins the key of a request that an admin approves.
func (h *hub) approve(ctx context.Context, name string) error {
	csrs := h.kube.CertificatesV1().CertificateSigningRequests()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		csr, err := csrs.Get(ctx, name, metav1.GetOptions{})
		if err != nil || !isPending(csr) {
			return err // the hub was faster
		}
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubectlHubAccept",
			Message: "An admin has approved it by kubectl hub accept --csr",
		})
		_, err = csrs.UpdateApproval(ctx, name, csr, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("approving certificate request %s: %w", name, err)
	}
	return nil
}

// leftToAdmin says why the hub does not approve the requests of an accepted cluster by itself, or nothing.
func (h *hub) leftToAdmin(ctx context.Context, cluster *clusterv1.ManagedCluster) string {
	if arnOf(cluster) != "" {
		return ""
	}
	requests, err := h.pendingRequests(ctx, cluster.Name)
	if err != nil {
		return "" // who may not see them is not told of them
	}
	why := ""
	for i := range requests {
		request, key := &requests[i], cluster.Annotations[registration.AnnotationAgentKey]
		switch {
		case !isBootstrap(request.Spec.Username):
			why = "comes from " + request.Spec.Username
		case key != "" && keyOf(request) != strings.ToLower(key):
			why = "is of another agent than the one that made the cluster"
		default:
			return said(cluster)
		}
		why = fmt.Sprintf("certificate request %s %s, so the hub leaves it to you: if it is right, kubectl certificate approve %[1]s",
			request.Name, why)
	}
	return why
}

// said is what the hub says of a request that it leaves to an admin.
func said(cluster *clusterv1.ManagedCluster) string {
	if c := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionRequestWaits); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// keyOf is the hash of a request's key, as registration.AnnotationAgentKey has it.
func keyOf(request *certificatesv1.CertificateSigningRequest) string {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return ""
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

func isPending(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Certificate) == 0 && len(request.Status.Conditions) == 0
}

func isBootstrap(user string) bool {
	return strings.HasPrefix(user, registration.BootstrapUserPrefix) || user == registration.BootstrapServiceAccount
}
