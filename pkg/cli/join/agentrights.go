// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// agentState is the observed state of an agent in the cluster.
type agentState struct {
	// found reports whether there is an agent of ours, or objects that remain of one.
	found, scoped bool
	clusterName   string
}

// find finds an agent in the namespace. The ServiceAccount is created first and deleted last.
func (m *managed) find(ctx context.Context) (there agentState, err error) {
	deployment, account := &appsv1.Deployment{}, &corev1.ServiceAccount{}
	for name, object := range map[string]client.Object{deploy.AgentName: deployment, registration.AgentServiceAccount: account} {
		if err := m.Get(ctx, m.key(name), object); client.IgnoreNotFound(err) != nil {
			return there, m.Explain(err)
		}
		if kit.Owner.Owns(object) {
			there.found = true
			there.scoped = there.scoped || object.GetLabels()[deploy.LabelScope] == deploy.ScopeNamespace
		}
	}
	if kit.Owner.Owns(deployment) {
		there.clusterName, _ = kit.AgentFlag(deployment, deploy.ClusterNameFlag)
	}
	have, err := m.identity(ctx)
	if err == nil && have.clusterName != "" {
		there.clusterName = have.clusterName
	}
	return there, err
}

// checkNamespace returns an error if the namespace does not exist or is being deleted.
func (m *managed) checkNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	err := m.Get(ctx, client.ObjectKey{Name: m.namespace}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the cluster has no namespace %s: ask an admin of the cluster to run kubectl create namespace %[1]s, and to grant you rights there", m.namespace)
	case apierrors.IsForbidden(err):
		return m.askFor(ctx, fmt.Sprintf("this user may not get the namespace %s, if it exists", m.namespace))
	case err != nil:
		return m.Explain(err)
	case !namespace.DeletionTimestamp.IsZero():
		return fmt.Errorf("the namespace %s is being deleted: wait until it is gone, and create it again", m.namespace)
	}
	return nil
}

// checkCreate returns an error that lists, in one line, the permissions that the user lacks to create or patch the objects and to see the state of the
// agent.
func (m *managed) checkCreate(ctx context.Context, objects []*unstructured.Unstructured) error {
	rights, err := m.rightsTo(objects, "get", "create", "patch")
	if err != nil {
		return err
	}
	return m.checkAllowed(ctx, append(rights, m.inNamespace("", "pods", "list")...), "nothing was created")
}

// checkRemove returns an error that lists the permissions that the user lacks to have the agent leave, and to delete it.
func (m *managed) checkRemove(ctx context.Context, objects []*unstructured.Unstructured) error {
	rights, err := m.rightsTo(objects, "get", "delete")
	if err != nil {
		return err
	}
	rights = slices.Concat(rights, m.inNamespace("apps", "deployments", "patch"), m.inNamespace("", "pods", "list"),
		m.inNamespace("batch", "jobs", "get", "list", "create", "delete"))
	if m.scoped {
		rights = append(rights, m.inNamespace("", "configmaps", "get", "list", "delete")...)
	}
	return m.checkAllowed(ctx, rights, "nothing was removed")
}

func (m *managed) inNamespace(group, resource string, verbs ...string) (rights []authorizationv1.ResourceAttributes) {
	for _, verb := range verbs {
		rights = append(rights, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: m.namespace})
	}
	return rights
}

// rightsTo returns the permissions for the verbs on the objects, without duplicates.
func (m *managed) rightsTo(objects []*unstructured.Unstructured, verbs ...string) (rights []authorizationv1.ResourceAttributes, err error) {
	for _, o := range objects {
		kind := o.GroupVersionKind()
		mapping, err := m.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("discovering the kind %s in the cluster: %w", kind.Kind, m.Explain(err))
		}
		for _, verb := range verbs {
			right := authorizationv1.ResourceAttributes{Verb: verb, Group: kind.Group, Resource: mapping.Resource.Resource, Namespace: o.GetNamespace()}
			if !slices.Contains(rights, right) {
				rights = append(rights, right)
			}
		}
	}
	return rights, nil
}

