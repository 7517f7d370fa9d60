// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package executor lets the ServiceAccounts that works name do what they may, and no more.
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

// Again is when an account is asked about again that may not do something. It stands in Denied's text.
const Again = time.Minute

// Access is what is to be done with an object. What is read only needs no more than the right to get it.
type Access struct {
	apply.Manifest
	// Delete says that the object is to be deleted one day.
	Delete bool
}

// Denied is that an account may not do what a manifest asks for. The text is upstream's.
type Denied struct {
	apply.Target
	// Why is more about it, if there is more.
	Why string
}

func (e *Denied) Error() string {
	text := fmt.Sprintf("not allowed to apply the resource %s %s, %s %s, will try again in %s", e.Group, e.Resource, e.Namespace, e.Name, Again)
	if e.Why != "" {
		text += ", error: " + e.Why
	}
	return text
}

// Way is how an account does what it may.
type Way struct {
	Client dynamic.Interface
	// OnlyByName is apply.Applier's, nil where the client is the agent's own.
	OnlyByName func(context.Context, apply.Target) (bool, error)
}

// Executors ask the cluster what an account may do, each time: what was true a minute ago may have been withdrawn.
type Executors struct {
	config *rest.Config
	kube   kubernetes.Interface
	own    dynamic.Interface
	// only is the one namespace in which the agent may ask; empty for all of the cluster.
	only string
}

// New takes the agent's own way to the cluster, and the one namespace that it has rights in, if it has no others.
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

// For is the way to the cluster with the rights of an account, to do something with an object there. Where the agent may stand in for the account, the way is the account's own: then the cluster checks
// each write, whatever was asked before. Else it is the agent's.
func (e *Executors) For(ctx context.Context, account *workv1.ManifestWorkSubjectServiceAccount, access Access) (Way, error) {
	info := serviceaccount.UserInfo(account.Namespace, account.Name, "")
	for _, verb := range verbs(access) {
		if err := e.review(ctx, info, access.Target, verb); err != nil {
			return Way{}, err
		}
	}
	stand, err := e.mayStandInFor(ctx, account)
	if err != nil {
		return Way{}, err
	}
	if !stand {
		if escalates(access.Target) && access.Strategy.Type != apply.ReadOnly {
			// The cluster would check the agent's rights, and not the account's.
			return Way{}, &Denied{Target: access.Target, Why: "the agent may not impersonate the account, so that the cluster cannot check it for permission escalation"}
		}
		return Way{Client: e.own}, nil
	}
	config := rest.CopyConfig(e.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: info.GetName()}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return Way{}, err
	}
	if escalates(access.Target) && access.Strategy.Type != apply.ReadOnly {
		err = tryOut(ctx, client, access)
	}
	return Way{Client: client, OnlyByName: func(ctx context.Context, t apply.Target) (bool, error) {
		t.Name = "" // as in the request
		err := e.review(ctx, info, t, "create")
		var denied *Denied
		if errors.As(err, &denied) {
			return true, nil // For has asked with the name
		}
		return false, err
	}}, err
}

// Self says why the agent itself may not do something with an object for a work; nil where the cluster sees to that. It checks each write, but with all that the
// agent may do, which is more than what works may: the agent makes and labels the namespaces that the hub asks for, and RBAC does not know what
// a right is for. With that right, and the one to read a namespace in which works have objects, a work could take the labels from it by which the cluster
// bounds its pods. So for a namespace the rights are asked for that only works need. They have to hold in the whole cluster, not in the namespace itself.
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
			return fmt.Errorf("asking whether the agent may %s %s: %w", verb, t, err)
		}
		if !allowed {
			return apierrors.NewForbidden(t.GroupResource(), t.Name, fmt.Errorf(
				"works that have a namespace need the right to %s it, in the whole cluster: the agent may not %s it", strings.Join(needed, " and "), verb))
		}
	}
	return nil
}

// verbs are the rights that bringing an object takes.
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

// review asks whether an account may do something.
func (e *Executors) review(ctx context.Context, info user.Info, t apply.Target, verb string) error {
	spec := authorizationv1.SubjectAccessReviewSpec{User: info.GetName(), Groups: append(info.GetGroups(), user.AllAuthenticated),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: t.Group, Version: t.Version, Resource: t.Resource, Namespace: t.Namespace, Name: t.Name, Verb: verb}}
	allowed, err := e.ask(ctx, spec)
	if err != nil {
		return fmt.Errorf("asking whether %s may %s %s: %w", info.GetName(), verb, t, err)
	}
	if !allowed {
		return &Denied{Target: t}
	}
	return nil
}

// ask has the cluster answer. An agent of one namespace can ask about that only, and about nothing else is anything allowed.
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
		return false, fmt.Errorf("asking whether the agent may impersonate ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	return allowed, nil
}

// askForSelf has the cluster answer what the agent itself may do.
func (e *Executors) askForSelf(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	answer, err := e.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

// escalates says whether whoever may write an object may get more rights by it than they have.
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

// tryOut has the cluster say whether an account may make an object of RBAC: who makes one has to have what it gives.
func tryOut(ctx context.Context, client dynamic.Interface, access Access) error {
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
