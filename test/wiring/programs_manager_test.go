// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	eventrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider/kubeconfig"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/run"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/controllers/manager"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator"
	"github.com/clusterhub/clusterhub/test/await"
)

// recorder is a manager that records what it is assembled from, and starts nothing.
type recorder struct {
	ctrlmanager.Manager
	lines     []string
	runnables []ctrlmanager.Runnable
}

func (r *recorder) record(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// newManager is manager.New of a recorder.
func (r *recorder) newManager(config *rest.Config, o ctrlmanager.Options) (ctrlmanager.Manager, error) {
	if o.LeaderElection {
		lock := o.LeaderElectionResourceLockInterface
		r.record("lease %s by %s, released at the end: %t", lock.Describe(), typeName(reflect.ValueOf(lock)), o.LeaderElectionReleaseOnCancel)
	}
	r.record("health endpoint %s", o.HealthProbeBindAddress)
	for kind, of := range o.Cache.ByObject {
		r.record("cache of %s: %s", typeName(reflect.ValueOf(kind)), cached(of))
	}
	o.HealthProbeBindAddress = "0"
	var err error
	r.Manager, err = ctrlmanager.New(config, o)
	return r, err
}

// cached returns which objects of a kind a cache has.
func cached(of cache.ByObject) string {
	if len(of.Namespaces) == 0 {
		return fmt.Sprintf("labels %v, fields %v", of.Label, of.Field)
	}
	var namespaces []string
	for _, name := range slices.Sorted(maps.Keys(of.Namespaces)) {
		namespaces = append(namespaces, fmt.Sprintf("in %s labels %v, fields %v", name, of.Namespaces[name].LabelSelector, of.Namespaces[name].FieldSelector))
	}
	return strings.Join(namespaces, "; ")
}

// Add implements manager.Manager.
func (r *recorder) Add(runnable ctrlmanager.Runnable) error {
	r.runnables = append(r.runnables, runnable)
	leads, ok := runnable.(ctrlmanager.LeaderElectionRunnable)
	when := "while it leads"
	if ok && !leads.NeedLeaderElection() {
		when = "always"
	}
	v := indirect(reflect.ValueOf(runnable))
	if v.Kind() == reflect.Struct && v.FieldByName("Do").IsValid() {
		r.record("controller %s: %s, %s", v.FieldByName("Name"), nested(v.FieldByName("Do"), reflect.TypeFor[reconcile.Reconciler]()), when)
		for _, watch := range watches(context.Background(), v) {
			r.record("controller %s watches %s", v.FieldByName("Name"), watch)
		}
		return nil
	}
	r.record("runnable %s, %s", typeName(v), when)
	return nil
}

// Start implements manager.Manager.
func (r *recorder) Start(context.Context) error { return nil }

// AddHealthzCheck implements manager.Manager.
func (r *recorder) AddHealthzCheck(name string, check healthz.Checker) error {
	r.record("healthz %s: %s", name, typeName(reflect.ValueOf(check)))
	return nil
}

// AddReadyzCheck implements manager.Manager.
func (r *recorder) AddReadyzCheck(name string, check healthz.Checker) error {
	r.record("readyz %s: %s", name, typeName(reflect.ValueOf(check)))
	return nil
}

// GetWebhookServer implements manager.Manager.
func (r *recorder) GetWebhookServer() webhook.Server {
	r.record("webhook server")
	return r.Manager.GetWebhookServer()
}

// GetEventRecorder implements manager.Manager.
func (r *recorder) GetEventRecorder(name string) eventrecorder.EventRecorder {
	r.record("events of %s", name)
	return r.Manager.GetEventRecorder(name)
}

// GetFieldIndexer implements manager.Manager.
func (r *recorder) GetFieldIndexer() client.FieldIndexer {
	return recordedIndexer{r.Manager.GetFieldIndexer(), r}
}

// GetCache implements manager.Manager.
func (r *recorder) GetCache() cache.Cache { return recordedCache{r.Manager.GetCache(), r} }

type recordedIndexer struct {
	client.FieldIndexer
	to *recorder
}

// IndexField implements client.FieldIndexer.
func (i recordedIndexer) IndexField(ctx context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.to.record("index of %s by %s", typeName(reflect.ValueOf(o)), field)
	return i.FieldIndexer.IndexField(ctx, o, field, extract)
}

type recordedCache struct {
	cache.Cache
	to *recorder
}

// GetInformer implements cache.Informers.
func (c recordedCache) GetInformer(ctx context.Context, o client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, o, options...)
	return recordedInformer{informer, o, c.to}, err
}

