// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

type deleteClusterOptions struct {
	*kit.Options
	kit.WaitFlags
	out *kit.Format
}

// NewDeleteCommand returns the command delete cluster.
func NewDeleteCommand(opts *kit.Options) *cobra.Command {
	o := &deleteClusterOptions{Options: opts, out: kit.NewFormat("text", "json")}
	cmd := &cobra.Command{
		Use:     "cluster NAME",
		Aliases: []string{"clusters"},
		Short:   "Remove a cluster from the hub",
		Long: "delete cluster deletes a ManagedCluster. The hub revokes the rights of its agent, and deletes its namespace as soon as " +
			"it is empty. Nothing in the cluster itself is deleted. Run kubectl hub unjoin on the cluster first: an agent that still " +
			"runs, and has a valid bootstrap token, creates the cluster again. This needs the permission to delete managedclusters " +
			"with the cluster's name, or managedclustersets/clusters with the name of a set that it is in.",
		Example:           kit.Example("kubectl hub delete cluster c1 --wait"),
		Args:              kit.OneArg("a cluster"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.ClusterNames)),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.out.AddTo(cmd)
	o.AddWait(cmd.Flags(), "the cluster is gone")
	return cmd
}

func (o *deleteClusterOptions) run(ctx context.Context, name string) error {
	if err := o.ValidateTimeout(); err != nil {
		return err
	}
	h, err := o.Hub()
	if err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	warned := false
	_, err = kit.Reach(h, func(c kit.ManagedClusters) (struct{}, error) {
		// A user who may delete a cluster need not have permission to get it.
		cluster, err := c.Get(ctx, name)
		if err == nil && !warned && meta.IsStatusConditionTrue(cluster.Status.Conditions, registration.ConditionAvailable) {
			warned = true
			o.Warn("the agent of managed cluster %s still runs: run kubectl hub unjoin --cluster-name %[1]s on the cluster to remove it", name)
		}
		return struct{}{}, kit.DeleteAndWait(ctx, o.Options, &o.WaitFlags, o.out, "managedcluster", name, func(ctx context.Context, options metav1.DeleteOptions) error {
			return c.Delete(ctx, name, options)
		}, func(ctx context.Context) (metav1.Object, error) {
			cluster, err := c.Get(ctx, name)
			if kit.IsView(c) && apierrors.IsForbidden(err) { // a deleted cluster is in no set of the user
				err = apierrors.NewNotFound(clusterv1.Resource("managedclusters"), name)
			}
			return cluster, err
		})
	})
	return err
}
