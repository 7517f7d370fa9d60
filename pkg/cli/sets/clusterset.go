// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sets has the commands for the ManagedClusterSets of a hub, and for the users of sets.
package sets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

// NewCreateCommand returns the command create clusterset.
func NewCreateCommand(opts *kit.Options) *cobra.Command {
	labels, exclusive, out := "", "", kit.NewFormat("text", "json")
	cmd := &cobra.Command{
		Use:     "clusterset SET",
		Aliases: []string{"clustersets"},
		Short:   "Create a set of clusters",
		Long: "create clusterset creates a set. Without a flag, the clusters with the label cluster.open-cluster-management.io/clusterset=SET " +
			"are in it. This needs the permission to create managedclustersets.",
		Example: kit.Example(`
kubectl hub create clusterset payments
kubectl hub create clusterset europe --exclusive-label info.open-cluster-management.io/region=eu
kubectl hub create clusterset tests --selector 'env=test,tier notin (gold)'`),
		Args: kit.OneArg("a cluster set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := newClusterSet(args[0], exclusive, labels)
			if err != nil {
				return err
			}
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			_, err = h.Clusters.ClusterV1beta1().ManagedClusterSets().Create(cmd.Context(), set, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) && exclusive+labels == "" {
				return out.Print(opts.Out, kit.ChangeResult{Name: args[0]}, "%s\n", kit.Outcome("managedclusterset", args[0], "unchanged"))
			}
			if err != nil {
				return err
			}
			return out.Print(opts.Out, kit.ChangeResult{Name: args[0], Changed: true}, "%s\n", kit.Outcome("managedclusterset", args[0], "created"))
		},
	}
	cmd.Flags().StringVar(&exclusive, "exclusive-label", "", "Label of the clusters in the set, as KEY=VALUE. No other set can have the same label.")
	cmd.Flags().StringVarP(&labels, "selector", "l", "", "Label selector of the clusters in the set, such as env=test or 'tier notin (gold)'.")
	cmd.MarkFlagsMutuallyExclusive("exclusive-label", "selector")
	out.AddTo(cmd)
	return cmd
}

// newClusterSet returns a set of v1beta1, the version in which sets can have an exclusive label.
func newClusterSet(name, exclusive, labels string) (*v1beta1.ManagedClusterSet, error) {
	set := &v1beta1.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	selects := &set.Spec.ClusterSelector
	switch {
	case exclusive != "":
		key, value, ok := strings.Cut(exclusive, "=")
		if why := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)); !ok || len(why) > 0 {
			return nil, fmt.Errorf("--exclusive-label must be KEY=VALUE, not %q%s", exclusive, kit.Prefixed(": ", strings.Join(why, "; ")))
		}
		selects.SelectorType, selects.ExclusiveLabel = v1beta1.ExclusiveLabel, &v1beta1.ManagedClusterLabel{Key: key, Value: value}
	case labels != "":
		parsed, err := metav1.ParseToLabelSelector(labels)
		if err != nil {
			return nil, fmt.Errorf("--selector: %w", err)
		}
		selects.SelectorType, selects.LabelSelector = v1beta1.LabelSelector, parsed
	}
	return set, nil
}

type deleteClusterSetOptions struct {
	*kit.Options
	kit.WaitFlags
	out *kit.Format
}

// NewDeleteCommand returns the command delete clusterset.
func NewDeleteCommand(opts *kit.Options) *cobra.Command {
	o := &deleteClusterSetOptions{Options: opts, out: kit.NewFormat("text", "json")}
	cmd := &cobra.Command{
		Use:     "clusterset SET",
		Aliases: []string{"clustersets"},
		Short:   "Delete a set that no namespace is bound to",
		Long: "delete clusterset deletes a set. Its clusters stay, with their labels. A set that is bound to a namespace is not deleted, " +
			"and the sets default and global would be created again. This needs the permission to delete managedclustersets with the set's name.",
		Example:           kit.Example("kubectl hub delete clusterset payments"),
		Args:              kit.OneArg("a cluster set"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.SetNames)),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.out.AddTo(cmd)
	o.AddWait(cmd.Flags(), "the set is gone")
	return cmd
}

