// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

type deleteClusterOptions struct {
	*global
	waiting
	out *format
}

func newDeleteClusterCommand(g *global) *cobra.Command {
	o := &deleteClusterOptions{global: g, out: newFormat("text", "json")}
	cmd := &cobra.Command{
		Use:     "cluster NAME",
		Aliases: []string{"clusters"},
		Short:   "Remove a cluster from the hub",
		Long: "delete cluster deletes a ManagedCluster. The hub revokes the rights of its agent, and deletes its namespace as soon as " +
			"it is empty. Nothing in the cluster itself is deleted. Run kubectl hub unjoin on the cluster first: an agent that still " +
			"runs, and has a valid bootstrap token, creates the cluster again. This needs the permission to delete managedclusters " +
			"with the cluster's name, or managedclustersets/clusters with the name of a set that it is in.",
		Example:           example("kubectl hub delete cluster c1 --wait"),
		Args:              oneArg("a cluster"),
		ValidArgsFunction: first(g.names(clusterNames)),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.out.addTo(cmd)
	o.addWait(cmd.Flags(), "the cluster is gone")
	return cmd
}

func (o *deleteClusterOptions) run(ctx context.Context, name string) error {
	if err := o.validateTimeout(); err != nil {
		return err
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	ctx, cancel := o.limit(ctx)
	defer cancel()
	warned := false
	_, err = reach(h, func(c clusters) (struct{}, error) {
		// A user who may delete a cluster need not have permission to get it.
		cluster, err := c.Get(ctx, name)
		if err == nil && !warned && meta.IsStatusConditionTrue(cluster.Status.Conditions, registration.ConditionAvailable) {
			warned = true
			o.warn("the agent of managed cluster %s still runs: run kubectl hub unjoin --cluster-name %[1]s on the cluster to remove it", name)
		}
		return struct{}{}, deleteAndWait(ctx, o.global, &o.waiting, o.out, "managedcluster", name, func(ctx context.Context, options metav1.DeleteOptions) error {
			return c.Delete(ctx, name, options)
		}, func(ctx context.Context) (metav1.Object, error) {
			cluster, err := c.Get(ctx, name)
			if isView(c) && apierrors.IsForbidden(err) { // a deleted cluster is in no set of the user
				err = apierrors.NewNotFound(clusterv1.Resource("managedclusters"), name)
			}
			return cluster, err
		})
	})
	return err
}

// deleteAndWait deletes the object that currently exists and, if requested, waits until it is gone. An object that does not exist counts as deleted.
func deleteAndWait(ctx context.Context, g *global, w *waiting, out *format, kind, name string,
	remove func(context.Context, metav1.DeleteOptions) error, get func(context.Context) (metav1.Object, error)) error {
	options := metav1.DeleteOptions{}
	object, err := get(ctx)
	if err == nil {
		uid := object.GetUID()
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err = remove(ctx, options)
	if apierrors.IsNotFound(err) {
		return out.print(g.Out, changeResult{Name: name}, "%s %q not found\n", kind, name)
	}
	if err != nil {
		return err
	}
	if w.wait {
		err = g.await(ctx, kind+" "+name, func(ctx context.Context) (bool, string, error) {
			now, err := get(ctx)
			if apierrors.IsNotFound(err) || err == nil && options.Preconditions != nil && now.GetUID() != *options.Preconditions.UID {
				return true, "", nil
			}
			if err != nil {
				return false, "", err
			}
			return false, "it has the finalizers " + command.Printable(strings.Join(now.GetFinalizers(), ", ")), nil
		})
		if err != nil {
			return err
		}
	}
	return out.print(g.Out, changeResult{name, true}, "%s %q deleted\n", kind, name)
}