// checkAllowed returns an error that lists the permissions that the user does not have.
func (m *managed) checkAllowed(ctx context.Context, rights []authorizationv1.ResourceAttributes, so string) error {
	kube, err := kubernetes.NewForConfig(m.Config)
	if err != nil {
		return err
	}
	all := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	if allowed, err := kit.IsAllowed(ctx, kube, all); err != nil || allowed {
		return m.Explain(err)
	}
	// missing has an entry for each resource, such as "create, patch roles.rbac.authorization.k8s.io".
	var missing []string
	last, verbs := authorizationv1.ResourceAttributes{}, []string(nil)
	flush := func() {
		if len(verbs) > 0 {
			words := last
			words.Verb = strings.Join(verbs, ", ")
			missing = append(missing, kit.DescribeRight(words))
		}
		verbs = nil
	}
	for _, right := range rights {
		if right.Resource != last.Resource || right.Group != last.Group || right.Namespace != last.Namespace {
			flush()
		}
		last = right
		allowed, err := kit.IsAllowed(ctx, kube, right)
		if err != nil {
			return fmt.Errorf("checking what this user may do in the cluster: %w", m.Explain(err))
		}
		if !allowed {
			verbs = append(verbs, right.Verb)
		}
	}
	flush()
	if len(missing) == 0 {
		return nil
	}
	return m.askFor(ctx, "this user may not "+strings.Join(missing, "; ")+" ("+so+")")
}

// askFor returns an error that says whom to ask for the missing permissions.
func (m *managed) askFor(ctx context.Context, missing string) error {
	if !m.scoped {
		return fmt.Errorf("%s: have an admin of the cluster run this command, or install an agent of one namespace by --%s NAMESPACE without --%s", missing,
			namespaceFlag, wholeFlag)
	}
	kube, err := kubernetes.NewForConfig(m.Config)
	if err != nil {
		return err
	}
	self, err := kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("%s: ask an admin of the cluster for the ClusterRole %s in the namespace %s", missing, worksAdmin, m.namespace)
	}
	return fmt.Errorf("%s: ask an admin of the cluster to run %s", missing, bindCommand(self.Status.UserInfo.Username, m.namespace))
}

// bindCommand returns the command that makes a user an admin of a namespace.
func bindCommand(user, namespace string) string {
	name, subject := user, "--user="+user
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		if of, account, ok := strings.Cut(rest, ":"); ok {
			name, subject = account, "--serviceaccount="+of+":"+account
		}
	}
	name = strings.Trim(notInLabels.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if !kit.PlainWord.MatchString(subject) {
		subject = "'" + strings.ReplaceAll(command.Printable(subject), "'", `'\''`) + "'"
	}
	return fmt.Sprintf("kubectl create rolebinding %s-%s --clusterrole=%[2]s %s --%s=%s", name[:min(len(name), 200)], worksAdmin, subject, namespaceFlag, namespace)
}

// tryAllRights checks, before anything is created, whether the user may grant the permissions that the objects grant. A binding to a role that is
// among the objects grants the permissions of that role.
func (m *managed) tryAllRights(ctx context.Context, objects []*unstructured.Unstructured) error {
	made := idsOf(objects)
	for _, o := range objects {
		switch o.GetKind() {
		case "Role", "ClusterRole":
		case "RoleBinding", "ClusterRoleBinding":
			role := remote.RoleRefOf(o)
			id := remote.IDOf(o)
			id.Kind, id.Name = role.Kind, role.Name
			if role.Kind == "ClusterRole" {
				id.Namespace = ""
			}
			if made.Has(id) {
				continue
			}
		default:
			continue
		}
		if o.GetNamespace() != "" && !m.scoped {
			continue // the namespace may not exist yet; the rights are those of the cluster
		}
		err := m.dryRunCreate(ctx, o)
		var escalation *escalationError
		switch {
		case errors.As(err, &escalation):
			return m.askFor(ctx, fmt.Sprintf("this user may not grant the rights of %s, because it does not have them (nothing was created)", escalation.id))
		case err != nil:
			return err
		}
	}
	return nil
}
