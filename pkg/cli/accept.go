// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

type acceptOptions struct {
	*global
	waiting
	out            *format
	clusters, more []string
	requesters     []string
	skipCheck      bool
}

func (g *global) newAcceptCommand() *cobra.Command {
	o := &acceptOptions{global: g, out: newFormat("text", "json")}
	cmd := &cobra.Command{
		Use:   "accept --clusters NAME,...",
		Short: "Let clusters into the hub",
		Long: "accept lets clusters into the hub, and says who has asked for it. How a cluster proves who it is, by certificate " +
			"or by AWS IAM, it says itself. The hub approves the certificate requests of accepted clusters.",
		Example: example("kubectl hub accept --clusters c1,c2 --wait"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&o.clusters, "clusters", nil, "Names of the clusters.")
	fs.StringSliceVarP(&o.more, "cluster", "c", nil, "The same as --clusters.")
	fs.StringSliceVar(&o.requesters, "requesters", nil,
		"Users who may have asked for the cluster's certificate, beside those of bootstrap tokens.")
	fs.BoolVar(&o.skipCheck, "skip-approve-check", false, "Accept a cluster whoever has asked for its certificate.")
	o.addWait(fs, "the clusters have joined and are available, and before that until they have asked")
	o.out.addTo(cmd)
	for _, name := range []string{"clusters", "cluster"} {
		must(cmd.RegisterFlagCompletionFunc(name, g.names(clusterNames)))
	}
	return cmd
}

// acceptance is what has become of one cluster.
type acceptance struct {
	Name string `json:"name"`
	// Changed is false for a cluster that was accepted before.
	Changed      bool   `json:"changed"`
	Registration string `json:"registration"`
	// ARN is that of an EKS cluster, Requesters are the users who have asked for a certificate.
	ARN        string   `json:"managedClusterARN,omitempty"`
	Requesters []string `json:"requesters,omitempty"`
	Available  *bool    `json:"available,omitempty"`
}

func (o *acceptOptions) run(ctx context.Context) error {
	names := slices.Compact(slices.Sorted(slices.Values(append(o.clusters, o.more...))))
	if len(names) == 0 || slices.Contains(names, "") {
		return errors.New("--clusters has to name the clusters to accept: kubectl hub get clusters shows them")
	}
	if err := o.validateTimeout(); err != nil {
		return err
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	ctx, cancel := o.limit(ctx)
	defer cancel()
	accepted := []acceptance{}
	var failed []error
	for _, name := range names {
		a, err := o.accept(ctx, h, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		accepted = append(accepted, *a)
		if err := o.out.text(o.Out, a.String()); err != nil {
			return err
		}
	}
	if o.wait {
		for i := range accepted {
			err := o.awaitAvailable(ctx, h, accepted[i].Name)
			accepted[i].Available = new(err == nil)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			if err := o.out.text(o.Out, "managed cluster "+accepted[i].Name+" has joined and is available"); err != nil {
				return err
			}
		}
	}
	if err := o.out.json(o.Out, accepted); err != nil {
		return err
	}
	return errors.Join(failed...)
}

func (a *acceptance) String() string {
	text := "set hubAcceptsClient to true for managed cluster " + a.Name
	switch {
	case !a.Changed:
		return "hubAcceptsClient already set for managed cluster " + a.Name
	case a.ARN != "":
		return text + " (AWS IAM, EKS cluster " + a.ARN + ")"
	case len(a.Requesters) > 0:
		return text + " (certificate, asked for by " + strings.Join(a.Requesters, ", ") + ")"
	}
	return text + " (certificate, not asked for yet)"
}

func (o *acceptOptions) accept(ctx context.Context, h *hub, name string) (*acceptance, error) {
	cluster, err := o.find(ctx, h, name)
	if err != nil {
		return nil, err
	}
	a := &acceptance{Name: name, Changed: !cluster.Spec.HubAcceptsClient, Registration: registrationOf(cluster), ARN: arnOf(cluster)}
	if !a.Changed {
		return a, nil
	}
	if a.ARN == "" {
		if a.Requesters, err = o.requestersOf(ctx, h, cluster); err != nil {
			return nil, err
		}
	}
	// What was looked at is what is accepted.
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"hubAcceptsClient":true}}`, cluster.UID)
	cluster, err = h.clusters.ClusterV1().ManagedClusters().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	if why := h.leftToAdmin(ctx, cluster); why != "" {
		o.warn("managed cluster %s: %s", name, why)
	}
	return a, nil
}

// find waits for the cluster if that is wanted.
func (o *acceptOptions) find(ctx context.Context, h *hub, name string) (cluster *clusterv1.ManagedCluster, err error) {
	err = o.await(ctx, "managed cluster "+name, func(ctx context.Context) (bool, string, error) {
		cluster, err = h.clusters.ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && o.wait {
			return false, "it is not on the hub yet", nil
		}
		return err == nil, "", err
	})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no managed cluster %s on %s: run kubectl hub join on it first", name, h.config.Host)
	}
	return cluster, err
}

// requestersOf are the users who ask for a certificate of the cluster. A user who does not come by a bootstrap token is
// refused, unless he is expected.
func (o *acceptOptions) requestersOf(ctx context.Context, h *hub, cluster *clusterv1.ManagedCluster) ([]string, error) {
	requests, err := h.pendingRequests(ctx, cluster.Name)
	if err != nil {
		if o.skipCheck {
			return nil, nil
		}
		return nil, fmt.Errorf("who asks for managed cluster %s: %w (--skip-approve-check accepts it without knowing)",
			cluster.Name, err)
	}
	users := sets.New[string]()
	for i := range requests {
		user := requests[i].Spec.Username
		if !isBootstrap(user) && !o.skipCheck && !slices.Contains(o.requesters, user) {
			return nil, fmt.Errorf("certificate request %s of managed cluster %s comes from %q, who does not come by a bootstrap "+
				"token: --requesters=%[3]s accepts the cluster all the same", requests[i].Name, cluster.Name, user)
		}
		users.Insert(user)
	}
	return sets.List(users), nil
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
		case key != "" && keyOf(request) != key:
			why = "is of another agent than the one that made the cluster"
		default:
			return ""
		}
		why = fmt.Sprintf("certificate request %s %s, so the hub leaves it to you: if it is right, kubectl certificate approve %[1]s",
			request.Name, why)
	}
	return why
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

// awaitAvailable waits until the agent of an accepted cluster has come with its own identity.
func (o *acceptOptions) awaitAvailable(ctx context.Context, h *hub, name string) error {
	return o.await(ctx, "managed cluster "+name, func(ctx context.Context) (bool, string, error) {
		cluster, err := h.clusters.ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		state := progressOf(cluster)
		if state == "" {
			return true, "", nil
		}
		if meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionJoined) == nil {
			state += after("; ", h.leftToAdmin(ctx, cluster))
		}
		return false, state, nil
	})
}

// progressOf says what a cluster lacks to be in use, or nothing.
func progressOf(cluster *clusterv1.ManagedCluster) string {
	for _, step := range []struct{ condition, missing string }{
		{registration.ConditionHubAccepted, "hub-controller-manager has not made its rights yet"},
		{registration.ConditionJoined, "its agent has not come with its own identity yet"},
		{registration.ConditionAvailable, "its agent has not renewed its lease yet"},
	} {
		c := meta.FindStatusCondition(cluster.Status.Conditions, step.condition)
		switch {
		case c == nil:
			return step.missing
		case c.Status != metav1.ConditionTrue:
			return c.Message
		}
	}
	return ""
}
