// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterscheduler"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// scheduled is a namespace whose ClusterRequests are granted by schedulers of the test.
type scheduled struct {
	*testing.T
	client.Client
	namespace, profile string
	// own has the settings of all configurations here, file those that the test adds.
	own, file string
}

// newScheduled starts schedulers that run without leader election. PROFILE in the configuration stands for an existing profile. Requests of other
// namespaces are ignored, and so are clusters of other namespaces unless the configuration includes them.
func newScheduled(t *testing.T, schedulers int, configuration string) *scheduled {
	t.Helper()
	return newScheduledIn(t, harness.Unique("scheduled"), schedulers, configuration)
}

func newScheduledIn(t *testing.T, namespaceName string, schedulers int, configuration string) *scheduled {
	t.Helper()
	dir := t.TempDir()
	s := &scheduled{
		T: t, Client: provider(t), namespace: namespaceName, profile: newProfile(t),
		own: filepath.Join(dir, "own.yaml"), file: filepath.Join(dir, "config.yaml"),
	}
	own := "scheduler: {scope: Namespaced, selectors: {requests: {matchLabels: {scheduled: " + s.namespace + "}}}}"
	if err := os.WriteFile(s.own, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	s.configure(configuration)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{"team": "a"}}}
	if _, err := harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, list := range []client.ObjectList{&v1alpha1.ClusterRequestList{}, &v1alpha1.ClusterList{}} {
			_ = s.List(ctx, list, client.InNamespace(s.namespace))
			_ = meta.EachListItem(list, func(item runtime.Object) error {
				obj := item.(client.Object)
				_ = s.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
				return s.Delete(ctx, obj)
			})
		}
		_ = harness.Kube(t, harness.Hub(t).AdminConfig()).CoreV1().Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{})
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for range schedulers {
		s.start(ctx, &running)
	}
	return s
}

func (s *scheduled) configure(configuration string) {
	s.Helper()
	configuration = strings.ReplaceAll(configuration, "PROFILE", s.profile)
	if err := os.WriteFile(s.file, []byte(configuration), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *scheduled) start(ctx context.Context, running *sync.WaitGroup) {
	s.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		s.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		s.Fatal(err)
	}
	restConfig := harness.Hub(s.T).AdminConfig()
	restConfig.QPS, restConfig.Burst = 500, 1000
	again := true
	mgr := harness.Must(ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &again},
		Cache: cache.Options{DefaultTransform: command.ForCache},
	}))(s.T)
	live := harness.Must(clusterscheduler.NewLiveConfig([]string{s.own, s.file}))(s.T)
	if err := errors.Join(mgr.Add(live), clusterscheduler.SetupWithManager(mgr, live)); err != nil {
		s.Fatal(err)
	}
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			s.Error(err)
		}
	})
}

func (s *scheduled) ask(purpose string, adapt ...func(*v1alpha1.ClusterRequest)) *v1alpha1.ClusterRequest {
	s.Helper()
	request := clusterRequest(s.namespace)
	request.Labels, request.Spec.Purpose = map[string]string{"scheduled": s.namespace}, purpose
	for _, change := range adapt {
		change(request)
	}
	if err := s.Create(s.Context(), request); err != nil {
		s.Error(err)
	}
	return request
}

// await waits until a request has a phase and a reason.
func (s *scheduled) await(request *v1alpha1.ClusterRequest, phase, reason string) {
	s.Helper()
	harness.Eventually(s.T, fmt.Sprintf("%s is %s for %s", request.Name, phase, reason), func(ctx context.Context) (bool, error) {
		if err := s.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
			return false, err
		}
		condition := meta.FindStatusCondition(request.Status.Conditions, clusterscheduler.ConditionGranted)
		if request.Status.Phase == phase && condition != nil && condition.Reason == reason && request.Status.ObservedGeneration == request.Generation {
			return true, nil
		}
		return false, fmt.Errorf("%+v", request.Status)
	})
}

func (s *scheduled) awaitGone(obj client.Object) {
	s.Helper()
	harness.Eventually(s.T, obj.GetName()+" is gone", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return err != nil, client.IgnoreNotFound(err)
	})
}

func (s *scheduled) clusterOf(request *v1alpha1.ClusterRequest) *v1alpha1.Cluster {
	s.Helper()
	cluster := &v1alpha1.Cluster{}
	if err := s.Get(s.Context(), request.Status.Cluster.NamespacedName(), cluster); err != nil {
		s.Fatal(err)
	}
	return cluster
}

func TestAccessScheduler_ConcurrentRequestsRespectLimit(t *testing.T) {
	const requests, limit = 40, 3
	s := newScheduled(t, 2, `
scheduler:
  purposeMappings:
    team: {tenancyCount: 3, template: {spec: {profile: PROFILE, tenancy: Shared}}}
`)
	list := &v1alpha1.ClusterList{}
	look := func() {
		t.Helper()
		if err := s.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
		for _, c := range list.Items {
			if c.GetTenancyCount() > limit {
				t.Fatalf("%s has %d requests", c.Name, c.GetTenancyCount())
			}
		}
	}
	asked := make([]*v1alpha1.ClusterRequest, requests)
	var asking sync.WaitGroup
	for i := range requests {
		asking.Go(func() { asked[i] = s.ask("team") })
	}
	asking.Wait()
	for _, request := range asked {
		look()
		s.await(request, v1alpha1.REQUEST_GRANTED, "ClusterGranted")
	}
	harness.Eventually(t, "each request has one cluster, that of its status", func(context.Context) (bool, error) {
		look()
		held := 0
		for _, c := range list.Items {
			if c.DeletionTimestamp == nil {
				held += c.GetTenancyCount()
			}
		}
		if held != requests {
			return false, fmt.Errorf("%d are held", held)
		}
		return true, nil
	})
	for _, request := range asked {
		if !s.clusterOf(request).GetRequestUIDs().Has(string(request.UID)) {
			t.Errorf("%s does not have %s", request.Name, request.Status.Cluster.Name)
		}
	}
	t.Logf("%d requests have %d clusters", requests, len(list.Items))
}

