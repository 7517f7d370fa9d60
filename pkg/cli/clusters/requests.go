// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
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
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// request is a pending certificate request.
type request struct {
	Name      string `json:"name"`
	Requester string `json:"requester"`
	// Key is the SHA-256 of its public key, in hex.
	Key string `json:"keySHA256,omitempty"`
	// NotAnAgents is the reason why the request is not for an agent of the cluster, in spite of its label. If it is set, Key is empty.
	NotAnAgents string `json:"notAnAgents,omitempty"`

	asker agentcsr.Asker
}

func (r request) String() string {
	if r.NotAnAgents != "" {
		return fmt.Sprintf("%s, requested by %s, is not a request of an agent: %s", r.Name, command.Printable(r.Requester), command.Printable(r.NotAnAgents))
	}
	return fmt.Sprintf("%s, requested by %s, for the key with SHA-256 %s", r.Name, command.Printable(r.Requester), r.Key)
}

func requesters(requests []request) []string {
	users := sets.New[string]()
	for _, r := range requests {
		if r.NotAnAgents == "" {
			users.Insert(r.Requester)
		}
	}
	return sets.List(users)
}

// requestsOf returns the pending requests of a cluster. For a cluster that is about to be accepted, it returns an error for what an admin must check
// first: a requester who neither uses a bootstrap token nor is expected, and several keys.
func (o *acceptOptions) requestsOf(ctx context.Context, h *kit.HubClient, cluster *clusterv1.ManagedCluster, check bool) ([]request, error) {
	pending, err := pendingRequests(ctx, h, cluster.Name)
	if err != nil {
		if o.csr == "" && (o.skipCheck || !check) {
			return nil, nil
		}
		return nil, fmt.Errorf("listing the certificate requests of managed cluster %s: %w (--skip-approve-check accepts it without checking them)",
			cluster.Name, err)
	}
	var requests []request
	for i := range pending {
		r := request{Name: pending[i].Name, Requester: pending[i].Spec.Username}
		if parsed, err := agentcsr.Parse(&pending[i]); err != nil {
			r.NotAnAgents = err.Error()
		} else {
			r.Key, r.asker = parsed.KeySHA256, parsed.Asker(&pending[i].Spec, o.requesters)
		}
		requests = append(requests, r)
	}
	if o.csr != "" {
		i := slices.IndexFunc(requests, func(r request) bool { return r.Name == o.csr })
		switch {
		case i < 0:
			return nil, fmt.Errorf("managed cluster %[2]s has no pending certificate request %[1]s: kubectl get csr -l %[3]s=%[2]s shows all "+
				"of them", o.csr, cluster.Name, registration.ClusterNameLabel)
		case requests[i].NotAnAgents != "":
			return nil, fmt.Errorf("--csr is for requests of the agent of managed cluster %s: certificate request %s", cluster.Name, requests[i])
		}
		return requests, nil
	}
	if !check || o.skipCheck {
		return requests, nil
	}
	for _, r := range requests {
		// Renewal by an agent is only valid for an accepted cluster: the agent may have belonged to a different cluster of this name.
		if r.NotAnAgents == "" && r.asker != agentcsr.Bootstrap && !slices.Contains(o.requesters, r.Requester) {
			return nil, fmt.Errorf("certificate request %s of managed cluster %s comes from %q, who does not use a bootstrap "+
				"token: set --requesters=%[3]s to accept the cluster anyway", r.Name, cluster.Name, r.Requester)
		}
	}
	return requests, checkKeys(cluster, requests)
}

// checkKeys returns an error if the requests have several keys, unless one of them is the key that the cluster was created with, which the hub uses.
// If the cluster was created with a key that no request has, the hub would approve none of those that an admin sees.
func checkKeys(cluster *clusterv1.ManagedCluster, requests []request) error {
	keys, text := keysOf(requests)
	made := agentcsr.PlannedKey(cluster.Annotations)
	switch {
	case keys.Has(made) || len(keys) == 0 || made == "" && len(keys) == 1:
		return nil
	case made == registration.UndecidedKey:
		return fmt.Errorf("managed cluster %s was %s: if one of these requests is for the key of its agent, set --csr to it: %s", cluster.Name, madeWith(cluster), text)
	case made != "":
		return fmt.Errorf("managed cluster %s was %s, but its certificate is requested with another: "+
			"if one of these requests is from its agent, set --csr to it: %s", cluster.Name, madeWith(cluster), text)
	}
	return fmt.Errorf("certificates of managed cluster %s are requested with several keys, but its agent has only one of them: "+
		"set --csr to the right one of %s", cluster.Name, text)
}

