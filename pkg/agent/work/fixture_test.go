// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/drift"
	"github.com/clusterhub/clusterhub/pkg/agent/work/executor"
	"github.com/clusterhub/clusterhub/pkg/agent/work/kinds"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	clusterclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	workclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/work/v1"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world is one real cluster that is both the hub and the managed cluster. Each test has a namespace of works, and one for objects.
type world struct {
	*testing.T
	client     dynamic.Interface
	works      workclient.ManifestWorkInterface
	cluster    string
	namespace  string
	hubURL     string
	agentID    string
	grace      time.Duration
	maxWatches int
	// only is the one namespace of agents that have no rights in others.
	only string
	own  Own
	// user is the user of the agents on the managed cluster; its admin by default.
	user   string
	groups []string
	// requests counts the requests of agents, and around is called around each request.
	requests atomic.Int64
	around   func(*http.Request, func() (*http.Response, error)) (*http.Response, error)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newSerialWorld(t)
}

// newSerialWorld returns a world for a test that does not run in parallel, because another test waits for its end.
func newSerialWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, client: worktest.Client(t), cluster: worktest.Namespace(t), namespace: worktest.Namespace(t), grace: time.Hour, maxWatches: 100}
	w.hubURL, w.agentID = "https://"+w.cluster, "agent-"+w.cluster
	w.works = clusterclient.NewForConfigOrDie(worktest.Config(t)).WorkV1().ManifestWorks(w.cluster)
	// No agent would evict what the agents of this test create.
	t.Cleanup(func() {
		ctx := context.Background()
		list, err := w.works.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		for i := range list.Items {
			_, _ = w.works.Patch(ctx, list.Items[i].Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	})
	return w
}

// roundTrip lets a test intercept the requests of agents.
type roundTrip struct {
	w    *world
	next http.RoundTripper
}

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) {
	r.w.requests.Add(1)
	if r.w.around != nil {
		return r.w.around(request, func() (*http.Response, error) { return r.next.RoundTrip(request) })
	}
	return r.next.RoundTrip(request)
}

func (w *world) config() *rest.Config {
	config := worktest.Config(w.T)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTrip{w, next} })
	return config
}

// newAgent returns an agent with no state.
func (w *world) newAgent() *Agent {
	w.Helper()
	hub, config := w.config(), w.config()
	config.Impersonate.UserName, config.Impersonate.Groups = w.user, w.groups
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	executors, err := executor.New(config, w.only)
	if err != nil {
		w.Fatal(err)
	}
	random := func() float64 { return 0.5 }
	hash := memory.HubHash(w.hubURL)
	var home memory.Memory = memory.NewApplied(client, hash, w.agentID)
	if w.only != "" {
		home = memory.NewNamespaced(client, w.only, hash, w.agentID)
	}
	own := w.own
	if own.Namespace == "" {
		own.Namespace = "agent"
	}
	return New(Options{
		Works: clusterclient.NewForConfigOrDie(hub).WorkV1().ManifestWorks(w.cluster), Namespace: w.cluster, Cluster: client,
		Kinds:  kinds.New(discovery.NewDiscoveryClientForConfigOrDie(config)),
		Drift:  &drift.Watcher{Client: metadata.NewForConfigOrDie(config), Most: w.maxWatches},
		Memory: home, HubHash: hash, Only: w.only, Own: own, Executors: executors, Grace: w.grace, Random: random,
	})
}

// start runs an agent until stop, which waits for its end, or until the end of the test.
func (w *world) start(a *Agent) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.New(nil)))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the agent has ended: %v", err)
		}
	})
	w.Cleanup(stop)
	return stop
}

// put creates a work, or replaces its spec.
func (w *world) put(name string, spec workv1.ManifestWorkSpec) *workv1.ManifestWork {
	w.Helper()
	have, err := w.works.Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		have, err = w.works.Create(w.Context(), &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	} else {
		for {
			have.Spec = spec
			var updated *workv1.ManifestWork
			updated, err = w.works.Update(w.Context(), have, metav1.UpdateOptions{})
			if err == nil {
				have = updated
				break
			}
			have, err = w.works.Get(w.Context(), name, metav1.GetOptions{})
			if err != nil {
				break
			}
		}
	}
	if err != nil {
		w.Fatal(err)
	}
	return have
}

func (w *world) spec(manifests ...string) (spec workv1.ManifestWorkSpec) {
	for _, text := range manifests {
		data, err := json.Marshal(worktest.Parse(text).Object)
		if err != nil {
			w.Fatal(err)
		}
		spec.Workload.Manifests = append(spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: data}})
	}
	return spec
}

// configMap returns the manifest of a ConfigMap in the test's namespace.
func (w *world) configMap(name, data string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: %s}", name, w.namespace, data)
}

func (w *world) target(name string) apply.Target {
	return apply.Target{GroupVersionResource: configMaps, Namespace: w.namespace, Name: name}
}