func TestAccessScheduler_DeletionLossAndDenial(t *testing.T) {
	const configuration = `
scheduler:
  purposeMappings:
    mine: {template: {spec: {profile: PROFILE, tenancy: Exclusive}}}
    broken: {template: {spec: {profile: does-not-exist, tenancy: Exclusive}}}
  policy:
    clusterRequests:
    - {name: teams, expression: "namespaceObject.metadata.labels['team'] == 'a' && purpose != 'secret'"}
`
	s := newScheduled(t, 1, configuration)
	request := s.ask("mine")
	s.await(request, v1alpha1.REQUEST_GRANTED, "ClusterGranted")

	// A lost cluster is created again under its name.
	cluster := s.clusterOf(request)
	if err := s.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	s.await(request, v1alpha1.REQUEST_GRANTED, "ClusterBeingDeleted")
	if err := s.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "there is another cluster", func(ctx context.Context) (bool, error) {
		there := &v1alpha1.Cluster{}
		err := s.Get(ctx, client.ObjectKeyFromObject(cluster), there)
		return err == nil && there.UID != cluster.UID, client.IgnoreNotFound(err)
	})
	s.await(request, v1alpha1.REQUEST_GRANTED, "ClusterGranted")

	// The request waits for its provider.
	cluster = s.clusterOf(request)
	before := cluster.DeepCopy()
	cluster.Finalizers = append(cluster.Finalizers, "provider.example.com/cluster")
	if err := s.Patch(t.Context(), cluster, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	s.await(request, v1alpha1.REQUEST_PENDING, "WaitingForClusterDeletion")
	cluster = s.clusterOf(request)
	if cluster.DeletionTimestamp == nil || !slices.Equal(cluster.Finalizers, []string{"provider.example.com/cluster"}) {
		t.Fatalf("%+v", cluster.ObjectMeta)
	}
	if err := s.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	s.awaitGone(request)

	// The request reports that the API rejects its cluster.
	broken := s.ask("broken")
	s.await(broken, v1alpha1.REQUEST_PENDING, "ClusterRejected")
	if message := broken.Status.Conditions[0].Message; !strings.Contains(message, "does-not-exist") {
		t.Errorf("the message is %q", message)
	}

	// A request is granted once its purpose is configured; denials are permanent.
	later := s.ask("later")
	s.await(later, v1alpha1.REQUEST_PENDING, "ConfigurationProblem")
	denied := s.ask("mine", func(r *v1alpha1.ClusterRequest) {
		r.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationAnnotationValueIgnore}
	})
	denied.Status.Phase = v1alpha1.REQUEST_DENIED
	if err := s.Status().Update(t.Context(), denied); err != nil {
		t.Fatal(err)
	}
	ignored := denied.DeepCopy()
	denied.Annotations = nil
	if err := s.Patch(t.Context(), denied, client.MergeFrom(ignored)); err != nil {
		t.Fatal(err)
	}
	s.configure(strings.Replace(configuration, "    mine:", "    later: {template: {spec: {profile: PROFILE, tenancy: Shared}}}\n"+
		"    secret: {template: {spec: {profile: PROFILE, tenancy: Shared}}}\n    mine:", 1))
	s.await(later, v1alpha1.REQUEST_GRANTED, "ClusterGranted")
	s.await(s.ask("secret"), v1alpha1.REQUEST_DENIED, "DeniedByPolicy")
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(denied), denied); err != nil || !denied.Status.IsDenied() || denied.Status.Cluster != nil {
		t.Errorf("%+v, %v", denied.Status, err)
	}
}

func TestAccessScheduler_ManyClusters(t *testing.T) {
	const clusters = 200
	s := newScheduled(t, 1, `
scheduler:
  purposeMappings:
    mine: {template: {spec: {profile: PROFILE, tenancy: Exclusive}}}
    team: {tenancyCount: 2, template: {spec: {profile: PROFILE, tenancy: Shared}}}
`)
	for _, purpose := range []string{"mine", "team"} {
		asked := make([]*v1alpha1.ClusterRequest, clusters)
		start := time.Now()
		var asking sync.WaitGroup
		for part := range 10 {
			asking.Go(func() {
				for i := part; i < clusters; i += 10 {
					asked[i] = s.ask(purpose)
				}
			})
		}
		asking.Wait()
		created := time.Since(start)
		for _, request := range asked {
			s.await(request, v1alpha1.REQUEST_GRANTED, "ClusterGranted")
		}
		t.Logf("%d requests for %q: created in %s, granted after %s", clusters, purpose, created.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	}
	list := &v1alpha1.ClusterList{}
	if err := s.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != clusters+clusters/2 {
		t.Errorf("%d clusters, want %d", len(list.Items), clusters+clusters/2)
	}
}
