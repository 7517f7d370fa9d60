// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package klusterlet reconciles the agents of Klusterlets: it applies their objects to the cluster that runs the pods and to the managed cluster,
// until the Klusterlet is deleted. See docs/design/detached.md.
package klusterlet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
)

const (
	controllerName = "klusterlets"
	// workers exceeds the number of clusters that respond slowly at the same time: each reconcile is limited in time, and rare if it fails, so that
	// unresponsive clusters do not block others.
	workers = 256
	// firstBackoff is the time until the first retry, and maxBackoff the time after many failures.
	firstBackoff, maxBackoff = time.Second, 5 * time.Minute
)

// Options are the flags of the controller.
type Options struct {
	// Image is the image of agents whose Klusterlet names none. The default is the image in the manifests.
	Image string
	// TokenLifetime is the requested lifetime. The default is mint.DefaultLifetime.
	TokenLifetime time.Duration
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// DefaultImage is the image of the agents, without its tag.
const DefaultImage = "clusterhub/hub-agent"

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Image, "agent-image", o.Image,
		"The image of the agents of Klusterlets that do not set one. The default is the image in the manifests of this program, "+DefaultImage+":v0.0.0.")
	fs.DurationVar(&o.TokenLifetime, "agent-token-lifetime", cmp.Or(o.TokenLifetime, mint.DefaultLifetime),
		"The requested lifetime of the tokens with which agents authenticate to a managed cluster that they do not run on. A cluster may grant less. "+
			"Tokens are renewed long before they expire.")
}

// Validate returns all errors of the flags.
func (o *Options) Validate() (errs []error) {
	if o.TokenLifetime < mint.MinLifetime {
		errs = append(errs, fmt.Errorf("--agent-token-lifetime must be at least %s, not %s", mint.MinLifetime, o.TokenLifetime))
	}
	return errs
}

// Controller returns the controller of Klusterlets.
func (o Options) Controller() kit.Controller {
	return kit.Controller{Name: controllerName, Rights: rights(), Setup: o.setup}
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(operatorv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme)
	if err := types.AddToScheme(s); err != nil {
		panic(err) // two types with the same name: a programming error
	}
	return s
}

func (o Options) setup(ctx context.Context, mgr ctrl.Manager) error {
	config := mgr.GetConfig()
	live, err := client.New(config, client.Options{Scheme: scheme(), Mapper: plan.Mapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	system := &corev1.Namespace{}
	if err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return fmt.Errorf("reading the id of the cluster, the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	r := o.reconciler(ctx, config, mgr.GetClient(), live, string(system.UID))
	r.recorder = mgr.GetEventRecorder(Manager)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &operatorv1.Klusterlet{}, byNamespace, namespaceOf); err != nil {
		return err
	}
	r.indexed = true
	return ctrl.NewControllerManagedBy(mgr).Named(controllerName).
		For(&operatorv1.Klusterlet{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: r.isUpdate})).
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			enqueue := func(name string) { queue.Add(requestOf(name)) }
			r.connections.enqueue, r.observations.enqueue = enqueue, enqueue
			r.follow(ctx, objects).wait(ctx)
			return nil
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, maxBackoff),
		}).
		Complete(kit.RequeueConflicts(r))
}

func (o Options) reconciler(ctx context.Context, config *rest.Config, klusterlets client.Reader, live client.Client, managementUID string) *Reconciler {
	now := o.Clock
	if now == nil {
		now = clock.RealClock{}
	}
	r := &Reconciler{
		klusterlets: klusterlets, client: live, managementUID: managementUID, clock: now, image: o.Image, config: config,
		connections:  &connections{ctx: ctx, enqueue: func(string) {}},
		observations: &observations{enqueue: func(string) {}, burst: ownChangeBurst, interval: ownChangeInterval},
	}
	r.minter = &mint.Minter{Client: recordingClient{live, r.observations.recordForAll}, Clock: now, Lifetime: o.TokenLifetime}
	return r
}

func requestOf(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// selectorOf returns a selector for objects of one Klusterlet.
func selectorOf(name, managementUID string) string {
	return labels.Set{operatorv1.LabelKlusterlet: name, LabelManagement: managementUID}.String()
}

// follow watches the own cluster with a few watches, regardless of the number of Klusterlets. Of Secrets, it watches only those with known names,
// which is all that this program may read.
func (r *Reconciler) follow(ctx context.Context, objects metadata.Interface) listening {
	var all []objectSet
	for _, kind := range plan.Owned {
		all = append(all, objectSet{kind: kind, label: labels.Set{LabelManagement: r.managementUID}.String()})
	}
	for _, kind := range plan.Shared {
		all = append(all, objectSet{kind: kind, label: LabelShared})
	}
	for _, name := range plan.SecretNames {
		all = append(all, objectSet{kind: plan.Secrets, field: fields.OneTermEqualSelector("metadata.name", name).String()})
	}
	return listen(ctx, objects, r.observations, all)
}

// isUpdate reports whether an update event must reconcile a Klusterlet: a resync, or an event of a Klusterlet that is not tracked. Otherwise the
// observations decide whether the Klusterlet is stale, as for all objects: the reconciler's own writes cause events, too.
func (r *Reconciler) isUpdate(e event.UpdateEvent) bool {
	resync := e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
	return resync || !r.observations.observe(klusterletID(e.ObjectNew.GetName()), e.ObjectNew)
}

func klusterletID(name string) apply.ID {
	return apply.ID{GroupKind: plan.Klusterlets.GroupKind(), NamespacedName: types.NamespacedName{Name: name}}
}

// byNamespace is the index of Klusterlets by the namespaces of their agents.
const byNamespace = "agentNamespace"

func namespaceOf(o client.Object) []string {
	return []string{o.(*operatorv1.Klusterlet).AgentNamespace()}
}

// inNamespace returns all cached Klusterlets that have their agents in a namespace.
func (r *Reconciler) inNamespace(ctx context.Context, namespace string) ([]operatorv1.Klusterlet, error) {
	list := &operatorv1.KlusterletList{}
	var options []client.ListOption
	if r.indexed {
		options = append(options, client.MatchingFields{byNamespace: namespace})
	}
	err := r.klusterlets.List(ctx, list, options...)
	return slices.DeleteFunc(list.Items, func(k operatorv1.Klusterlet) bool { return k.AgentNamespace() != namespace }), err
}

// Reconciler reconciles Klusterlets.
type Reconciler struct {
	// klusterlets reads Klusterlets from a cache. If it is indexed, it selects them by the namespaces of their agents.
	klusterlets client.Reader
	indexed     bool
	// client is an uncached client of the management cluster.
	client client.Client
	config *rest.Config
	// managementUID is the UID of the namespace kube-system of the management cluster.
	managementUID string
	minter        *mint.Minter
	connections   *connections
	// observations has the observed state of the management cluster.
	observations *observations
	recorder     events.EventRecorder
	clock        clock.PassiveClock
	// image is the image of agents whose Klusterlet names none.
	image string
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// Before the read: events from now on may not be part of what is read.
	r.observations.begin(request.Name)
	defer r.observations.end(request.Name)
	k := &operatorv1.Klusterlet{}
	if err := r.klusterlets.Get(ctx, request.NamespacedName, k); err != nil {
		if apierrors.IsNotFound(err) {
			r.connections.Close(request.Name)
			r.observations.drop(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	p := r.newPass(k.DeepCopy())
	result, err := p.reconcile(ctx)
	p.recordKlusterlet()
	return result, err
}
