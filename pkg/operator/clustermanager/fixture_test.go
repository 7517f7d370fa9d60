// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/binaries"
)

func testScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	utilruntime.Must(operatorv1.AddToScheme(s))
	return s
}

// cluster is a real cluster without nodes.
type cluster struct {
	*localhub.Instance
	client client.Client
}

// world has a management cluster, on which the controller runs, and a cluster that becomes a hub.
type world struct {
	t               *testing.T
	management, hub *cluster
	clock           *testClock
	// network routes from the hub to the management cluster.
	network egress
	// stop stops the controller.
	stop context.CancelFunc
	// ending is true while a hub is being deleted. Its controllers lose their rights then, and exit some time later.
	ending atomic.Bool
}

type testClock struct {
	lock  sync.Mutex
	ahead time.Duration
}

func (c *testClock) Now() time.Time {
	c.lock.Lock()
	defer c.lock.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *testClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *testClock) step(d time.Duration) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.ahead += d
}

func start(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	h, err := localhub.Start(t.Context(), localhub.Options{
		Dir: dir, BinDir: binaries.Kubernetes(t, filepath.Join(dir, "bin")), Plain: true, UnsafeNoFsync: true, FrontArgs: args,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	c, err := client.New(h.AdminConfig(), client.Options{Scheme: testScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{h, c}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	dir := t.TempDir()
	w := &world{t: t, clock: &testClock{}}
	w.management = start(t, filepath.Join(dir, "management"))
	w.hub = start(t, filepath.Join(dir, "hub"), w.network.start(t)...)
	for _, file := range []string{"operator.open-cluster-management.io_clustermanagers.yaml", "namespace.yaml", "rbac.yaml"} {
		if out, err := w.management.Kubectl(t.Context(), "apply", "--server-side", "-f", "../../../artifacts/deploy/operator/"+file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	w.create(binding("clusterhub:hub-operator-clustermanagers"), &rbacv1.RoleBinding{ // for events
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "test"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "clusterhub:hub-operator"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	})
	eventually(t, "ClusterManagers are served", func() string {
		if err := w.management.client.List(t.Context(), &operatorv1.ClusterManagerList{}); err != nil {
			return err.Error()
		}
		return ""
	})
	w.startController()
	return w
}

// operatorUser is the user of the controller. It has only the roles that are shipped for the controller.
const operatorUser = "operator-of-hubs"

// binding binds a role to the controller.
func binding(role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + strings.ReplaceAll(role, ":", "-")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	}
}

// startController runs the controller as hub-operator does.
func (w *world) startController() {
	w.t.Helper()
	skip := true
	limited := rest.CopyConfig(w.management.AdminConfig())
	limited.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:authenticated"}}
	mgr, err := ctrl.NewManager(limited, ctrl.Options{
		Scheme: testScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		Logger: logr.Discard(), Cache: cache.Options{DefaultTransform: command.ForCache},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := (Options{Clock: w.clock}).Controller().Setup(w.t.Context(), mgr); err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			w.t.Errorf("the manager: %v", err)
		}
	}()
	w.stop = func() {
		stop()
		<-done
	}
	w.t.Cleanup(w.stop)
}

// eventually waits until complaint returns an empty string.
func eventually(t *testing.T, what string, complaint func() string) {
	t.Helper()
	last := ""
	if await.Until(t.Context(), await.Limit, func(context.Context) (bool, error) {
		last = complaint()
		return last == "", nil
	}) != nil {
		t.Fatalf("%s: after %s: %s", what, await.Limit, last)
	}
}

// detached returns a ClusterManager whose servers run on another cluster.
func detached(name string) *operatorv1.ClusterManager {
	return &operatorv1.ClusterManager{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: operatorv1.ClusterManagerSpec{
			DeployOption: operatorv1.ClusterManagerDeployOption{Mode: operatorv1.InstallModeDetached},
			Clusterhub:   &operatorv1.ClusterManagerClusterhub{},
		},
	}
}

// freePort returns a port for hub-apiserver.
func freePort(t *testing.T) int {
	t.Helper()
	l, port, err := localserver.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.management.client.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// condition waits until a condition of a ClusterManager has the status and a message that contains the text.
func (w *world) condition(name, condition string, status metav1.ConditionStatus, message string) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%s of %s is %s, with %q", condition, name, status, message), func() string {
		cm := w.read(name)
		if cm == nil {
			return "it is gone"
		}
		c := meta.FindStatusCondition(cm.Status.Conditions, condition)
		if c == nil || c.Status != status || !strings.Contains(c.Message, message) || c.ObservedGeneration != cm.Generation {
			return fmt.Sprintf("%+v", cm.Status.Conditions)
		}
		return ""
	})
}

func (w *world) read(name string) *operatorv1.ClusterManager {
	w.t.Helper()
	cm := &operatorv1.ClusterManager{}
	if err := w.management.client.Get(w.t.Context(), client.ObjectKey{Name: name}, cm); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return cm
}

// give creates the Secret with the kubeconfig of the hub's admin, as a user does.
func (w *world) give(cm *operatorv1.ClusterManager, of *cluster) {
	w.t.Helper()
	data, err := os.ReadFile(of.AdminKubeconfig())
	if err != nil {
		w.t.Fatal(err)
	}
	w.giveData(cm, data)
}

func (w *world) giveData(cm *operatorv1.ClusterManager, kubeconfig []byte) {
	w.t.Helper()
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cm.ServerNamespace(), Name: operatorv1.ExternalHubKubeconfig},
		Data:       map[string][]byte{operatorv1.KeyKubeconfig: kubeconfig},
	})
}

