// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetmember is the registry of clustersetmembers, a virtual resource: it is computed from the clusters
// and sets in etcd (derive.go), kept and served by the cacher of k8s.io/apiserver, and shown to each user as far as
// he may get the sets (access.go, watch.go).
package clustersetmember

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/cacher/delegator"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/position"
)

const revisionKey = position.FleetPrefix + "/" + visibility.Resource + "/" + visibility.Name

var versioner = storage.APIObjectVersioner{}

// Config is what the registry needs.
type Config struct {
	// RESTOptions tells where clusters are stored.
	RESTOptions generic.RESTOptionsGetter
	// Connect makes the client of etcd that the fleet is followed with, by dialling when nil.
	Connect backend.Connect
	// ViewCodec encodes members, for the cacher's checks; nothing is stored with it.
	ViewCodec runtime.Codec
	// FleetCodec encodes visibility revisions and decodes all that is under FleetPrefix.
	FleetCodec runtime.Codec
	Authorizer authorizer.Authorizer
	// Front has the RBAC rules.
	Front rbacclient.RbacV1Interface
}

// REST serves clustersetmembers.
type REST struct {
	rest.TableConvertor
	members    reader
	access     *access
	authorizer authorizer.Authorizer
	destroy    func()
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
	options, err := config.RESTOptions.GetRESTOptions(cluster.Resource("managedclusters"), &cluster.ManagedCluster{})
	if err != nil {
		return nil, err
	}
	source := *options.StorageConfig
	sets, err := config.RESTOptions.GetRESTOptions(cluster.Resource("managedclustersets"), &cluster.ManagedClusterSet{})
	if err != nil {
		return nil, err
	}
	source.Transformer = fleetTransformer{
		clusters: source.Transformer, sets: sets.StorageConfig.Transformer, setPrefix: path.Join("/", source.Prefix, position.FleetPrefix, "managedclustersets") + "/",
	}
	source.Codec = fleetCodec{config.FleetCodec}
	raw, destroyRaw, err := backend.Options{Connect: config.Connect}.NewRaw(&source, position.FleetPrefix,
		func() runtime.Object { return &cluster.ManagedCluster{} },
		func() runtime.Object { return &cluster.ManagedClusterList{} })
	if err != nil {
		return nil, err
	}
	// This storage is written to seldom. It is the one that factory.Create makes, and so compacts etcd for all.
	revisions, destroyRevisions, err := generic.NewRawStorage(&source,
		func() runtime.Object { return &visibility.Revision{} },
		func() runtime.Object { return &visibility.RevisionList{} }, position.FleetPrefix+"/"+visibility.Resource)
	if err != nil {
		destroyRaw()
		return nil, err
	}
	access := newAccess(revisions, config.Front)
	members := &derived{source: raw, sourcePrefix: position.FleetPrefix, prefix: position.Root, access: access}
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             members,
		Versioner:           versioner,
		GroupResource:       view.Resource("clustersetmembers"),
		EventsHistoryWindow: source.EventsHistoryWindow,
		ResourcePrefix:      position.Root,
		KeyFunc:             position.KeyOf,
		NewFunc:             newMemberObject,
		NewListFunc:         newMemberList,
		GetAttrsFunc:        position.Attributes,
		IndexerFuncs:        storage.IndexerFuncs{"spec.clusterSet": triggerSet},
		Indexers: &cache.Indexers{storage.FieldIndex("spec.cluster"): func(obj any) ([]string, error) {
			return []string{obj.(*view.ClusterSetMember).Spec.Cluster}, nil
		}},
		Codec: config.ViewCodec,
	})
	if err != nil {
		destroyRevisions()
		destroyRaw()
		return nil, err
	}
	var once sync.Once
	return &REST{
		TableConvertor: tableConvertor,
		members:        memberCache{cached},
		access:         access,
		authorizer:     config.Authorizer,
		destroy: func() {
			once.Do(func() {
				cached.Stop()
				destroyRevisions()
				destroyRaw()
			})
		},
	}, nil
}

// frontAt reads the versions of a list of one object of each kind, which is that of the whole list.
func frontAt(client rbacclient.RbacV1Interface) func(context.Context) (roles, bindings uint64, err error) {
	return func(ctx context.Context) (roles, bindings uint64, err error) {
		one := metav1.ListOptions{Limit: 1}
		roleList, err := client.ClusterRoles().List(ctx, one)
		if err != nil {
			return 0, 0, err
		}
		bindingList, err := client.ClusterRoleBindings().List(ctx, one)
		if err != nil {
			return 0, 0, err
		}
		if roles, err = versioner.ParseResourceVersion(roleList.ResourceVersion); err != nil {
			return 0, 0, err
		}
		bindings, err = versioner.ParseResourceVersion(bindingList.ResourceVersion)
		return roles, bindings, err
	}
}

