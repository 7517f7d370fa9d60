// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/setroles"
)

// subjects are the users that flags name.
type subjects struct{ users, groups, accounts []string }

func (s *subjects) addTo(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&s.users, "user", nil, "Names of users.")
	cmd.Flags().StringSliceVar(&s.groups, "group", nil, "Names of groups.")
	cmd.Flags().StringSliceVar(&s.accounts, "serviceaccount", nil, "Service accounts, as NAMESPACE:NAME.")
}

// parse returns the subjects, sorted and without duplicates.
func (s *subjects) parse() (all []rbacv1.Subject, err error) {
	for kind, names := range map[string][]string{rbacv1.UserKind: s.users, rbacv1.GroupKind: s.groups} {
		for _, name := range names {
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name})
			if name == "" {
				err = fmt.Errorf("--%s must be a name, not empty", strings.ToLower(kind))
			}
		}
	}
	for _, account := range s.accounts {
		namespace, name, _ := strings.Cut(account, ":")
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			err = fmt.Errorf("--serviceaccount must be NAMESPACE:NAME, not %q", account)
		}
		all = append(all, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	if len(all) == 0 {
		err = errors.New("--user, --group or --serviceaccount must name a subject")
	}
	slices.SortFunc(all, func(a, b rbacv1.Subject) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all), err
}

// NewGrantCommands returns grant and revoke.
func NewGrantCommands(opts *kit.Options) []*cobra.Command {
	command := func(use, short, long, has string, run func(ctx context.Context, h *kit.HubClient, set, role string, who []rbacv1.Subject) (bool, error)) *cobra.Command {
		role, who, out := "", &subjects{}, kit.NewFormat("text", "json")
		cmd := &cobra.Command{
			Use:               use + " SET",
			Short:             short,
			Long:              long,
			Example:           kit.Example("kubectl hub " + use + " payments --role admin --user dana\nkubectl hub " + use + " payments --role viewer --group auditors --serviceaccount team-a:deployer"),
			Args:              kit.OneArg("a cluster set"),
			ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.SetNames)),
			RunE: func(cmd *cobra.Command, args []string) error {
				if !slices.Contains(setroles.All, role) {
					return fmt.Errorf("--role must be %s, not %q", strings.Join(setroles.All, ", "), role)
				}
				named, err := who.parse()
				if err != nil {
					return err
				}
				h, err := opts.Hub()
				if err != nil {
					return err
				}
				changed, err := run(cmd.Context(), h, args[0], role, named)
				if err != nil {
					return err
				}
				already := ""
				if !changed {
					already = " already"
				}
				return out.Print(opts.Out, struct {
					kit.ChangeResult
					Role     string           `json:"role"`
					Subjects []rbacv1.Subject `json:"subjects"`
				}{kit.ChangeResult{Name: args[0], Changed: changed}, role, named}, "Role %s of clusterset %s is%s %s %s\n", role, args[0], already, has, kit.DescribeSubjects(named))
			},
		}
		cmd.Flags().StringVar(&role, "role", "", "Role on the set: "+strings.Join(setroles.All, ", ")+".")
		kit.Must(cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(setroles.All, cobra.ShellCompDirectiveNoFileComp)))
		who.addTo(cmd)
		out.AddTo(cmd)
		return cmd
	}
	return []*cobra.Command{
		command("grant", "Give users a role on a set and on its clusters", "grant gives users a role on a set. A viewer sees the set, its members "+
			"and its clusters. A user also binds it to namespaces; this needs the right to create bindings there, too. A deployer also runs applications on its "+
			"clusters, by ManifestWorkReplicaSets in such a namespace; this needs the right to write them there, too. An admin is a user who also changes "+
			"and deletes the clusters in the set, writes the label that only this set selects by, and creates clusters with the label clusterset=SET. No role accepts "+
			"clusters, removes them from other sets, or changes what the set selects.\n\n"+
			"A role is the ClusterRole clusterhub:set:SET:ROLE, with a ClusterRoleBinding of the same name. Both are deleted with the set. "+
			"If the set's label changes, grant the role again. This needs the permissions to get the set, to write ClusterRoles and their bindings, "+
			"and all rights of the role.", "granted to", grant),
		command("revoke", "Revoke a role on a set from users", "revoke revokes one role on a set that grant granted. Rights that users have by "+
			"other roles stay.", "revoked from", revoke),
	}
}

