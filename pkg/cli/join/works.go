// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// An agent applies works with no permissions, or with those of a ClusterRole that every cluster has.
const (
	worksNone         = "none"
	worksAdmin        = "admin"
	worksClusterAdmin = "cluster-admin"
)

const (
	worksFlag           = "works"
	worksNamespacesFlag = "works-namespaces"
)

// worksOptions are the permissions with which the agent applies works. The role is empty if the user has not set it.
type worksOptions struct {
	role       string
	namespaces []string
	// inSome reports whether namespaces were set, even to an empty list.
	inSome bool
}

func (o *worksOptions) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.role, worksFlag, "", "Rights in the cluster with which the agent applies ManifestWorks: "+worksAdmin+" or "+
		worksClusterAdmin+", the ClusterRoles of these names, or "+worksNone+". Defaults to "+worksNone+", but must be set if the agent already applies works. "+
		"Users who write works on the hub have these rights in the cluster; "+worksAdmin+" in all namespaces is in effect "+
		worksClusterAdmin+".")
	cmd.Flags().StringSliceVar(&o.namespaces, worksNamespacesFlag, nil,
		"Namespaces of the cluster, a,b,…, in which the agent has the rights of --"+worksFlag+". Defaults to all namespaces.")
	kit.Must(cmd.RegisterFlagCompletionFunc(worksFlag,
		cobra.FixedCompletions([]string{worksNone, worksAdmin, worksClusterAdmin}, cobra.ShellCompDirectiveNoFileComp)))
}

func (o *worksOptions) validate() error {
	if o.role != "" && o.role != worksNone && o.role != worksAdmin && o.role != worksClusterAdmin {
		return fmt.Errorf("--%s must be %s, %s or %s, not %q", worksFlag, worksNone, worksAdmin, worksClusterAdmin, o.role)
	}
	if !o.inSome {
		return nil
	}
	if o.deployed().Role == "" {
		return fmt.Errorf("--%s is for --%s=%s and --%[2]s=%[4]s", worksNamespacesFlag, worksFlag, worksAdmin, worksClusterAdmin)
	}
	// An empty list, such as one of a variable that is not set, never means all.
	if len(o.namespaces) == 0 {
		return fmt.Errorf("--%s must name at least one namespace; omit the flag for all namespaces", worksNamespacesFlag)
	}
	for _, namespace := range o.namespaces {
		if why := validation.IsDNS1123Label(namespace); len(why) > 0 {
			return fmt.Errorf("--%s: %q is not the name of a namespace: %s", worksNamespacesFlag, namespace, strings.Join(why, "; "))
		}
		if namespace == registration.AgentNamespace {
			return fmt.Errorf("--%s must not include %s: it is the agent's own namespace, where works cannot have objects", worksNamespacesFlag, namespace)
		}
	}
	slices.Sort(o.namespaces)
	o.namespaces = slices.Compact(o.namespaces)
	return nil
}

// deployed returns what join deploys for works.
func (o *worksOptions) deployed() deploy.Works {
	if o.role == "" || o.role == worksNone {
		return deploy.Works{}
	}
	return deploy.Works{Role: o.role, Namespaces: o.namespaces}
}

// desired returns the same for the spec of a Klusterlet.
func (o *worksOptions) desired() map[string]any {
	works := o.deployed()
	wanted := map[string]any{"role": works.Role}
	if len(works.Namespaces) > 0 {
		namespaces := make([]any, len(works.Namespaces))
		for i, namespace := range works.Namespaces {
			namespaces[i] = namespace
		}
		wanted["namespaces"] = namespaces
	}
	return wanted
}

// worksResult has the permissions of an agent, for programs.
type worksResult struct {
	Role       string   `json:"role"`
	Namespaces []string `json:"namespaces,omitempty"`
}

func (o *worksOptions) result() (result worksResult, said string) {
	works := o.deployed()
	switch {
	case works.Role == "":
		return worksResult{Role: worksNone}, "It applies no works: join with --" + worksFlag + " to let it."
	case len(works.Namespaces) == 0:
		said = "It applies works with the rights of " + works.Role + " in all namespaces."
	default:
		said = "It applies works with the rights of " + works.Role + " in these namespaces: " + strings.Join(works.Namespaces, ", ") + "."
	}
	return worksResult{Role: works.Role, Namespaces: works.Namespaces}, said
}

