// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package executor limits works to the rights of the ServiceAccounts that they name.
package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// Again is the delay before the rights of an account are checked again after a denial. The message of Denied has it.
const Again = time.Minute

// Access describes how a work accesses an object. A work that only reads needs the right to get the object and no other.
type Access struct {
	apply.Manifest
	// Delete is whether the object will be deleted with the work.
	Delete bool
}

// Denied reports that an account does not have the rights that a manifest needs. The message is upstream's.
type Denied struct {
	apply.Target
	// Why is the reason, if it is known.
	Why string
}

func (e *Denied) Error() string {
	text := fmt.Sprintf("not allowed to apply the resource %s %s, %s %s, will try again in %s", e.Group, e.Resource, e.Namespace, e.Name, Again)
	if e.Why != "" {
		text += ", error: " + e.Why
	}
	return text
}

// AccountClient is how an account accesses the cluster.
type AccountClient struct {
	Client dynamic.Interface
	// OnlyByName is the function for apply.Applier; nil if the client is the agent's own.
	OnlyByName func(context.Context, apply.Target) (bool, error)
}

// Executors check the rights of accounts in the cluster. They cache nothing, since rights may be revoked at any time.
type Executors struct {
	config *rest.Config
	kube   kubernetes.Interface
	own    dynamic.Interface
	// only is the only namespace in which the agent may request checks; empty for the whole cluster.
	only string
}

// New returns the Executors for the agent's own configuration. only is the one namespace that the agent has rights in; empty for the whole cluster.
func New(config *rest.Config, only string) (*Executors, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	own, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Executors{config: config, kube: kube, own: own, only: only}, nil
}

// For returns the way to access an object in the cluster with the rights of an account. If the agent may impersonate the account, the client does so:
// then the cluster checks each write, whatever was checked before. Otherwise the client is the agent's own.
func (e *Executors) For(ctx context.Context, account *workv1.ManifestWorkSubjectServiceAccount, access Access) (AccountClient, error) {
	info := serviceaccount.UserInfo(account.Namespace, account.Name, "")
	for _, verb := range verbs(access) {
		if err := e.review(ctx, info, access.Target, verb); err != nil {
			return AccountClient{}, err
		}
	}
	stand, err := e.mayStandInFor(ctx, account)
	if err != nil {
		return AccountClient{}, err
	}
	if !stand {
		if escalates(access.Target) && access.Strategy.Type != apply.ReadOnly {
			// The cluster would check the agent's rights, and not the account's.
			return AccountClient{}, &Denied{Target: access.Target, Why: "the agent may not impersonate the account, so that the cluster cannot check it for permission escalation"}
		}
		return AccountClient{Client: e.own}, nil
	}
	config := rest.CopyConfig(e.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: info.GetName()}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return AccountClient{}, err
	}
	if escalates(access.Target) && access.Strategy.Type != apply.ReadOnly {
		err = dryRun(ctx, client, access)
	}
	return AccountClient{Client: client, OnlyByName: func(ctx context.Context, t apply.Target) (bool, error) {
		t.Name = "" // as in the create request
		err := e.review(ctx, info, t, "create")
		var denied *Denied
		if errors.As(err, &denied) {
			return true, nil // For has checked this with the name
		}
		return false, err
	}}, err
}

// Self returns why the agent itself must not do something with an object for a work, or nil if RBAC alone decides. The cluster checks each write
// against all rights of the agent, which has more rights than works may use: it creates and labels the namespaces that the hub asks for, and RBAC
// does not know the purpose of a right. With that right, and the one to read a namespace in which works have objects, a work could remove the labels
// by which the cluster restricts the pods of the namespace. So for namespaces, Self checks rights that only works need. The agent must have them in
// the whole cluster, not only in the namespace.
func (e *Executors) Self(ctx context.Context, access Access) error {
	t := access.Target
	if t.Group != "" || t.Resource != "namespaces" || access.Strategy.Type == apply.ReadOnly {
		return nil
	}
	needed := []string{"update"}
	if access.Delete {
		needed = append(needed, "delete")
	}
	for _, verb := range needed {
		allowed, err := e.askForSelf(ctx, authorizationv1.ResourceAttributes{Version: t.Version, Resource: t.Resource, Name: t.Name, Verb: verb})
		if err != nil {
			return fmt.Errorf("checking whether the agent may %s %s: %w", verb, t, err)
		}
		if !allowed {
			return apierrors.NewForbidden(t.GroupResource(), t.Name, fmt.Errorf(
				"works that have a namespace need the right to %s it, in the whole cluster: the agent may not %s it", strings.Join(needed, " and "), verb))
		}
	}
	return nil
}

// verbs returns the verbs that a work needs for an object.
func verbs(access Access) []string {
	if access.Strategy.Type == apply.ReadOnly {
		return []string{"get"}
	}
	all := []string{"create", "update", "patch", "get"}
	if access.Delete {
		all = append(all, "delete")
	}
	return all
}

// review checks that an account may do something. If not, the error is a Denied.
func (e *Executors) review(ctx context.Context, info user.Info, t apply.Target, verb string) error {
	spec := authorizationv1.SubjectAccessReviewSpec{User: info.GetName(), Groups: append(info.GetGroups(), user.AllAuthenticated),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: t.Group, Version: t.Version, Resource: t.Resource, Namespace: t.Namespace, Name: t.Name, Verb: verb}}
	allowed, err := e.ask(ctx, spec)
	if err != nil {
		return fmt.Errorf("checking whether %s may %s %s: %w", info.GetName(), verb, t, err)
	}
	if !allowed {
		return &Denied{Target: t}
	}
	return nil
}

// ask creates a SubjectAccessReview. An agent of one namespace can only check rights in that namespace, and denies all others.
func (e *Executors) ask(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	if e.only == "" {
		answer, err := e.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	}
	if spec.ResourceAttributes.Namespace != e.only {
		return false, nil
	}
	answer, err := e.kube.AuthorizationV1().LocalSubjectAccessReviews(e.only).Create(ctx, &authorizationv1.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.only}, Spec: spec}, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

func (e *Executors) mayStandInFor(ctx context.Context, account *workv1.ManifestWorkSubjectServiceAccount) (bool, error) {
	allowed, err := e.askForSelf(ctx, authorizationv1.ResourceAttributes{
		Resource: "serviceaccounts", Namespace: account.Namespace, Name: account.Name, Verb: "impersonate"})
	if err != nil {
		return false, fmt.Errorf("checking whether the agent may impersonate ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	return allowed, nil
}

// askForSelf returns whether the agent itself has a right.
func (e *Executors) askForSelf(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	answer, err := e.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

// escalates reports whether a user who may write an object may gain rights by it.
func escalates(t apply.Target) bool {
	if t.Group != "rbac.authorization.k8s.io" {
		return false
	}
	switch t.Resource {
	case "roles", "rolebindings", "clusterroles", "clusterrolebindings":
		return true
	}
	return false
}

// dryRun checks by a dry run that an account may create an RBAC object: the account must have the rights that the object grants.
func dryRun(ctx context.Context, client dynamic.Interface, access Access) error {
	object := access.Object.DeepCopy()
	object.SetNamespace(access.Namespace)
	object.SetUID("")
	object.SetResourceVersion("")
	_, err := client.Resource(access.GroupVersionResource).Namespace(access.Namespace).Create(ctx, object,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsForbidden(err):
		return &Denied{Target: access.Target, Why: "permission escalation"}
	case apierrors.IsAlreadyExists(err):
		return nil
	}
	return err
}