// keyOf returns the key that an admin has seen and accepts the cluster with: the key of --csr, or the only one. It returns "" if there is no such
// key.
func (o *acceptOptions) keyOf(cluster *clusterv1.ManagedCluster, requests []request) string {
	considered := slices.DeleteFunc(slices.Clone(requests), func(r request) bool {
		if o.csr != "" {
			return r.Name != o.csr
		}
		return o.skipCheck || len(o.requesters) > 0 && !slices.Contains(o.requesters, r.Requester)
	})
	keys, _ := keysOf(considered)
	if made := agentcsr.PlannedKey(cluster.Annotations); o.csr == "" && keys.Has(made) {
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

// madeWith describes the key that the cluster was created with. It returns "" if the cluster names none.
func madeWith(cluster *clusterv1.ManagedCluster) string {
	switch made := agentcsr.PlannedKey(cluster.Annotations); made {
	case "":
		return ""
	case registration.UndecidedKey:
		return "created with a value that is not the SHA-256 of a key: " + command.Printable(cluster.Annotations[registration.AnnotationAgentKey])
	default:
		return "created with the key with SHA-256 " + made
	}
}

// pendingRequests returns the undecided requests for certificates of a cluster.
func pendingRequests(ctx context.Context, h *kit.HubClient, cluster string) ([]certificatesv1.CertificateSigningRequest, error) {
	list, err := h.Kube.CertificatesV1().CertificateSigningRequests().List(ctx,
		metav1.ListOptions{LabelSelector: registration.ClusterNameLabel + "=" + cluster})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(r certificatesv1.CertificateSigningRequest) bool {
		_, err := agentcsr.Parse(&r)
		return errors.Is(err, agentcsr.ErrOther) || !agentcsr.IsPending(&r)
	}), nil
}

// approveRequest does what kubectl certificate approve does, for the request that was read. The hub pins the key of a request that an admin approves.
func approveRequest(ctx context.Context, h *kit.HubClient, cluster string, observed request) error {
	csrs, name := h.Kube.CertificatesV1().CertificateSigningRequests(), observed.Name
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		csr, err := csrs.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil || agentcsr.Approval(csr) != nil:
			return err // the hub was faster
		case !agentcsr.IsPending(csr):
			return errors.New("it has since been denied or has failed: the agent must create another one")
		}
		if parsed, err := agentcsr.Parse(csr); err != nil || parsed.Cluster != cluster || parsed.KeySHA256 != observed.Key {
			return errors.New("it was replaced by another one: run the command again")
		}
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubectlHubAccept",
			Message: "Approved by an admin with kubectl hub accept --csr",
		})
		_, err = csrs.UpdateApproval(ctx, name, csr, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("approving certificate request %s: %w", name, err)
	}
	return nil
}

// notApprovedReason returns why the hub does not approve the requests of an accepted cluster, or "".
func notApprovedReason(ctx context.Context, h *kit.HubClient, cluster *clusterv1.ManagedCluster) string {
	if kit.ARNOf(cluster) != "" {
		return ""
	}
	if text := reviewMessage(cluster); text != "" {
		return text // the hub knows more than this program
	}
	requests, err := pendingRequests(ctx, h, cluster.Name)
	if err != nil {
		return "" // the user may not list them
	}
	why, made := "", agentcsr.PlannedKey(cluster.Annotations)
	for i := range requests {
		request := &requests[i]
		parsed, err := agentcsr.Parse(request)
		if err != nil {
			continue // it does not belong to the cluster, in spite of its label
		}
		switch asker := parsed.Asker(&request.Spec, nil); {
		case asker == agentcsr.Agent:
			return "" // it decides by the pinned key, and reports that
		case asker == agentcsr.Stranger:
			why = "comes from " + command.Printable(request.Spec.Username) + ", so the hub leaves it to you"
			if agentcsr.MayBeNamed(request.Spec.Username) {
				why += " unless --bootstrap-identities names that user"
			}
		case made == registration.UndecidedKey:
			why = "is left to you by the hub, because the cluster was " + madeWith(cluster)
		case made != "" && parsed.KeySHA256 != made:
			why = "is from another agent than the one that created the cluster, so the hub leaves it to you"
		default:
			return ""
		}
		why = fmt.Sprintf("certificate request %s %s: if it is right, kubectl certificate approve %[1]s", request.Name, why)
	}
	return why
}

// reviewMessage returns the hub's message about a request that it leaves to an admin.
func reviewMessage(cluster *clusterv1.ManagedCluster) string {
	if c := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionRequestWaits); c != nil && c.Status == metav1.ConditionTrue {
		return command.Printable(c.Message)
	}
	return ""
}
