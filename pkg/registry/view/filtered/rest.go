// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filtered is the REST of derived resources: get, list and watch of what RBAC rules allow a user to see.
package filtered

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
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

// Config is the configuration of every derived resource.
type Config struct {
	// Fleet is the configuration to read the source of the objects: see derived.Fleet.
	Fleet *storagebackend.ConfigForResource
	// Connect creates the client of etcd to follow the fleet; the default is to dial.
	Connect backend.Connect
	// Rules decide who sees what. All derived resources share them.
	Rules      *visibility.Rules
	Authorizer authorizer.Authorizer
}

// Objects are all objects of the resource, independent of their visibility.
type Objects interface {
	visibility.Source
	Destroy()
}

// Names are the names of the resource for kubectl in addition to its plural.
type Names struct {
	Singular string
	Short    []string
}

// REST serves a derived resource.
type REST struct {
	rest.TableConvertor
	Visible visibility.Reader

	objects Objects
	names   Names
	// indexed are the fields that are indexed for lists.
	indexed []string
}

var (
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Watcher              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// New returns the REST of the objects of a reader.
func New(objects Objects, visible visibility.Reader, table rest.TableConvertor, names Names, indexed ...string) *REST {
	visible.Objects = objects
	return &REST{TableConvertor: table, Visible: visible, objects: objects, names: names, indexed: indexed}
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return r.Visible.Resource.New() }

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return r.Visible.Resource.NewList() }

// Destroy implements rest.Storage.
func (r *REST) Destroy() {
	r.objects.Destroy()
	r.Visible.Rules.Destroy()
}

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return r.names.Singular }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return r.names.Short }

// Get implements rest.Getter.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	who, err := userFrom(ctx)
	if err != nil {
		return nil, err
	}
	return r.Visible.Get(ctx, who, name, options)
}

// List implements rest.Lister.
func (r *REST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	who, err := userFrom(ctx)
	if err != nil {
		return nil, err
	}
	opts, err := r.listOptions(options)
	if err != nil {
		return nil, err
	}
	return r.Visible.List(ctx, who, opts)
}

// Watch implements rest.Watcher.
func (r *REST) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	who, err := userFrom(ctx)
	if err != nil {
		return nil, err
	}
	opts, err := r.watchOptions(options)
	if err != nil {
		return nil, err
	}
	return r.Visible.Watch(ctx, who, opts)
}

func userFrom(ctx context.Context) (user.Info, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	return who, nil
}
