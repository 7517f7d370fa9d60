// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access has the commands access and access-token, by which a user gets and uses access to a cluster.
package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
)

type accessOptions struct {
	*kit.Options
	kit.WaitFlags
	out                 *kit.Format
	namespace           string
	roles, clusterRoles []string
	ttl                 time.Duration
	revoke              bool

	cluster v1alpha1.ObjectReference
}

// NewCommand returns the command access.
func NewCommand(opts *kit.Options) *cobra.Command {
	o := &accessOptions{Options: opts, out: kit.NewFormat("text", "kubeconfig")}
	cmd := &cobra.Command{
		Use:   "access CLUSTER --cluster-role NAME",
		Short: "Get access to a cluster, and a context for it in the kubeconfig",
		Long: "access creates an AccessRequest for a Cluster of clusters.openmcp.cloud, waits until it is granted, and adds a context " +
			"for the cluster to the kubeconfig. No credentials are written there: with this context, kubectl gets a short-lived " +
			"token from the hub whenever it needs one.\n\n" +
			"Each user has one AccessRequest for each cluster. Running the command again with other roles changes it.",
		Example: kit.Example(`
kubectl hub access blue -n teams --cluster-role view --ttl 8h
kubectl --context teams--blue get pods
kubectl hub access blue -n teams --revoke`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s takes the name of one cluster (see %[1]s --help)", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.namespace, "namespace", "n", "",
		"Namespace of the AccessRequest, and of the Cluster unless it is given as NAMESPACE/NAME. Defaults to the namespace of the context.")
	fs.StringSliceVar(&o.roles, "role", nil, "Role to get in the cluster, as NAMESPACE/NAME. Can be repeated.")
	fs.StringSliceVar(&o.clusterRoles, "cluster-role", nil, "ClusterRole to get, in the whole cluster. Can be repeated.")
	fs.DurationVar(&o.ttl, "ttl", 0, "How long the access lasts, such as 8h, from the creation of the AccessRequest. By default, it lasts until it is revoked.")
	fs.BoolVar(&o.revoke, "revoke", false, "End the access instead, and remove the context.")
	o.AddTimeout(fs)
	o.out.AddTo(cmd)
	return cmd
}

func (o *accessOptions) run(ctx context.Context, cluster string) error {
	wanted, err := o.validate(cluster)
	if err != nil {
		return err
	}
	h, err := o.Hub()
	if err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	name, err := o.requestName(ctx, h)
	if err != nil {
		return err
	}
	entry, err := o.contextFor(name)
	if err != nil {
		return err
	}
	if o.revoke {
		return o.delete(ctx, h, entry)
	}
	if err := o.request(ctx, h, name, wanted); err != nil {
		return err
	}
	if err := o.awaitGranted(ctx, h, name); err != nil {
		return err
	}
	// The token is discarded. The request shows that tokens can be created, and how to reach the cluster.
	token, err := h.Clusters.OpenMCPV1alpha1().AccessRequests(o.namespace).
		CreateToken(ctx, name, &v1alpha1.AccessToken{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config, err := entry.config(token)
	if err != nil {
		return err
	}
	if o.out.Value == "kubeconfig" {
		data, err := clientcmd.Write(*config)
		if err == nil {
			_, err = o.Out.Write(data)
		}
		return err
	}
	file, err := entry.merge(config)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, "%s has the context %s for cluster %s: kubectl --context %[2]s ...\n", file, entry.name,
		o.cluster.NamespacedName())
	return err
}

// validate returns the requested permissions, or nil if no permissions are requested.
func (o *accessOptions) validate(cluster string) (*v1alpha1.TokenConfig, error) {
	if err := o.ValidateTimeout(); err != nil {
		return nil, err
	}
	if o.namespace == "" {
		var err error
		o.namespace, _, err = o.ConfigFlags.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return nil, fmt.Errorf("reading the kubeconfig: %w", err)
		}
	}
	o.cluster = v1alpha1.ObjectReference{Namespace: o.namespace, Name: cluster}
	if namespace, name, found := strings.Cut(cluster, "/"); found {
		o.cluster = v1alpha1.ObjectReference{Namespace: namespace, Name: name}
	}
	if o.cluster.Name == "" || o.cluster.Namespace == "" || strings.Contains(o.cluster.Name, "/") {
		return nil, fmt.Errorf("%q is neither the name of a cluster nor NAMESPACE/NAME", cluster)
	}
	if o.ttl < 0 {
		return nil, fmt.Errorf("--ttl must be above 0, not %s", o.ttl)
	}
	if o.revoke && (len(o.roles)+len(o.clusterRoles) > 0 || o.ttl > 0) {
		return nil, errors.New("--revoke ends the access: it takes no --role, --cluster-role or --ttl")
	}
	var refs []v1alpha1.RoleRef
	for _, name := range o.clusterRoles {
		refs = append(refs, v1alpha1.RoleRef{Kind: "ClusterRole", Name: name})
	}
	for _, role := range o.roles {
		namespace, name, found := strings.Cut(role, "/")
		if !found || namespace == "" || name == "" {
			return nil, fmt.Errorf("--role must be NAMESPACE/NAME, not %q", role)
		}
		refs = append(refs, v1alpha1.RoleRef{Kind: "Role", Namespace: namespace, Name: name})
	}
	if refs == nil {
		return nil, nil
	}
	return &v1alpha1.TokenConfig{RoleRefs: refs}, nil
}

// requestName returns the name of the AccessRequest. It depends on the user and the cluster alone.
func (o *accessOptions) requestName(ctx context.Context, h *kit.HubClient) (string, error) {
	self, err := h.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("getting your user name from the hub: %w", err)
	}
	sum := sha256.Sum256([]byte(self.Status.UserInfo.Username + "\x00" + o.cluster.NamespacedName().String()))
	return o.cluster.Name[:min(len(o.cluster.Name), 200)] + "-" + hex.EncodeToString(sum[:5]), nil
}

