// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

type whyAccessOptions struct {
	*whyOptions
	groups    []string
	namespace string
}

func newWhyAccessCommand(opts *kit.Options) *cobra.Command {
	o := &whyAccessOptions{whyOptions: newWhy(opts)}
	cmd := &cobra.Command{
		Use:   "access USER VERB KEY=VALUE|SET|CLUSTER",
		Short: "Explain which rule allows an action of a user, or which is missing",
		Long: "why access shows which binding of which role grants a user a right on a label, a set or a cluster, or which rule is missing, and who could create it. " +
			"Write set/NAME and cluster/NAME if a set and a cluster have the same name; set/NAME/clusters is a subresource.\n\n" +
			"Verbs: write for a label; get, update, patch, delete, bind and deliver for a set; get, update, patch, delete, accept, leave and deliver for a cluster. " +
			"To deliver is to write ManifestWorks.\n\n" +
			"It checks with the front kube-apiserver if you may create subjectaccessreviews, and always for your own user. It shows only rules that you may list." + whyExit,
		Example: kit.Example(`
kubectl hub why access dana write cluster.open-cluster-management.io/clusterset=payments
kubectl hub why access dana bind payments -n team-a --group dev-team
kubectl hub why access system:serviceaccount:ci:deployer deliver cluster/c1`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 3 {
				return fmt.Errorf("%s takes a user, a verb, and a label, a set or a cluster, not %d arguments (see %[1]s --help)", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: completeAccess(opts),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1], args[2]) },
	}
	cmd.Flags().StringSliceVar(&o.groups, "group", nil, "Groups of the user. Your own groups, and those that all users and service accounts have, need not be set.")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "Namespace to bind a set to, for the verb bind.")
	o.out.AddTo(cmd)
	return cmd
}

// completeAccess completes the verb, and the names of sets and clusters.
func completeAccess(opts *kit.Options) kit.Completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 1:
			verbs := slices.Concat(diagnosis.AccessVerbs(diagnosis.Target{Label: "x"}), diagnosis.AccessVerbs(diagnosis.Target{Set: "x"}), diagnosis.AccessVerbs(diagnosis.Target{Cluster: "x"}))
			slices.Sort(verbs)
			return slices.Compact(verbs), cobra.ShellCompDirectiveNoFileComp
		case 2:
			return opts.CompletionFunc(setAndClusterNames)(cmd, args, typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func setAndClusterNames(ctx context.Context, h *kit.HubClient) (names []string, err error) {
	sets, setErr := kit.SetNames(ctx, h)
	clusters, clusterErr := kit.ClusterNames(ctx, h)
	if setErr != nil && clusterErr != nil {
		return nil, errors.Join(setErr, clusterErr)
	}
	for _, set := range sets {
		names = append(names, "set/"+set)
	}
	for _, cluster := range clusters {
		names = append(names, "cluster/"+cluster)
	}
	return names, nil
}

func (o *whyAccessOptions) run(ctx context.Context, user, verb, what string) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	a, err := h.Answers().WhyAccess(ctx, answers.Access{User: user, Verb: verb, What: what, Groups: o.groups, Namespace: o.namespace})
	return o.finish(a, err)
}
