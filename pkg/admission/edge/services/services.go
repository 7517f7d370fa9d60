// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package services finds the EdgeServices that policies and patterns name, as far as their author may use them. The admission plugins that read
// services share it: for them, a service that a user may not use does not exist, also in warnings.
package services

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

const (
	// maxAsked is the largest number of services that are authorized by name for one request. The permission on all services of a namespace is
	// checked before.
	maxAsked = 64
	anyArch  = "*"
)

// Wanted is a service that a policy or a pattern names. Validation has limited their number.
type Wanted struct {
	Namespace, URL, Arch string
	Versions             []string
	// Path is its path in the object, and VersionsPath the path of its versions.
	Path, VersionsPath *field.Path
}

// OfPolicy returns the service of a policy of this namespace.
func OfPolicy(namespace string, spec *edge.DeploymentPolicySpec) []Wanted {
	path := field.NewPath("spec", "service")
	return []Wanted{namedServices(namespace, spec.Service.Org, spec.Service.Name, spec.Service.Arch, spec.Service.ServiceVersions, path)}
}

// OfPattern returns the services of a pattern of this namespace.
func OfPattern(namespace string, spec *edge.DeploymentPatternSpec) []Wanted {
	var all []Wanted
	for i := range spec.Services {
		s := &spec.Services[i]
		all = append(all, namedServices(namespace, s.ServiceOrgid, s.ServiceUrl, s.ServiceArch, s.ServiceVersions, field.NewPath("spec", "services").Index(i)))
	}
	return all
}

func namedServices(namespace, org, url, arch string, versions []edge.ServiceVersion, path *field.Path) Wanted {
	w := Wanted{Namespace: org, URL: url, Arch: arch, Path: path, VersionsPath: path.Child("serviceVersions")}
	if org == "" {
		w.Namespace = namespace
	}
	for i := range versions {
		w.Versions = append(w.Versions, versions[i].Version)
	}
	return w
}

// matches reports whether a service has one of the named versions and the architecture.
func (w *Wanted) matches(s *edge.EdgeService) bool {
	return s.Namespace == w.Namespace && s.Spec.URL == w.URL && slices.Contains(w.Versions, s.Spec.Version) &&
		(w.Arch == "" || w.Arch == anyArch || s.Spec.Arch == anyArch || s.Spec.Arch == w.Arch)
}

// Finder finds services for one request.
type Finder struct {
	services   rest.Lister
	authorizer authorizer.Authorizer
	who        user.Info
	// namespace is the namespace of the policy or pattern.
	namespace string

	listed map[[2]string]list
	all    map[string]accessDecision
	byName map[[2]string]accessDecision
	// Used are the rules by which the user may use what was found.
	Used []rbac.Permission
}

// list has services from the cache or, if fresh, from the store.
type list struct {
	items []edge.EdgeService
	fresh bool
}

type accessDecision struct {
	allowed bool
	err     error
}

// NewFinder returns a Finder for a policy or a pattern of this namespace, written by this user.
func NewFinder(services rest.Lister, a authorizer.Authorizer, who user.Info, namespace string) *Finder {
	return &Finder{services: services, authorizer: a, who: who, namespace: namespace, listed: map[[2]string]list{},
		all: map[string]accessDecision{}, byName: map[[2]string]accessDecision{}}
}

// Find returns the existing services that the user may use, and the indexes of the versions without such a service. It uses the cache if that has all
// of them, and reads from the store before it reports one as missing. The result is shared with the cache and must not be changed.
func (f *Finder) Find(ctx context.Context, w *Wanted) (found []edge.EdgeService, missing []int, err error) {
	for _, fresh := range []bool{false, true} {
		list, err := f.list(ctx, w, fresh)
		if err != nil {
			return nil, nil, err
		}
		found, missing, err = f.usable(ctx, w, list.items)
		if err != nil || len(missing) == 0 || list.fresh {
			return found, missing, err
		}
	}
	return found, missing, nil
}

// Gone reports whether no service exists of a version that Find has reported as missing, not even for other users. It returns false if that is not
// certain.
func (f *Finder) Gone(w *Wanted, index int) bool {
	known := f.listed[[2]string{w.Namespace, w.URL}]
	if !known.fresh {
		return false
	}
	for i := range known.items {
		if s := &known.items[i]; s.Spec.Version == w.Versions[index] && w.matches(s) {
			return false
		}
	}
	return true
}

// Names reports whether one of these names a version in the same words.
func Names(all []Wanted, w *Wanted, version string) bool {
	return slices.ContainsFunc(all, func(have Wanted) bool {
		return have.Namespace == w.Namespace && have.URL == w.URL && have.Arch == w.Arch && slices.Contains(have.Versions, version)
	})
}

func (f *Finder) usable(ctx context.Context, w *Wanted, list []edge.EdgeService) (found []edge.EdgeService, missing []int, err error) {
	there := map[string]bool{}
	for i := range list {
		s := &list[i]
		if !w.matches(s) {
			continue
		}
		may, err := f.may(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		if may {
			there[s.Spec.Version] = true
			found = append(found, *s)
		}
	}
	for i, version := range w.Versions {
		if !there[version] {
			missing = append(missing, i)
		}
	}
	return found, missing, nil
}

// may reports whether the user may use a service: one of the same namespace, a public one, or one that the user may get.
func (f *Finder) may(ctx context.Context, s *edge.EdgeService) (bool, error) {
	if s.Namespace == f.namespace || s.Spec.Public {
		return true, nil
	}
	all, known := f.all[s.Namespace]
	if !known {
		all = f.query(ctx, s.Namespace, "")
		f.all[s.Namespace] = all
	}
	if all.allowed || all.err != nil {
		return all.allowed, all.err
	}
	key := [2]string{s.Namespace, s.Name}
	one, known := f.byName[key]
	if !known && len(f.byName) < maxAsked {
		one = f.query(ctx, s.Namespace, s.Name)
		f.byName[key] = one
	}
	return one.allowed, one.err
}

// Get returns the permission to get one or all services of a namespace.
func Get(namespace, name string) rbac.Permission {
	return rbac.Permission{Verb: "get", Group: edge.GroupName, Resource: "edgeservices", Namespace: namespace, Name: name}
}

func (f *Finder) query(ctx context.Context, namespace, name string) accessDecision {
	held, err := permission.Holds(ctx, f.authorizer, f.who, Get(namespace, name))
	if held != nil {
		f.Used = append(f.Used, *held)
	}
	return accessDecision{held != nil, err}
}

// list returns the services of one name in a namespace. It reads them at most once from the cache, and once from the store.
func (f *Finder) list(ctx context.Context, w *Wanted, fresh bool) (list, error) {
	if f.services == nil {
		return list{}, apierrors.NewServiceUnavailable("the server is still starting: try again in a few seconds")
	}
	key := [2]string{w.Namespace, w.URL}
	if known, there := f.listed[key]; there && (known.fresh || !fresh) {
		return known, nil
	}
	options := &metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.url", w.URL)}
	if !fresh {
		options.ResourceVersion = "0"
	}
	object, err := f.services.List(request.WithNamespace(ctx, w.Namespace), options)
	if err != nil {
		return list{}, fmt.Errorf("the EdgeServices %q in namespace %q cannot be read: %w", w.URL, w.Namespace, err)
	}
	found, ok := object.(*edge.EdgeServiceList)
	if !ok {
		return list{}, apierrors.NewInternalError(fmt.Errorf("the list of EdgeServices is a %T", object))
	}
	f.listed[key] = list{found.Items, fresh}
	return f.listed[key], nil
}
