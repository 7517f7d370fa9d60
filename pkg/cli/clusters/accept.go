// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusters has the commands for the ManagedClusters of a hub: accept, deny, label, get clusters and delete cluster.
package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

type acceptOptions struct {
	*kit.Options
	kit.WaitFlags
	out            *kit.Format
	clusters, more []string
	requesters     []string
	csr            string
	skipCheck      bool
	adoptNamespace bool
	// manager describes hub-controller-manager. It is nil if unknown.
	manager *kit.Manager
}

// NewAcceptCommand returns the command accept.
func NewAcceptCommand(opts *kit.Options) *cobra.Command {
	o := &acceptOptions{Options: opts, out: kit.NewFormat("text", "json")}
	cmd := &cobra.Command{
		Use:   "accept --clusters NAME,...",
		Short: "Accept clusters on the hub",
		Long: "accept accepts clusters on the hub, and prints who requested their certificates, and for which keys. How a cluster proves its identity, " +
			"by certificate or by AWS IAM, is stated by the cluster. The hub approves the first certificate request of an accepted cluster if " +
			"there was exactly one when it was accepted, and then every renewal; --csr approves another one.\n\n" +
			"A cluster gets a namespace of its name. An existing namespace may belong to a team: the hub does not change it, and the cluster does not join. " +
			"--adopt-namespace gives the namespace to the cluster if it is empty.",
		Example: kit.Example(`
kubectl hub accept --clusters c1,c2 --wait
kubectl hub accept --clusters c1 --csr c1-294hj`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	kit.AddClusterFlags(opts, cmd, &o.clusters, &o.more)
	fs.StringSliceVar(&o.requesters, "requesters", nil,
		"Users who request the clusters' certificates. The hub approves the first certificate for these users only, also when "+
			"they request it after the clusters were accepted. They use a bootstrap token, or --bootstrap-identities of hub-certificate-approver names them.")
	fs.StringVar(&o.csr, "csr", "",
		"Name of the certificate request to approve: one of several, or the request of an agent whose key has changed.")
	fs.BoolVar(&o.skipCheck, "skip-approve-check", false, "Accept a cluster without checking who requested its certificate.")
	fs.BoolVar(&o.adoptNamespace, adoptFlag, false,
		"Give the cluster an existing namespace of its name that does not belong to the hub. It must be empty, and you need the permission to label it.")
	o.AddWait(fs, "the clusters exist on the hub, have joined and are available")
	o.out.AddTo(cmd)
	return cmd
}

// acceptance is the result for one cluster.
type acceptance struct {
	Name string `json:"name"`
	// Changed is false for a cluster that was already accepted.
	Changed      bool   `json:"changed"`
	Registration string `json:"registration"`
	// ARN is the ARN of an EKS cluster. Requesters are the users who requested a certificate.
	ARN        string   `json:"managedClusterARN,omitempty"`
	Requesters []string `json:"requesters,omitempty"`
	// Requests are the certificate requests that were pending.
	Requests []request `json:"requests,omitempty"`
	// Adopted reports whether an existing namespace was given to the cluster.
	Adopted   bool  `json:"adoptedNamespace,omitempty"`
	Available *bool `json:"available,omitempty"`
	// warned reports whether a warning was printed that no driver registers the cluster.
	warned bool
}

func (o *acceptOptions) run(ctx context.Context) error {
	names, err := kit.NamedClusters("accept", o.clusters, o.more)
	if err != nil {
		return err
	}
	if o.csr != "" && len(names) > 1 {
		return errors.New("--csr is for one cluster, but --clusters names several")
	}
	if _, err := registration.Requesters(o.annotations("")); err != nil {
		return fmt.Errorf("--requesters: %w", err)
	}
	if err := o.ValidateTimeout(); err != nil {
		return err
	}
	h, err := o.Hub()
	if err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	o.manager = h.Manager(ctx)
	accepted := []acceptance{}
	var failed []error
	for _, name := range names {
		a, err := o.accept(ctx, h, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		accepted = append(accepted, *a)
		if err := o.out.Text(o.Out, a.String()); err != nil {
			return err
		}
	}
	if !o.Wait {
		o.checkConditions(ctx, h, accepted)
	}
	if o.Wait {
		for i := range accepted {
			err := o.awaitAvailable(ctx, h, accepted[i].Name)
			accepted[i].Available = new(err == nil)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			if err := o.out.Text(o.Out, "managed cluster "+accepted[i].Name+" has joined and is available"); err != nil {
				return err
			}
		}
	}
	if err := o.out.JSON(o.Out, accepted); err != nil {
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
		return text + " (AWS IAM, EKS cluster " + command.Printable(a.ARN) + ")"
	case len(a.Requesters) > 0:
		return text + " (certificate, requested by " + command.Printable(strings.Join(a.Requesters, ", ")) + ")"
	}
	return text + " (certificate, not requested yet)"
}

func (o *acceptOptions) accept(ctx context.Context, h *kit.HubClient, name string) (*acceptance, error) {
	cluster, err := o.find(ctx, h, name)
	if err != nil {
		return nil, err
	}
	if cluster.Spec.HubAcceptsClient && len(o.requesters) > 0 {
		return nil, fmt.Errorf("managed cluster %s is already accepted, and --requesters applies only to clusters that are not: use --csr "+
			"to approve a certificate request", name)
	}
	a := &acceptance{Name: name, Changed: !cluster.Spec.HubAcceptsClient, Registration: kit.RegistrationOf(cluster), ARN: kit.ARNOf(cluster)}
	if a.ARN != "" && (o.csr != "" || len(o.requesters) > 0) {
		return nil, fmt.Errorf("--csr and --requesters are for certificates, but managed cluster %s registers by AWS IAM, as the EKS "+
			"cluster %q: delete it if it should not", name, a.ARN)
	}
	if a.Changed && a.ARN != "" {
		if err := o.manager.CheckARN(cluster); err != nil {
			return nil, err
		}
	}
	if why := o.manager.Unhandled(cluster); why != "" {
		o.Warn("managed cluster %s: %s", name, why)
		a.warned = true
	}
	if a.ARN == "" {
		a.Requests, err = o.requestsOf(ctx, h, cluster, a.Changed)
		if err != nil {
			return nil, err
		}
		a.Requesters = requesters(a.Requests)
	}
	// Print the requests before anything is changed.
	for _, request := range a.Requests {
		_, _ = fmt.Fprintf(o.ErrOut, "managed cluster %s: certificate request %s\n", name, request)
	}
	if made := madeWith(cluster); a.Changed && a.ARN == "" && made != "" {
		_, _ = fmt.Fprintf(o.ErrOut, "managed cluster %s: %s\n", name, made)
	}
	if o.adoptNamespace {
		a.Adopted, err = o.adopt(ctx, h, name)
		if err != nil {
			return nil, err
		}
	}
	if a.Changed {
		cluster, err = o.patch(ctx, h, cluster, o.keyOf(cluster, a.Requests))
		if err != nil {
			return nil, err
		}
	}
	if o.csr != "" {
		i := slices.IndexFunc(a.Requests, func(r request) bool { return r.Name == o.csr })
		return a, approveRequest(ctx, h, name, a.Requests[i])
	}
	if why := notApprovedReason(ctx, h, cluster); why != "" {
		o.Warn("managed cluster %s: %s", name, why)
	}
	return a, nil
}

// patch accepts the cluster that was read, and fails if it was replaced since then. It sets the key that was read, if there is one.
func (o *acceptOptions) patch(ctx context.Context, h *kit.HubClient, cluster *clusterv1.ManagedCluster, key string) (*clusterv1.ManagedCluster, error) {
	metadata := map[string]any{"uid": cluster.UID}
	if annotations := o.annotations(key); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"hubAcceptsClient": true}})
	if err != nil {
		return nil, err
	}
	return h.Clusters.ClusterV1().ManagedClusters().Patch(ctx, cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{})
}