// get returns the object, or nil if it does not exist.
func (w *world) get(t apply.Target) *unstructured.Unstructured {
	w.Helper()
	have, err := apply.Get(w.Context(), w.client, t)
	if err != nil {
		w.Fatal(err)
	}
	return have
}

// data returns the data of a ConfigMap, or "<none>" if it does not exist.
func (w *world) data(name string) string {
	w.Helper()
	have := w.get(w.target(name))
	if have == nil {
		return "<none>"
	}
	return fmt.Sprint(have.Object["data"])
}

// work returns a work on the hub, or nil.
func (w *world) work(name string) *workv1.ManifestWork {
	w.Helper()
	work, err := w.works.Get(w.Context(), name, metav1.GetOptions{})
	if apply.IsGone(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return work
}

// said returns the statuses of a condition of a work and its manifests: "<of the work>: <of each manifest> …". It is empty until they are for the
// work's generation.
func (w *world) said(name, conditionType string) string {
	w.Helper()
	work := w.work(name)
	if work == nil {
		return "<none>"
	}
	of := func(conditions []metav1.Condition) string {
		if c := meta.FindStatusCondition(conditions, conditionType); c != nil && (c.ObservedGeneration == work.Generation || c.ObservedGeneration == 0) {
			return string(c.Status)
		}
		return ""
	}
	said := of(work.Status.Conditions)
	if said == "" {
		return ""
	}
	said += ":"
	for _, m := range work.Status.ResourceStatus.Manifests {
		said += " " + of(m.Conditions)
	}
	return said
}

// message returns the message of a condition of one manifest.
func (w *world) message(name string, ordinal int, conditionType string) string {
	w.Helper()
	work := w.work(name)
	if work == nil || len(work.Status.ResourceStatus.Manifests) <= ordinal {
		return ""
	}
	if c := meta.FindStatusCondition(work.Status.ResourceStatus.Manifests[ordinal].Conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

// eventually waits until two texts are the same.
func (w *world) eventually(what, want string, got func() string) {
	w.Helper()
	last := ""
	defer func() {
		if w.Failed() {
			w.Logf("%s is %q, want %q", what, last, want)
		}
	}()
	worktest.Eventually(w.T, what+" is "+want, func() bool { last = got(); return last == want })
}

func (w *world) eventuallySaid(name, conditionType, want string) {
	w.Helper()
	w.eventually(name+"'s "+conditionType, want, func() string { return w.said(name, conditionType) })
}

// delete deletes a work on the hub, without waiting.
func (w *world) delete(name string) {
	w.Helper()
	if err := w.works.Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) eventuallyGone(name string) {
	w.Helper()
	worktest.Eventually(w.T, name+" is gone", func() bool { return w.work(name) == nil })
}

// recordTarget returns the target of the record of a work.
func (w *world) recordTarget(name string) apply.Target {
	hash := memory.HubHash(w.hubURL)
	if w.only != "" {
		return apply.Owner{Namespace: w.only, Name: apply.RecordPrefix + hash[:32] + "-" + name}.Target()
	}
	return apply.Owner{Name: hash + "-" + name}.Target()
}

// record returns the record of a work, or nil.
func (w *world) record(name string) *unstructured.Unstructured {
	w.Helper()
	return w.get(w.recordTarget(name))
}

// recorded returns the names of the recorded objects of a work, with a star if the UID is missing.
func (w *world) recorded(name string) string {
	w.Helper()
	record := w.record(name)
	if record == nil {
		return "<none>"
	}
	resources, _, _ := unstructured.NestedSlice(record.Object, "status", "appliedResources")
	if text, ok, _ := unstructured.NestedString(record.Object, "data", "resources"); ok {
		_ = json.Unmarshal([]byte(text), &resources)
	}
	var names []string
	for _, one := range resources {
		resource := one.(map[string]any)
		text := fmt.Sprint(resource["name"])
		if resource["uid"] == nil {
			text += "*"
		}
		names = append(names, text)
	}
	return strings.Join(names, " ")
}

// change updates an object as another client.
func (w *world) change(t apply.Target, how func(*unstructured.Unstructured)) {
	w.Helper()
	for try := 0; ; try++ {
		have := w.get(t)
		how(have)
		_, err := w.client.Resource(t.GroupVersionResource).Namespace(t.Namespace).Update(w.Context(), have, metav1.UpdateOptions{})
		if err == nil {
			return
		}
		if try > 10 {
			w.Fatal(err)
		}
	}
}

// eventuallyIdle waits until the agents have sent no requests for a while.
func (w *world) eventuallyIdle() {
	w.Helper()
	before, since := w.requests.Load(), time.Now()
	worktest.Eventually(w.T, "nothing is asked for", func() bool {
		if now := w.requests.Load(); now != before {
			before, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
}
