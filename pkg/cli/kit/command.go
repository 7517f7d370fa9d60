// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/command"
)

// NewGroup returns a command that only has subcommands.
func NewGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	names := make([]string, len(commands))
	for i, c := range commands {
		names[i] = use + " " + c.Name()
	}
	last := len(names) - 1
	there := strings.TrimPrefix(strings.Join(names[:last], ", ")+" or "+names[last], " or ")
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return fmt.Errorf("there is no %q to %s: %s", args[0], use, there)
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}

// OneArg returns a check for exactly one argument. The error names what is missing.
func OneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes the name of %s, not %d arguments (see %[1]s --help)", cmd.CommandPath(), what, len(args))
		}
		if args[0] == "" { // a variable of a script that is not set
			return fmt.Errorf("%s takes the name of %s, not an empty argument (see %[1]s --help)", cmd.CommandPath(), what)
		}
		return nil
	}
}

// AddClusterFlags adds the flags that name clusters, with clusteradm's names.
func AddClusterFlags(o *Options, cmd *cobra.Command, clusters, more *[]string) {
	cmd.Flags().StringSliceVar(clusters, "clusters", nil, "Names of the clusters.")
	cmd.Flags().StringSliceVarP(more, "cluster", "c", nil, "Same as --clusters.")
	for _, name := range []string{"clusters", "cluster"} {
		Must(cmd.RegisterFlagCompletionFunc(name, o.CompletionFunc(ClusterNames)))
	}
}

// NamedClusters returns the names that the flags have, without duplicates.
func NamedClusters(command string, clusters, more []string) ([]string, error) {
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(clusters, more))))
	if len(names) == 0 || slices.Contains(names, "") {
		return nil, fmt.Errorf("--clusters must name the clusters to %s: kubectl hub get clusters shows them", command)
	}
	return names, nil
}

// ChangeResult is the result for one object.
type ChangeResult struct {
	Name string `json:"name"`
	// Changed is false if there was nothing to do.
	Changed bool `json:"changed"`
}

// DeleteAndWait deletes the object that currently exists and, if requested, waits until it is gone. An object that does not exist counts as deleted.
func DeleteAndWait(ctx context.Context, o *Options, w *WaitFlags, out *Format, kind, name string,
	remove func(context.Context, metav1.DeleteOptions) error, get func(context.Context) (metav1.Object, error)) error {
	options := metav1.DeleteOptions{}
	object, err := get(ctx)
	if err == nil {
		uid := object.GetUID()
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err = remove(ctx, options)
	if apierrors.IsNotFound(err) {
		return out.Print(o.Out, ChangeResult{Name: name}, "%s %q not found\n", kind, name)
	}
	if err != nil {
		return err
	}
	if w.Wait {
		err = o.Await(ctx, kind+" "+name, func(ctx context.Context) (bool, string, error) {
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
	return out.Print(o.Out, ChangeResult{name, true}, "%s %q deleted\n", kind, name)
}