func newMemberObject() runtime.Object { return &view.ClusterSetMember{} }
func newMemberList() runtime.Object   { return &view.ClusterSetMemberList{} }
func triggerSet(obj runtime.Object) string {
	return obj.(*view.ClusterSetMember).Spec.ClusterSet
}

// Run follows the RBAC rules until the context ends.
func (r *REST) Run(ctx context.Context) { r.access.Run(ctx) }

// Ready says whether members can be served.
func (r *REST) Ready() error {
	if !r.members.Ready() {
		return errors.New("the members of all cluster sets are being computed")
	}
	if !delegator.ConsistentReadSupported() {
		return errNoProgress
	}
	if !r.access.synced() {
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
func (r *REST) New() runtime.Object { return newMemberObject() }

// NewList implements rest.Lister.
func (r *REST) NewList() runtime.Object { return newMemberList() }

// Destroy implements rest.Storage.
func (r *REST) Destroy() { r.destroy() }

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return "clustersetmember" }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return []string{"csm"} }

// Get implements rest.Getter. Who may not get the set gets the same answer whether or not the member exists.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	clusterName, setName, ok := position.SplitName(name)
	if !ok {
		return nil, apierrors.NewNotFound(view.Resource("clustersetmembers"), name)
	}
	if err := r.mayGet(ctx, name, setName); err != nil {
		return nil, err
	}
	list := &view.ClusterSetMemberList{}
	err := r.members.GetList(ctx, position.MemberKey(clusterName, setName), storage.ListOptions{
		ResourceVersion: options.ResourceVersion, Predicate: storage.Everything,
	}, list)
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, apierrors.NewNotFound(view.Resource("clustersetmembers"), name)
	}
	return &list.Items[0], nil
}

func (r *REST) mayGet(ctx context.Context, name, setName string) error {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errNoUser)
	}
	decision, _, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: "get", APIGroup: cluster.GroupName, APIVersion: "v1beta2",
		Resource: "managedclustersets", Name: setName, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return apierrors.NewForbidden(view.Resource("clustersetmembers"), name, &needsSetError{who.GetName(), setName})
}

// List implements rest.Lister.
func (r *REST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errNoUser)
	}
	if err := checkTerms(options); err != nil {
		return nil, err
	}
	return r.list(ctx, who, options)
}

// Watch implements rest.Watcher.
func (r *REST) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errNoUser)
	}
	if err := checkTerms(options); err != nil {
		return nil, err
	}
	return r.watch(ctx, who, options)
}

// mostTerms is how many keys and values the selectors of a request may have. The selectors of a watch are compared with every
// member, before it is known what the user may see, and the address of a request has room for a hundred thousand terms.
const mostTerms = 256

func checkTerms(options *internalversion.ListOptions) error {
	if options == nil {
		return nil
	}
	terms := 0
	if options.LabelSelector != nil {
		requirements, _ := options.LabelSelector.Requirements()
		terms += len(requirements)
		for i := range requirements {
			terms += len(requirements[i].ValuesUnsorted())
		}
	}
	if options.FieldSelector != nil {
		terms += len(options.FieldSelector.Requirements())
	}
	if terms > mostTerms {
		return apierrors.NewBadRequest(fmt.Sprintf("labelSelector and fieldSelector have %d keys and values, and may have %d: select "+
			"fewer, or read all and choose from them", terms, mostTerms))
	}
	return nil
}

// selection is what a request selects.
type selection struct {
	predicate storage.SelectionPredicate
	options   storage.ListOptions
}

func selectionOf(options *internalversion.ListOptions) selection {
	s := selection{predicate: storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.Everything(), GetAttrs: position.Attributes,
		IndexFields: []string{"spec.clusterSet", "spec.cluster"},
	}}
	if options == nil {
		options = &internalversion.ListOptions{}
	}
	if options.LabelSelector != nil {
		s.predicate.Label = options.LabelSelector
	}
	if options.FieldSelector != nil {
		s.predicate.Field = options.FieldSelector
	}
	s.predicate.Limit, s.predicate.Continue = options.Limit, options.Continue
	s.predicate.AllowWatchBookmarks = options.AllowWatchBookmarks
	s.options = storage.ListOptions{
		ResourceVersion:      options.ResourceVersion,
		ResourceVersionMatch: options.ResourceVersionMatch,
		SendInitialEvents:    options.SendInitialEvents,
		Recursive:            true,
		Predicate:            s.predicate,
	}
	return s
}

// pinned says that the list is wanted at one version.
func (s selection) pinned() bool {
	version := s.options.ResourceVersion
	return s.predicate.Continue != "" || s.options.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		s.options.ResourceVersionMatch == "" && s.predicate.Limit > 0 && version != "" && version != "0"
}