// errEarlier reports that an object was created for a deleted set whose name a different set has now.
var errEarlier = errors.New("it belongs to an earlier set of this name")

// grant creates a role and a binding. It grants no permissions to users who had them on an earlier set of this name.
func grant(ctx context.Context, h *kit.HubClient, name, role string, who []rbacv1.Subject) (changed bool, err error) {
	set, err := h.Clusters.ClusterV1beta1().ManagedClusterSets().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	rules, err := setroles.Rules(set, role)
	if err != nil {
		return false, err
	}
	c, err := h.Client()
	if err != nil {
		return false, err
	}
	apply := func(object client.Object, fill func()) error {
		result, err := controllerutil.CreateOrUpdate(ctx, c, object, func() error {
			if err := ownedBySet(object, set); err != nil {
				return err
			}
			fill()
			return nil
		})
		if errors.Is(err, errEarlier) { // the garbage collector deletes it later
			err = errors.Join(errEarlier, kit.DeleteUnchanged(ctx, c, object))
		}
		changed = changed || result != controllerutil.OperationResultNone
		return err
	}
	return changed, retry.OnError(retry.DefaultBackoff, writtenByOthers, func() error {
		name := metav1.ObjectMeta{Name: setroles.Name(set.Name, role)}
		clusterRole, binding := &rbacv1.ClusterRole{ObjectMeta: name}, &rbacv1.ClusterRoleBinding{ObjectMeta: name}
		if err := apply(clusterRole, func() { clusterRole.Rules, clusterRole.AggregationRule = rules, nil }); err != nil {
			return err
		}
		return apply(binding, func() {
			if binding.UID == "" {
				binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name}
			}
			missing := slices.DeleteFunc(slices.Clone(who), func(s rbacv1.Subject) bool { return slices.Contains(binding.Subjects, s) })
			binding.Subjects = append(binding.Subjects, missing...)
		})
	})
}

func revoke(ctx context.Context, h *kit.HubClient, set, role string, who []rbacv1.Subject) (changed bool, err error) {
	c, err := h.Client()
	if err != nil {
		return false, err
	}
	return changed, retry.OnError(retry.DefaultBackoff, writtenByOthers, func() error {
		binding := &rbacv1.ClusterRoleBinding{}
		if err := c.Get(ctx, client.ObjectKey{Name: setroles.Name(set, role)}, binding); err != nil {
			return client.IgnoreNotFound(err)
		}
		if err := createdByKubectlHub(binding); err != nil {
			return err
		}
		before := len(binding.Subjects)
		binding.Subjects = slices.DeleteFunc(binding.Subjects, func(s rbacv1.Subject) bool { return slices.Contains(who, s) })
		changed = len(binding.Subjects) < before
		if !changed {
			return nil
		}
		if len(binding.Subjects) == 0 {
			return kit.DeleteUnchanged(ctx, c, binding)
		}
		return c.Update(ctx, binding)
	})
}

// ownedBySet sets the set as the owner of a new object: permissions are for a set's name, and a different set may get the name later.
func ownedBySet(object client.Object, set *v1beta1.ManagedClusterSet) error {
	if object.GetUID() == "" {
		object.SetLabels(map[string]string{deploy.LabelManagedBy: deploy.ManagedBy})
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "ManagedClusterSet",
			Name: set.Name, UID: set.UID}})
		return nil
	}
	if err := createdByKubectlHub(object); err != nil {
		return err
	}
	if !slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == set.UID }) {
		return errEarlier
	}
	return nil
}

func createdByKubectlHub(object client.Object) error {
	if object.GetLabels()[deploy.LabelManagedBy] != deploy.ManagedBy {
		return fmt.Errorf("%s exists without the label %s=%s, so kubectl hub did not create it: rename it, or delete it", object.GetName(),
			deploy.LabelManagedBy, deploy.ManagedBy)
	}
	return nil
}

func writtenByOthers(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errEarlier)
}
