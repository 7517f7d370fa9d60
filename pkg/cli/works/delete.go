// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect"
)

type deleteWorkOptions struct {
	*kit.Options
	onClusters
	kit.WaitFlags
	out *kit.Format
}

// NewDeleteCommand returns the command delete work.
func NewDeleteCommand(opts *kit.Options) *cobra.Command {
	o := &deleteWorkOptions{Options: opts, out: kit.NewFormat("text", "json")}
	cmd := &cobra.Command{
		Use:     "work WORK",
		Aliases: []string{"works"},
		Short:   "Delete the works of a name, and their objects on clusters",
		Long: "delete work deletes the works of one name on the clusters that --clusters names, or on all with --all-namespaces. The agents of the " +
			"clusters delete the objects, unless the work says that they stay. This needs the permission to delete manifestworks in the namespaces " +
			"of the clusters.",
		Example:           kit.Example("kubectl hub delete work web --clusters c1,c2 --wait"),
		Args:              kit.OneArg("a work"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.WorkNames)),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.addTo(opts, cmd)
	o.AddWait(cmd.Flags(), "the works are gone")
	o.out.AddTo(cmd)
	return cmd
}

func (o *deleteWorkOptions) run(ctx context.Context, name string) error {
	if err := o.ValidateTimeout(); err != nil {
		return err
	}
	clusters, err := o.names()
	if err != nil {
		return err
	}
	if len(clusters) == 0 && !o.all {
		return fmt.Errorf("--clusters must name the clusters to delete the work %s from; --all-namespaces selects all", name)
	}
	h, err := o.Hub()
	if err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	if len(clusters) == 0 {
		works, err := h.ListWorks(ctx, nil, name)
		if err != nil {
			return err
		}
		if len(works) == 0 {
			return kit.NoWorkError(name)
		}
		for i := range works {
			clusters = append(clusters, works[i].Namespace)
		}
	}
	// Delete all works before waiting for one of them.
	left := map[string]types.UID{}
	for _, cluster := range clusters {
		uid, err := deleteWork(ctx, h, cluster, name)
		if err != nil {
			return err
		}
		if uid != "" {
			left[cluster] = uid
		}
	}
	if o.Wait && len(left) > 0 {
		if err := o.awaitGone(ctx, h, name, left); err != nil {
			return err
		}
	}
	for _, cluster := range clusters {
		_, deleted := left[cluster]
		done := "not found in"
		if deleted {
			done = "deleted from"
		}
		if err := o.out.Print(o.Out, kit.ChangeResult{Name: cluster + "/" + name, Changed: deleted}, "manifestwork %q %s cluster %s\n", name, done, cluster); err != nil {
			return err
		}
	}
	return nil
}

// deleteWork deletes the work that currently exists, and returns its UID. It returns "" if there is no work.
func deleteWork(ctx context.Context, h *kit.HubClient, cluster, name string) (types.UID, error) {
	works := h.Clusters.WorkV1().ManifestWorks(cluster)
	work, err := works.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = works.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &work.UID}})
	}
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return work.UID, nil
}

// awaitGone waits until the works are gone, or other works have their names.
func (o *deleteWorkOptions) awaitGone(ctx context.Context, h *kit.HubClient, name string, left map[string]types.UID) error {
	clusters := slices.Sorted(maps.Keys(left))
	return o.Await(ctx, "the deletion of work "+name, func(ctx context.Context) (bool, string, error) {
		for i, cluster := range clusters {
			work, err := h.Clusters.WorkV1().ManifestWorks(cluster).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && work.UID != left[cluster] {
				continue
			}
			if err != nil {
				return false, "", err
			}
			clusters = clusters[i:]
			_, state := inspect.IsDone(work) // and what its agent waits for
			return false, fmt.Sprintf("cluster %s still has it, with the finalizers %s: it %s", cluster, strings.Join(work.Finalizers, ", "), state), nil
		}
		return true, "", nil
	})
}