// runAPIServer runs hub-apiserver, and routes the hub's network to it.
func (w *world) runAPIServer(cm *operatorv1.ClusterManager) {
	w.t.Helper()
	port, address := freePort(w.t), deploy.ServiceAddress(cm.ServerNamespace())
	w.network.route(fmt.Sprintf("%s:%d", address.Host, address.Port), port)
	w.run(cm, deploy.APIServer, fmt.Sprintf("--secure-port=%d", port), "--data-dir="+w.t.TempDir(),
		"--shutdown-delay-duration=0s", "--bind-address=127.0.0.1", "--embedded-etcd-unsafe-no-fsync")
}

// run runs a server as its Deployment specifies: with its flags, and with the Secret that it mounts as files. It has nothing else of the management
// cluster. Its addresses differ because all servers share one machine.
func (w *world) run(cm *operatorv1.ClusterManager, name string, others ...string) {
	w.t.Helper()
	d := &appsv1.Deployment{}
	eventually(w.t, "the Deployment "+name, func() string {
		if err := w.management.client.Get(w.t.Context(), client.ObjectKey{Namespace: cm.ServerNamespace(), Name: name}, d); err != nil {
			return err.Error()
		}
		return ""
	})
	dir := w.t.TempDir()
	pod := d.Spec.Template.Spec
	for _, v := range pod.Volumes {
		if v.Secret == nil {
			continue
		}
		secret := &corev1.Secret{}
		if err := w.management.client.Get(w.t.Context(), client.ObjectKey{Namespace: d.Namespace, Name: v.Secret.SecretName}, secret); err != nil {
			w.t.Fatal(err)
		}
		for key, value := range secret.Data {
			if err := os.WriteFile(filepath.Join(dir, key), value, 0o600); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	var args []string
	for _, arg := range pod.Containers[0].Args {
		args = append(args, strings.ReplaceAll(arg, deploy.KubeconfigFolder, dir))
	}
	w.serve(name, append(args, others...))
}

// playKubelet marks all pods of a namespace as ready, each time that it is called.
func (w *world) playKubelet(namespace string) {
	w.t.Helper()
	var pods corev1.PodList
	if err := w.management.client.List(w.t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		w.t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodRunning {
			continue
		}
		before := pod.DeepCopy()
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		if err := w.management.client.Status().Patch(w.t.Context(), pod, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
	}
}

// template returns the pod template of a Deployment as text.
func (w *world) template(cm *operatorv1.ClusterManager, name string) string {
	w.t.Helper()
	d := &appsv1.Deployment{}
	if err := w.management.client.Get(w.t.Context(), client.ObjectKey{Namespace: cm.ServerNamespace(), Name: name}, d); err != nil {
		w.t.Fatal(err)
	}
	return d.Spec.Template.String()
}
