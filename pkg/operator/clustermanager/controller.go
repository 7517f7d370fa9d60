// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/pkg/remote/reach"
	"github.com/clusterhub/clusterhub/pkg/remote/watch"
)

const (
	name = "clustermanagers"
	// workers exceeds the number of hubs that respond slowly at the same time. A hub that does not respond occupies a worker for up to
	// reach.PassTimeout, repeatedly, and a worker is a goroutine that waits: with few workers, as many unresponsive hubs would block all others.
	workers = 256
	// settle is the delay of a reconcile after a change of an applied object, so that one reconcile handles several changes.
	settle = time.Second
	// giveUpAfter is the time after which an unreachable hub no longer blocks the deletion of its ClusterManager.
	giveUpAfter = 5 * time.Minute
	// finalizeInterval is the interval between two checks of what is left of a hub that is being deleted.
	finalizeInterval = 2 * time.Second

	// annotationHub is set on a ClusterManager to the UID of the hub's namespace kube-system before anything is written to the hub.
	annotationHub = "operator.clusterhub.dev/hub-cluster"
)

// Options are the flags of the controller.
type Options struct {
	// APIServerImage, ManagerImage and ProviderImage are the images of the servers. The default of each is the image in the manifests.
	APIServerImage, ManagerImage, ProviderImage string
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
	// Lifetime is the requested lifetime of tokens. The default is mint.DefaultLifetime.
	Lifetime time.Duration
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	image := func(value *string, name, manifests, more string) {
		fs.StringVar(value, name+"-image", *value,
			"The image of "+name+more+". The default is the image in the manifests of this program, "+manifests+":v0.0.0.")
	}
	image(&o.APIServerImage, "hub-apiserver", imageAPIServer, " for ClusterManagers that do not set one")
	image(&o.ManagerImage, "hub-controller-manager", imageManager, " for ClusterManagers that do not set one")
	image(&o.ProviderImage, "cluster-provider", imageProvider, "")
	fs.DurationVar(&o.Lifetime, "server-token-lifetime", cmp.Or(o.Lifetime, mint.DefaultLifetime),
		"The requested lifetime of the tokens with which servers authenticate to a hub that they do not run on. A hub may grant less. "+
			"Tokens are renewed long before they expire.")
}

// Validate returns all errors of the flags.
func (o *Options) Validate() (errs []error) {
	if o.Lifetime < mint.MinLifetime {
		errs = append(errs, fmt.Errorf("--server-token-lifetime must be at least %s, not %s", mint.MinLifetime, o.Lifetime))
	}
	return errs
}

// images returns the images by their names in the manifests.
func (o *Options) images() map[string]string {
	return map[string]string{imageAPIServer: o.APIServerImage, imageManager: o.ManagerImage, imageProvider: o.ProviderImage}
}

// Controller returns the controller for the manager. Its rights are those for hubs on other clusters. In mode Default it creates the whole hub on its
// own cluster, with all roles and policies, for which it must be an admin.
func (o Options) Controller() kit.Controller {
	core := corev1.SchemeGroupVersion
	rights := []kit.Right{
		kit.On(operatorv1.SchemeGroupVersion, "clustermanagers", "get", "list", "watch", "patch"),
		kit.On(operatorv1.SchemeGroupVersion, "clustermanagers/status", "patch"),
		// By name: no other Secret can be read. RBAC cannot restrict create to names.
		kit.On(core, "secrets", "get", "list", "watch").Named(append([]string{operatorv1.ExternalHubKubeconfig}, mintedSecrets...)...),
		kit.On(core, "secrets", "update", "delete").Named(mintedSecrets...),
		kit.On(core, "secrets", "create"),
	}
	for _, k := range kindsWhere(func(k kind) bool { return k.onManagement && k != secrets }) {
		rights = append(rights, kit.On(k.GroupVersion(), k.Resource, "list", "watch", "get", "create", "patch", "delete"))
	}
	return kit.Controller{Name: name, Rights: rights, Setup: o.setup}
}

type reconciler struct {
	Options
	// client reads ClusterManagers from the cache; live reads everything else from the API server.
	client client.Client
	live   client.Reader
	minter *mint.Minter
	hubs   connections
	// discovery discovers the APIs of the own cluster.
	discovery discovery.ServerResourcesInterfaceWithContext
	// recorder may be nil.
	recorder events.EventRecorder
	// hubTime is for tests. The default is the constant of the same name.
	hubTime time.Duration
	// enqueue enqueues a ClusterManager, and later enqueues it after settle.
	enqueue, later func(cm string)
	// here watches the hub's objects on the own cluster. It starts with the first ClusterManager in mode Default.
	here func()
}