// checkWorks rejects likely mistakes: a flag that was left out, so that the agent would stop applying works, and permissions in a namespace that does
// not exist.
func (m *managed) checkWorks(ctx context.Context, o *worksOptions) error {
	if m.scoped {
		return nil // the namespace is the agent's own, and its permissions are fixed
	}
	if o.role == "" {
		now, err := m.worksNow(ctx)
		if err != nil {
			return err
		}
		if now != "" {
			return fmt.Errorf("the agent of this cluster applies works (%s): set --%s to the rights with which it continues, or end this by --%[2]s=%[3]s",
				now, worksFlag, worksNone)
		}
	}
	if o.role == worksNone {
		if err := m.warnOfRemainingWorks(ctx); err != nil {
			return err
		}
	}
	var missing []string
	for _, name := range o.namespaces {
		err := m.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			missing = append(missing, name)
		} else if err != nil {
			return m.Explain(err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("--%s: the cluster does not have the namespaces %s: create them first", worksNamespacesFlag, strings.Join(missing, ", "))
	}
	return nil
}

// worksGiven returns the permissions for works that an earlier join has granted.
func (m *managed) worksGiven(ctx context.Context) (given deploy.Works, err error) {
	there, err := m.worksObjects(ctx)
	if err != nil {
		return given, err
	}
	for _, o := range there {
		if o.GetName() != deploy.WorksRights {
			continue
		}
		given.Role = remote.RoleRefOf(o).Name
		if o.GetNamespace() != "" {
			given.Namespaces = append(given.Namespaces, o.GetNamespace())
		}
	}
	return given, nil
}

// worksNow returns the flags with which the agent applies works now, or "" if it applies none.
func (m *managed) worksNow(ctx context.Context) (string, error) {
	given, err := m.worksGiven(ctx)
	switch {
	case err != nil:
		return "", err
	case given.Role != "" && len(given.Namespaces) == 0:
		return "--" + worksFlag + "=" + given.Role, nil
	case given.Role != "":
		return "--" + worksFlag + "=" + given.Role + " --" + worksNamespacesFlag + "=" + strings.Join(given.Namespaces, ","), nil
	}
	deployment := &appsv1.Deployment{}
	if err := m.Get(ctx, m.key(deploy.AgentName), deployment); err != nil {
		return "", m.Explain(client.IgnoreNotFound(err))
	}
	if _, appliesWorks := kit.AgentFlag(deployment, deploy.WorksFlag); appliesWorks {
		return "with rights that kubectl hub did not grant", nil
	}
	return "", nil
}

// worksService is the APIService of the group and version that AppliedManifestWorks have.
var worksService = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

const worksServiceName = "v1.work.open-cluster-management.io"

// forWorks returns all objects that join could have created for works, except RoleBindings, and the definition of the work records. It returns nil
// for an agent that is limited to one namespace: its objects do not depend on the permissions for works.
func (m *managed) forWorks() ([]*unstructured.Unstructured, error) {
	if m.scoped {
		return nil, nil
	}
	agent := m.agent(deploy.Works{Role: worksAdmin})
	agent.Upgradable = true
	whole, err := agent.Objects()
	if err != nil {
		return nil, err
	}
	without, err := m.agent(deploy.Works{}).Objects()
	if err != nil {
		return nil, err
	}
	others := idsOf(without)
	return slices.DeleteFunc(whole, func(o *unstructured.Unstructured) bool {
		id := remote.IDOf(o)
		return others.Has(id) || id.GroupKind == kit.CRDKind
	}), nil
}

func idsOf(objects []*unstructured.Unstructured) sets.Set[remote.ID] {
	ids := sets.New[remote.ID]()
	for _, o := range objects {
		ids.Insert(remote.IDOf(o))
	}
	return ids
}

// worksObjects returns the existing objects that an earlier join has created for works. An object with our name, but without our label, has another
// owner.
func (m *managed) worksObjects(ctx context.Context) (there []client.Object, err error) {
	wanted, err := m.forWorks()
	if err != nil || m.scoped {
		return nil, err
	}
	for _, o := range wanted {
		have, err := m.Objects.Get(ctx, o)
		if err != nil {
			return nil, m.Explain(err)
		}
		if have != nil && kit.Owner.Owns(have) {
			there = append(there, have)
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBindingList"))
	if err := m.List(ctx, list, client.MatchingLabels(kit.Owner.Labels)); err != nil {
		return nil, m.Explain(err)
	}
	for i := range list.Items {
		if binding := &list.Items[i]; binding.GetName() == deploy.WorksRights {
			binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
			there = append(there, binding)
		}
	}
	return there, nil
}

// dropFormerWorks deletes objects of an earlier join for works that are no longer desired. This comes before new permissions are granted, so that no
// join that fails leaves both.
func (m *managed) dropFormerWorks(ctx context.Context, wanted []*unstructured.Unstructured) error {
	there, err := m.worksObjects(ctx)
	if err != nil {
		return err
	}
	keep := idsOf(wanted)
	for _, o := range there {
		if keep.Has(remote.IDOf(o)) {
			continue
		}
		if _, err := m.Remove(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// withoutServed leaves out the definition of AppliedManifestWorks if the cluster has the kind already: a hub serves it itself, and another agent may
// have created the same definition.
func (m *managed) withoutServed(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return remote.IDOf(o).GroupKind == kit.CRDKind })
	if at < 0 {
		return objects, nil
	}
	native, err := m.servesWorks(ctx)
	if err != nil {
		return nil, err
	}
	have, err := m.Objects.Get(ctx, objects[at])
	if err != nil {
		return nil, m.Explain(err)
	}
	if native || have != nil && !kit.Owner.Owns(have) {
		return slices.Delete(slices.Clone(objects), at, at+1), nil
	}
	return objects, nil
}

// servesWorks reports whether an aggregated API server serves the group of works. It would hide definitions of the group's kinds.
func (m *managed) servesWorks(ctx context.Context) (bool, error) {
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(worksService)
	if err := m.Get(ctx, client.ObjectKey{Name: worksServiceName}, service); err != nil {
		return false, m.Explain(client.IgnoreNotFound(err))
	}
	backend, found, err := unstructured.NestedMap(service.Object, "spec", "service")
	return found && len(backend) > 0, err
}

// tryRights checks whether the user may grant the permissions for works, before anything is changed: an API server rejects grants that exceed the
// user's own permissions. It uses generated names, since some changes of existing objects need a replacement.
func (m *managed) tryRights(ctx context.Context, objects []*unstructured.Unstructured) error {
	wanted, err := m.forWorks()
	if err != nil {
		return err
	}
	isForWorks := idsOf(wanted)
	for _, o := range objects {
		binds := o.GetName() == deploy.WorksRights
		if !binds && (o.GetKind() != "ClusterRole" || !isForWorks.Has(remote.IDOf(o))) {
			continue
		}
		err := m.dryRunCreate(ctx, o)
		if escalation := (*escalationError)(nil); errors.As(err, &escalation) {
			return fmt.Errorf("this user may not grant the agent the rights of %s: users can only grant rights that they have. "+
				"Have an admin of the cluster run kubectl hub join, or grant fewer rights by --%s and --%s", escalation.id, worksFlag, worksNamespacesFlag)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// escalationError reports that a user may not grant permissions that it does not have.
type escalationError struct{ id remote.ID }

func (e *escalationError) Error() string {
	return fmt.Sprintf("this user may not grant the rights of %s: users can only grant rights that they have", e.id)
}

// dryRunCreate checks by a dry run whether an object could be created.
func (m *managed) dryRunCreate(ctx context.Context, o *unstructured.Unstructured) error {
	try := o.DeepCopy()
	try.SetName("")
	try.SetGenerateName(o.GetName() + "-")
	err := m.Create(ctx, try, client.DryRunAll, kit.FieldOwner)
	switch {
	case err == nil:
		return nil
	case kit.IsEscalation(err):
		return &escalationError{remote.IDOf(o)}
	}
	return fmt.Errorf("checking by a dry run whether %s can be created: %w", remote.IDOf(o), m.Explain(err))
}