func (o *deleteClusterSetOptions) run(ctx context.Context, name string) error {
	if name == cluster.DefaultSet || name == cluster.GlobalSet {
		return fmt.Errorf("the set %s belongs to the hub, which would create it again", name)
	}
	if err := o.ValidateTimeout(); err != nil {
		return err
	}
	h, err := o.Hub()
	if err != nil {
		return err
	}
	bindings, err := h.Clusters.ClusterV1beta2().ManagedClusterSetBindings(corev1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	switch {
	case apierrors.IsForbidden(err):
		o.Warn("you may not see which namespaces the set %s is bound to", name)
	case err != nil:
		return err
	case len(bindings.Items) > 0:
		bound := make([]string, len(bindings.Items))
		for i := range bindings.Items {
			bound[i] = bindings.Items[i].Namespace
		}
		return fmt.Errorf("the set %s is bound to the namespaces %s: kubectl hub unbind %[1]s --namespace %[3]s first", name, strings.Join(bound, ", "), bound[0])
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	sets := h.Clusters.ClusterV1beta2().ManagedClusterSets()
	return kit.DeleteAndWait(ctx, o.Options, &o.WaitFlags, o.out, "managedclusterset", name, func(ctx context.Context, options metav1.DeleteOptions) error {
		return sets.Delete(ctx, name, options)
	}, func(ctx context.Context) (metav1.Object, error) { return sets.Get(ctx, name, metav1.GetOptions{}) })
}

// NewBindCommands returns bind and unbind. clusteradm has them below clusterset.
func NewBindCommands(opts *kit.Options) []*cobra.Command {
	command := func(use, short, long, says string, run func(ctx context.Context, h *kit.HubClient, set, namespace string) (changed bool, err error)) *cobra.Command {
		namespace, out := "", kit.NewFormat("text", "json")
		cmd := &cobra.Command{
			Use:               use + " SET",
			Short:             short,
			Long:              long,
			Example:           kit.Example("kubectl hub " + use + " payments --namespace team-a"),
			Args:              kit.OneArg("a cluster set"),
			ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.SetNames)),
			RunE: func(cmd *cobra.Command, args []string) error {
				h, err := opts.Hub()
				if err != nil {
					return err
				}
				if namespace == "" {
					namespace, _, err = opts.ConfigFlags.ToRawKubeConfigLoader().Namespace()
					if err != nil {
						return fmt.Errorf("reading the kubeconfig: %w", err)
					}
				}
				changed, err := run(cmd.Context(), h, args[0], namespace)
				if err != nil {
					return err
				}
				already := "already "
				if changed {
					already = ""
				}
				return out.Print(opts.Out, struct {
					kit.ChangeResult
					Namespace string `json:"namespace"`
				}{kit.ChangeResult{Name: args[0], Changed: changed}, namespace}, "managedclusterset/%s %s%s namespace %s\n", args[0], already, says, namespace)
			},
		}
		cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "Namespace of the binding. Defaults to the namespace of the context.")
		out.AddTo(cmd)
		return cmd
	}
	return []*cobra.Command{
		command("bind", "Bind a set to a namespace", "bind lets a namespace use a set. This needs the permissions to get the set, to create "+
			"managedclustersets/bind with the set's name, and to create managedclustersetbindings in the namespace.", "bound to", bind),
		command("unbind", "Unbind a set from a namespace", "unbind deletes the binding that bind created. This needs the permission to delete "+
			"managedclustersetbindings in the namespace.", "unbound from", unbind),
	}
}

// bind first checks that the set exists: a binding to a set that does not exist has no effect until it is created.
func bind(ctx context.Context, h *kit.HubClient, set, namespace string) (bool, error) {
	if _, err := h.Clusters.ClusterV1beta2().ManagedClusterSets().Get(ctx, set, metav1.GetOptions{}); err != nil {
		return false, err
	}
	binding := &v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set},
		Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}}
	_, err := h.Clusters.ClusterV1beta2().ManagedClusterSetBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

func unbind(ctx context.Context, h *kit.HubClient, set, namespace string) (bool, error) {
	err := h.Clusters.ClusterV1beta2().ManagedClusterSetBindings(namespace).Delete(ctx, set, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