func (o Options) setup(_ context.Context, mgr ctrl.Manager) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), here: func() {}}
	r.enqueue, r.later = func(string) {}, func(string) {}
	r.recorder = mgr.GetEventRecorder(deploy.ManagedByOperator)
	r.minter = &mint.Minter{Client: uncached{r.client, r.live}, Clock: o.Clock, Lifetime: o.Lifetime}
	discovered, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	r.discovery = discovered
	watched, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	// Hubs are watched from the time they are connected. The watches stop with the manager.
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		r.hubs.CloseAll()
		return nil
	})); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named(name).
		For(&operatorv1.ClusterManager{}).
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			of := func(cm string) reconcile.Request {
				return reconcile.Request{NamespacedName: types.NamespacedName{Name: cm}}
			}
			r.enqueue = func(cm string) { queue.Add(of(cm)) }
			r.later = func(cm string) { queue.AddAfter(of(cm), settle) }
			r.follow(ctx, watched)
			return nil
		})).
		WithOptions(kit.Options(workers)).
		Complete(kit.RequeueConflicts(r))
}

// uncached reads Secrets from the API server, so that no Secret is cached in memory.
type uncached struct {
	client.Client
	live client.Reader
}

func (u uncached) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return u.live.Get(ctx, key, object, options...)
}

func (u uncached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return u.live.List(ctx, list, options...)
}

// follow enqueues ClusterManagers after changes on the management cluster: of applied objects, and of the Secrets of users.
func (r *reconciler) follow(ctx context.Context, c metadata.Interface) {
	enqueueOwner := func(o metav1.Object) {
		if cm := o.GetLabels()[operatorv1.LabelClusterManager]; cm != "" {
			r.later(cm)
		}
	}
	enqueueWhere := func(matches func(*operatorv1.ClusterManager) bool) {
		var all operatorv1.ClusterManagerList
		if err := r.client.List(ctx, &all); err != nil {
			return // the cache starts, and each ClusterManager is reconciled then
		}
		for i := range all.Items {
			if cm := &all.Items[i]; matches(cm) {
				r.later(cm.Name)
			}
		}
	}
	enqueueAll := func() { enqueueWhere(func(*operatorv1.ClusterManager) bool { return true }) }
	handler := func(changed func(metav1.Object)) watch.Handler {
		return watch.Handler{Event: func(o *metav1.PartialObjectMetadata, _ bool) { changed(o) }, Started: enqueueAll}
	}
	watchKinds := func(kinds []kind) {
		for _, k := range kinds {
			go watch.Run(ctx, c.Resource(k.GVR()), watch.Options{LabelSelector: operatorv1.LabelClusterManager}, handler(enqueueOwner))
		}
	}
	watchKinds(kindsWhere(func(k kind) bool { return k.onManagement && k != secrets }))
	r.here = sync.OnceFunc(func() { watchKinds(kindsWhere(func(k kind) bool { return !k.onManagement })) })
	watchSecrets := func(name string, changed func(metav1.Object)) {
		only := fields.OneTermEqualSelector("metadata.name", name).String()
		go watch.Run(ctx, c.Resource(secrets.GVR()), watch.Options{FieldSelector: only}, handler(changed))
	}
	for _, name := range mintedSecrets {
		watchSecrets(name, enqueueOwner)
	}
	watchSecrets(operatorv1.ExternalHubKubeconfig, func(o metav1.Object) {
		enqueueWhere(func(cm *operatorv1.ClusterManager) bool {
			return cm.IsDetached() && cm.ServerNamespace() == o.GetNamespace()
		})
	})
}

// Reconcile applies the hub of a ClusterManager, or finalizes it.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, reach.PassTimeout)
	defer cancel()
	cm := &operatorv1.ClusterManager{}
	if err := r.client.Get(ctx, request.NamespacedName, cm); err != nil {
		if kit.IsGone(err) {
			r.hubs.Close(request.Name)
		}
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	p := &pass{reconciler: r, cm: cm.DeepCopy()}
	if cm.DeletionTimestamp != nil {
		return p.finalize(ctx)
	}
	return p.reconcile(ctx)
}

// managementOf returns the management cluster for a ClusterManager, with the owner of all objects made for it.
func (r *reconciler) managementOf(ctx context.Context, cm *operatorv1.ClusterManager) (*side, error) {
	system := &corev1.Namespace{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, fmt.Errorf("reading the namespace %s of the management cluster: %w", metav1.NamespaceSystem, err)
	}
	which := func(k kind) bool { return k.onManagement }
	where := "management cluster"
	explain := func(err error) string { return kit.Message(err.Error()) }
	if !cm.IsDetached() {
		which, where, explain = func(kind) bool { return true }, "cluster", explainOwn
		r.here()
	}
	s := newSide(where, r.client, kindsWhere(which), ownerOf(cm, system.UID), explain)
	if cm.IsDetached() {
		s.minted = cm.ServerNamespace()
	} else {
		s.discovery = r.discovery
	}
	return s, nil
}

// adminCommand grants hub-operator, as the manifests deploy it, the rights to create a hub on its own cluster.
const adminCommand = "kubectl create clusterrolebinding hub-operator-admin --clusterrole=cluster-admin --serviceaccount=clusterhub-operator:hub-operator"

// explainOwn adds what to do to an error that hub-operator lacks the rights to create a hub on its own cluster.
func explainOwn(err error) string {
	text := kit.Message(err.Error())
	if apierrors.IsForbidden(err) {
		text += ". In mode Default, hub-operator has to be an admin of its cluster: bind the ClusterRole cluster-admin to its ServiceAccount " +
			"(" + adminCommand + "), or make a ClusterManager in mode Detached"
	}
	return text
}