// annotations returns the annotations that name the requesters whose certificates the hub approves.
func (o *acceptOptions) annotations(key string) map[string]string {
	annotations := map[string]string{}
	if len(o.requesters) > 0 {
		annotations[registration.AnnotationRequesters] = strings.Join(o.requesters, ",")
	}
	if key != "" {
		annotations[registration.AnnotationAgentKey] = key
	}
	return annotations
}

// find returns the cluster. It waits for the cluster to exist if the user asked to wait.
func (o *acceptOptions) find(ctx context.Context, h *kit.HubClient, name string) (cluster *clusterv1.ManagedCluster, err error) {
	err = o.Await(ctx, "managed cluster "+name, func(ctx context.Context) (bool, string, error) {
		cluster, err = h.Clusters.ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && o.Wait {
			return false, "it does not exist on the hub yet", nil
		}
		return err == nil, "", err
	})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no managed cluster %s on %s: run kubectl hub join on it first", name, h.Config.Host)
	}
	return cluster, err
}

// awaitAvailable waits until the agent of an accepted cluster connects with its own identity.
func (o *acceptOptions) awaitAvailable(ctx context.Context, h *kit.HubClient, name string) error {
	return o.Await(ctx, "managed cluster "+name, func(ctx context.Context) (bool, string, error) {
		cluster, err := h.Clusters.ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		state := progressOf(cluster)
		if state == "" {
			return true, "", nil
		}
		if meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionJoined) == nil {
			state += kit.Prefixed("; ", notApprovedReason(ctx, h, cluster))
		}
		return false, state, nil
	})
}

// progressOf returns what is missing before the cluster is usable, or "".
func progressOf(cluster *clusterv1.ManagedCluster) string {
	for _, step := range []struct{ condition, missing string }{
		{registration.ConditionHubAccepted, "hub-controller-manager has not created its RBAC yet"},
		{registration.ConditionJoined, "its agent has not connected with its own identity yet"},
		{registration.ConditionAvailable, "its agent has not renewed its lease yet"},
	} {
		c := meta.FindStatusCondition(cluster.Status.Conditions, step.condition)
		switch {
		case c == nil:
			return step.missing
		case c.Status != metav1.ConditionTrue:
			return command.Printable(c.Message)
		}
	}
	return ""
}
