// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/kubeconfig"
	"github.com/clusterhub/clusterhub/pkg/operator/outer"
)

const (
	name = "clustermanager"
	// workers bounds how many hubs are worked on at once. One that does not answer keeps a worker for outer.PassTimeout at most.
	workers = 4
	// settle is how long it is waited after a change of what was made: several come together, and a hub that changes all the time
	// costs a look each second at most.
	settle = time.Second
	// giveUpAfter is how long a hub that cannot be reached keeps its ClusterManager from being deleted.
	giveUpAfter = 5 * time.Minute
	// leaveAgain is how often it is looked what is left of a hub that is being deleted.
	leaveAgain = 2 * time.Second

	// labelManagement is on all that was made, beside operatorv1.LabelClusterManager, and has the UID of the management cluster's
	// namespace kube-system: two management clusters may have ClusterManagers of one name, and both be pointed at one hub.
	labelManagement = "operator.clusterhub.dev/management-cluster"
	// annotationApplied has the hash of what was applied.
	annotationApplied = "operator.clusterhub.dev/applied-sha256"
	// annotationHub is on a ClusterManager and has the UID of the hub's namespace kube-system, from before anything is written there.
	annotationHub = "operator.clusterhub.dev/hub-cluster"
)

// Options are what hub-operator says to the controller.
type Options struct {
	// Images are those of hub-operator's own version, by their names in the manifests: clusterhub/hub-apiserver,
	// clusterhub/hub-controller-manager and clusterhub/cluster-provider. What has none is as in the manifests.
	Images map[string]string
	// Clock is the real one if it is nil.
	Clock clock.PassiveClock
	// Lifetime is asked for tokens; kubeconfig.DefaultLifetime if it is 0.
	Lifetime time.Duration
}

// Controller is what the manager knows of it. Its rights are those for hubs that are other clusters. In mode Default it makes all of a
// hub on its own cluster, with all roles and policies: that takes an admin.
func (o Options) Controller() kit.Controller {
	rights := []kit.Right{
		kit.On(operatorv1.SchemeGroupVersion, "clustermanagers", "get", "list", "watch", "patch"),
		kit.On(operatorv1.SchemeGroupVersion, "clustermanagers/status", "patch"),
	}
	made := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	for _, r := range []struct {
		right     kit.Right
		resources []string
	}{
		{kit.On(corev1.SchemeGroupVersion, "", made...), []string{
			"namespaces", "secrets", "serviceaccounts", "services", "persistentvolumeclaims", "resourcequotas"}},
		{kit.On(appsv1.SchemeGroupVersion, "", made...), []string{"deployments"}},
		{kit.On(policyv1.SchemeGroupVersion, "", made...), []string{"poddisruptionbudgets"}},
		{kit.On(networkingv1.SchemeGroupVersion, "", made...), []string{"networkpolicies"}},
	} {
		for _, resource := range r.resources {
			right := r.right
			right.Resource = resource
			rights = append(rights, right)
		}
	}
	return kit.Controller{Name: name, Rights: rights, Setup: o.setup}
}

type reconciler struct {
	Options
	// client reads ClusterManagers from the cache; live reads all else.
	client client.Client
	live   client.Reader
	keeper *kubeconfig.Keeper
	hubs   connections
	later  func(cm string)
}

func (o Options) setup(_ context.Context, mgr ctrl.Manager) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), later: func(string) {}}
	r.keeper = &kubeconfig.Keeper{Client: uncached{r.client, r.live}, Clock: o.Clock, Lifetime: o.Lifetime}
	watched, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	// Hubs are followed from when they are connected. The process ends with the manager, and the watches with it.
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		r.hubs.closeAll()
		return nil
	})); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named(name).
		For(&operatorv1.ClusterManager{}).
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.later = func(cm string) {
				queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: cm}}, settle)
			}
			r.follow(ctx, watched)
			return nil
		})).
		WithOptions(kit.Options(workers)).
		Complete(r)
}

// uncached reads Secrets from the server: none are kept in memory.
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

// follow tells of changes on the management cluster: of what was made, and of the Secrets of users.
func (r *reconciler) follow(ctx context.Context, c metadata.Interface) {
	for _, k := range kinds {
		go follow(ctx, c.Resource(k.gvr()), metav1.ListOptions{LabelSelector: operatorv1.LabelClusterManager}, func(o metav1.Object) {
			if cm := o.GetLabels()[operatorv1.LabelClusterManager]; cm != "" {
				r.later(cm)
			}
		})
	}
	given := fields.OneTermEqualSelector("metadata.name", operatorv1.ExternalHubKubeconfig).String()
	go follow(ctx, c.Resource(secrets.gvr()), metav1.ListOptions{FieldSelector: given}, func(o metav1.Object) {
		var all operatorv1.ClusterManagerList
		if err := r.client.List(ctx, &all); err != nil {
			return // the cache begins; each ClusterManager is reconciled then
		}
		for i := range all.Items {
			if cm := &all.Items[i]; cm.IsDetached() && cm.ServerNamespace() == o.GetNamespace() {
				r.later(cm.Name)
			}
		}
	})
}

// Reconcile makes a hub what its ClusterManager says, or takes it away.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, outer.PassTimeout)
	defer cancel()
	cm := &operatorv1.ClusterManager{}
	if err := r.client.Get(ctx, request.NamespacedName, cm); err != nil {
		if kit.IsGone(err) {
			r.hubs.close(request.Name)
		}
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	cm = cm.DeepCopy()
	if cm.DeletionTimestamp != nil {
		return r.leave(ctx, cm)
	}
	if _, err := kit.Patch(ctx, r.client, cm, func(cm *operatorv1.ClusterManager) {
		controllerutil.AddFinalizer(cm, operatorv1.ClusterManagerFinalizer)
	}); err != nil {
		return reconcile.Result{}, kit.IgnoreOutdated(err)
	}
	p := &pass{reconciler: r, cm: cm}
	err := p.run(ctx)
	// What has happened is said also if the time for it is over.
	said, end := context.WithTimeout(context.WithoutCancel(ctx), outer.RequestTimeout)
	defer end()
	if _, statusErr := kit.PatchStatus(said, r.client, cm, p.tell); statusErr != nil {
		return reconcile.Result{}, kit.IgnoreOutdated(statusErr)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	result := reconcile.Result{}
	if !p.next.IsZero() {
		result.RequeueAfter = max(p.next.Sub(r.Clock.Now()), time.Second)
	}
	return result, nil
}

// management is the management cluster for a ClusterManager, and the owner of all that is made for it.
func (r *reconciler) management(ctx context.Context, cm *operatorv1.ClusterManager) (*side, error) {
	system := &corev1.Namespace{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, fmt.Errorf("reading the namespace %s of the management cluster: %w", metav1.NamespaceSystem, err)
	}
	which := func(k kind) bool { return k.onManagement }
	where := "management cluster"
	if !cm.IsDetached() {
		which, where = func(kind) bool { return true }, "cluster"
	}
	return newSide(where, r.client, kindsWhere(which), ownerOf(cm, system.UID), func(err error) string { return kit.Message(err.Error()) }), nil
}
