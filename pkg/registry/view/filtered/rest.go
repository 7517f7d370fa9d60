// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filtered is the REST of derived resources: get, list and watch of what the RBAC rules let a user see.
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

// Config is what every derived resource is made from.
type Config struct {
	// Fleet tells how to read what objects are computed from: see derived.Fleet.
	Fleet *storagebackend.ConfigForResource
	// Connect makes the client of etcd that the fleet is followed with, by dialling when nil.
	Connect backend.Connect
	// Rules are what decides who sees what. They are those of all derived resources.
	Rules      *visibility.Rules
	Authorizer authorizer.Authorizer
}

// Objects are all objects of the resource, whoever may see them.
type Objects interface {
	visibility.Source
	Destroy()
}

// Names are what kubectl takes for the resource besides its plural.
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
	// indexed are the fields by which lists are not searched, but looked up.
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

// New makes the REST of the objects that a reader reads.
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