// request creates the request, or updates it to the desired permissions.
func (o *accessOptions) request(ctx context.Context, h *kit.HubClient, name string, wanted *v1alpha1.TokenConfig) error {
	requests := h.Clusters.OpenMCPV1alpha1().AccessRequests(o.namespace)
	have, err := requests.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && wanted == nil:
		return errors.New("--cluster-role or --role must be set to the rights that you need, such as --cluster-role view")
	case apierrors.IsNotFound(err):
		request := &v1alpha1.AccessRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name},
			Spec:       v1alpha1.AccessRequestSpec{ClusterRef: &o.cluster, Token: wanted, TTL: o.timeToLive()},
		}
		if _, err := requests.Create(ctx, request, metav1.CreateOptions{}); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(o.ErrOut, kit.Outcome("accessrequest", name, "created"))
		return nil
	case err != nil:
		return err
	case have.DeletionTimestamp != nil:
		return fmt.Errorf("AccessRequest %s/%s is still being deleted: try again when it is gone", o.namespace, name)
	}
	changed := have.DeepCopy()
	changed.Spec.Token = cmp.Or(wanted, changed.Spec.Token)
	changed.Spec.TTL = cmp.Or(o.timeToLive(), changed.Spec.TTL)
	if equality.Semantic.DeepEqual(have.Spec, changed.Spec) {
		return nil
	}
	if _, err := requests.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(o.ErrOut, kit.Outcome("AccessRequest", name, "configured"))
	return nil
}

func (o *accessOptions) timeToLive() *duration.Duration {
	if o.ttl == 0 {
		return nil
	}
	return &duration.Duration{Duration: o.ttl}
}

func (o *accessOptions) awaitGranted(ctx context.Context, h *kit.HubClient, name string) error {
	what := fmt.Sprintf("AccessRequest %s/%s", o.namespace, name)
	return o.Await(ctx, what, func(ctx context.Context) (bool, string, error) {
		r, err := h.Clusters.OpenMCPV1alpha1().AccessRequests(o.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		if r.Status.IsDenied() {
			return false, "", fmt.Errorf("%s is denied%s (this is final: delete it before you request access again)", what, kit.Prefixed(": ", conditionsOf(r)))
		}
		if r.Status.IsGranted() && r.Status.ObservedGeneration == r.Generation {
			return true, "", nil
		}
		return false, cmp.Or(conditionsOf(r), "no controller has handled it yet"), nil
	})
}

// conditionsOf returns the conditions that are not True.
func conditionsOf(r *v1alpha1.AccessRequest) string {
	var missing []string
	for _, c := range r.Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			missing = append(missing, command.Printable(cmp.Or(c.Message, c.Reason, c.Type)))
		}
	}
	return strings.Join(slices.Compact(missing), "; ")
}

// delete deletes the request, and waits until it is gone and the access is revoked.
func (o *accessOptions) delete(ctx context.Context, h *kit.HubClient, entry *accessContext) error {
	requests := h.Clusters.OpenMCPV1alpha1().AccessRequests(o.namespace)
	err := requests.Delete(ctx, entry.request, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	what := fmt.Sprintf("AccessRequest %s/%s", o.namespace, entry.request)
	gone := apierrors.IsNotFound(err)
	err = o.Await(ctx, what+" to go", func(ctx context.Context) (bool, string, error) {
		if gone {
			return true, "", nil
		}
		r, err := requests.Get(ctx, entry.request, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", err
		}
		return false, cmp.Or(conditionsOf(r), "the provider of the cluster is revoking the access"), nil
	})
	if err != nil {
		return err
	}
	if err := entry.remove(); err != nil {
		return err
	}
	if gone {
		_, err = fmt.Fprintf(o.Out, "accessrequest %q not found\n", entry.request)
	} else {
		_, err = fmt.Fprintf(o.Out, "accessrequest %q deleted: access to cluster %s revoked\n", entry.request, o.cluster.NamespacedName())
	}
	return err
}