type recordedInformer struct {
	cache.Informer
	of client.Object
	to *recorder
}

// AddEventHandler implements cache.Informer.
func (i recordedInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	name := typeName(reflect.ValueOf(handler))
	if v := indirect(reflect.ValueOf(handler)); v.Kind() == reflect.Struct && v.NumField() == 1 {
		name = typeName(v.Field(0)) // what a handler calls says more than its own type
	}
	i.to.record("follower of %s: %s", typeName(reflect.ValueOf(i.of)), name)
	return i.Informer.AddEventHandler(handler)
}

// compare compares what was recorded, sorted: a manager starts all at once.
func (r *recorder) compare(t *testing.T, golden string) {
	t.Helper()
	slices.Sort(r.lines)
	compare(t, golden, r.lines)
}

// loopback are flags that let a program be assembled beside others.
func loopback(kubeconfig string) []string {
	return []string{"--kubeconfig=" + kubeconfig, "--metrics-bind-address=127.0.0.1:0"}
}

// release closes the listeners that came with runnables.
func (r *recorder) release() {
	for _, runnable := range r.runnables {
		if server, ok := runnable.(*ctrlmanager.Server); ok && server.Listener != nil {
			_ = server.Listener.Close()
		}
	}
}

func TestWiring_HubControllerManager(t *testing.T) {
	objects, err := deploy.Hub{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	scheduler := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(scheduler, []byte("scheduler: {purposeMappings: {a: {template: {spec: {profile: p, tenancy: Exclusive}}}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		golden, deployment string
		more               []string
	}{
		{"hub-controller-manager", "hub-controller-manager", nil},
		{"hub-certificate-approver", "hub-certificate-approver", nil},
		// All that flags can add.
		{"hub-controller-manager-all", "hub-controller-manager", []string{"--controllers=*,clustermanagers,klusterlets",
			"--leftover-ttl=1h", "--scheduler-config=" + scheduler}},
	} {
		t.Run(test.golden, func(t *testing.T) {
			o, r := manager.NewOptions(), &recorder{}
			parse(t, o.Flags(), slices.Concat(shipped(t, objects, test.deployment), loopback(startKubernetes(t).kubeconfig), test.more)...)
			if err := o.Validate(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
			defer cancel()
			defer r.release()
			if _, err := o.Assemble(ctx, r.newManager); err != nil {
				t.Fatal(err)
			}
			// The runnable that sets up the controllers does so once the process leads.
			for _, runnable := range slices.Clone(r.runnables) {
				if typeName(reflect.ValueOf(runnable)) == "pkg/controllers/manager.controllers" {
					if err := runnable.Start(ctx); err != nil || ctx.Err() != nil {
						t.Fatal(err, ctx.Err())
					}
				}
			}
			r.compare(t, test.golden)
		})
	}
}

func TestWiring_HubOperator(t *testing.T) {
	objects, err := deploy.Operator{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	o, r := operator.NewOptions(), &recorder{}
	parse(t, o.Flags(), append(shipped(t, objects, "hub-operator"), loopback(startKubernetes(t).kubeconfig)...)...)
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	config, err := command.RESTConfig(o.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	defer r.release()
	if _, err := o.Assemble(t.Context(), config, r.newManager); err != nil {
		t.Fatal(err)
	}
	r.compare(t, "hub-operator")
}

func TestWiring_ClusterProvider(t *testing.T) {
	objects, err := deploy.ClusterProvider{}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	args := shipped(t, objects, "cluster-provider-kubeconfig")
	r := &recorder{}
	cmd := run.NewCommandWith(kubeconfig.Kind(), func(config *rest.Config, o ctrl.Options) (ctrl.Manager, error) { return r.newManager(config, o) })
	// The first argument is the name of the command.
	cmd.SetArgs(append(args[1:], loopback(startKubernetes(t).kubeconfig)...))
	defer klog.ClearLogger() // the command sets one
	defer r.release()
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.compare(t, "cluster-provider")
}
