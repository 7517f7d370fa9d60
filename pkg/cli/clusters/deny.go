// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"encoding/json"
	"errors"

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

type denyOptions struct {
	*kit.Options
	kit.WaitFlags
	out            *kit.Format
	clusters, more []string
}

// NewDenyCommand returns the command deny.
func NewDenyCommand(opts *kit.Options) *cobra.Command {
	o := &denyOptions{Options: opts, out: kit.NewFormat("text", "json")}
	cmd := &cobra.Command{
		Use:   "deny --clusters NAME,...",
		Short: "Withdraw the acceptance of clusters",
		Long: "deny revokes the rights of the clusters' agents. The clusters stay on the hub, and accept accepts them again. This " +
			"needs the permissions to get and patch the managedclusters, and to update managedclusters/accept with their names.",
		Example: kit.Example("kubectl hub deny --clusters c1 --wait"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.out.AddTo(cmd)
	kit.AddClusterFlags(opts, cmd, &o.clusters, &o.more)
	o.AddWait(cmd.Flags(), "the hub has revoked the rights")
	return cmd
}

func (o *denyOptions) run(ctx context.Context) error {
	names, err := kit.NamedClusters("deny", o.clusters, o.more)
	if err != nil {
		return err
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
	denied := []kit.ChangeResult{}
	var failed []error
	for _, name := range names {
		changed, err := denyCluster(ctx, h, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		denied = append(denied, kit.ChangeResult{Name: name, Changed: changed})
		text := "hubAcceptsClient is not set for managed cluster " + name
		if changed {
			text = "set hubAcceptsClient to false for managed cluster " + name
		}
		if err := o.out.Text(o.Out, text); err != nil {
			return err
		}
	}
	if o.Wait {
		for _, c := range denied {
			failed = append(failed, o.awaitDenied(ctx, h, c.Name))
		}
	}
	return errors.Join(append(failed, o.out.JSON(o.Out, denied))...)
}

// denyCluster denies the cluster that was read, and fails if it was replaced since then.
func denyCluster(ctx context.Context, h *kit.HubClient, name string) (changed bool, err error) {
	clusters := h.Clusters.ClusterV1().ManagedClusters()
	cluster, err := clusters.Get(ctx, name, metav1.GetOptions{})
	if err != nil || !cluster.Spec.HubAcceptsClient {
		return false, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": cluster.UID}, "spec": map[string]any{"hubAcceptsClient": false}})
	if err == nil {
		_, err = clusters.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	return err == nil, err
}

// awaitDenied waits until the hub reports that all permissions of the cluster are revoked. A cluster that was never accepted had none.
func (o *denyOptions) awaitDenied(ctx context.Context, h *kit.HubClient, name string) error {
	return o.Await(ctx, "managed cluster "+name, func(ctx context.Context) (bool, string, error) {
		cluster, err := h.Clusters.ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		if err != nil {
			return false, "", err
		}
		state, left := rightsLeft(cluster)
		return !left, state, nil
	})
}

func rightsLeft(cluster *clusterv1.ManagedCluster) (state string, left bool) {
	c := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted)
	switch {
	case c == nil || c.Reason == registration.ReasonDenied:
		return "", false
	case c.Status == metav1.ConditionTrue:
		return "hub-controller-manager has not revoked its rights yet", true
	}
	return command.Printable(c.Message), true
}
