// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetmember is the registry of clustersetmembers, a virtual resource. Below it, derived computes all members
// from the clusters and sets in etcd, and visibility shows each user those of the sets that the user may get.
package clustersetmember

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/derived"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/position"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/visibility"
)

// Config is what the registry needs.
type Config struct {
	// RESTOptions tells where clusters and sets are stored.
	RESTOptions generic.RESTOptionsGetter
	// Connect makes the client of etcd that the fleet is followed with, by dialling when nil.
	Connect backend.Connect
	// ViewCodec encodes members, for the cacher's checks; nothing is stored with it.
	ViewCodec runtime.Codec
	// FleetCodec encodes visibility revisions and decodes all that is under position.FleetPrefix.
	FleetCodec runtime.Codec
	Authorizer authorizer.Authorizer
	// Front has the RBAC rules.
	Front rbacclient.RbacV1Interface
}

// REST serves clustersetmembers.
type REST struct {
	rest.TableConvertor
	members *derived.Cache
	visible visibility.Reader
}

var (
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Watcher              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// New makes the registry. Run has to be called to keep it up to date with the RBAC rules.
func New(config Config) (*REST, error) {
	fleet, err := derived.Fleet(config.RESTOptions, config.FleetCodec)
	if err != nil {
		return nil, err
	}
	rules, err := visibility.NewRules(fleet, config.Front)
	if err != nil {
		return nil, err
	}
	members, err := derived.New(fleet, config.Connect, config.ViewCodec, rules)
	if err != nil {
		rules.Destroy()
		return nil, err
	}
	return &REST{
		TableConvertor: tableConvertor,
		members:        members,
		visible:        visibility.Reader{Members: members, Rules: rules, Authorizer: config.Authorizer},
	}, nil
}

// Run follows the RBAC rules until the context ends.
func (r *REST) Run(ctx context.Context) { r.visible.Rules.Run(ctx) }

// Ready says whether members can be served.
func (r *REST) Ready() error {
	if err := r.members.Check(); err != nil {
		return err
	}
	if r.visible.Rules.Latest() == nil {
		return errors.New("the RBAC rules of the hub have not been listed yet")
	}
	return nil
}

// Count returns the number of clusters in a set, as far as this replica has seen.
func (r *REST) Count(ctx context.Context, setName string) (int, error) {
	list := &view.ClusterSetMemberList{}
	err := r.members.GetList(ctx, position.SetKey(setName), storage.ListOptions{Recursive: true, ResourceVersion: "0", Predicate: storage.Everything}, list)
	return len(list.Items), err
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return &view.ClusterSetMember{} }

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return &view.ClusterSetMemberList{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {
	r.members.Destroy()
	r.visible.Rules.Destroy()
}

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return "clustersetmember" }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{"csm"} }

// Get implements rest.Getter.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	who, err := userFrom(ctx)
	if err != nil {
		return nil, err
	}
	member, err := r.visible.Get(ctx, who, name, options)
	if err != nil {
		return nil, err
	}
	return member, nil
}

// List implements rest.Lister.
func (r *REST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	who, err := userFrom(ctx)
	if err != nil {
		return nil, err
	}
	opts, err := listOptions(options)
	if err != nil {
		return nil, err
	}
	list, err := r.visible.List(ctx, who, opts)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Watch implements rest.Watcher.
func (r *REST) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	who, err := userFrom(ctx)
	if err != nil {
		return nil, err
	}
	opts, err := watchOptions(options)
	if err != nil {
		return nil, err
	}
	return r.visible.Watch(ctx, who, opts)
}

func userFrom(ctx context.Context) (user.Info, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	return who, nil
}
