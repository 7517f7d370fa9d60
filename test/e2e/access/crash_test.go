// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const crashConfig = `
scheduler:
  purposeMappings:
    workload:
      template: {spec: {profile: test.existing.killed, tenancy: Exclusive}}
`

// TestAccessCrash kills the controllers and the providers with SIGKILL at each step from the first write to the last. Access that was granted before
// is used all the time.
func TestAccessCrash(t *testing.T) {
	h := newAccessHub(t, crashConfig)
	h.namespace(t, "ops")
	h.namespace(t, "teams")
	controllers := &fuse{agent: "hub-controller-manager", done: sets.New[string]()}
	controllers.Daemon = harness.StartDaemon(t, harness.Binary(t, "hub-controller-manager"), "--leader-elect=false", "--registration-drivers=",
		"--kubeconfig="+h.tap(t, h.account(t, "clusterhub-system", "hub-controller-manager"), controllers),
		"--scheduler-config="+h.schedulerConfig, "--health-probe-bind-address=0", "--metrics-bind-address=0")

	// The provider is killed while it creates a cluster.
	dir := t.TempDir()
	endLeftovers(t, dir)
	here := h.provider(t, "local", "here", "--dir="+dir, "--bin-dir="+localBin(t), "--unsafe-no-fsync")
	cluster := h.newCluster(t, "ops", "killed", "test.here.default")
	h.killUntil(t, here, cluster.Name+" is ready", func(ctx context.Context) (bool, error) {
		err := h.client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
		return cluster.Status.Phase == v1alpha1.StatusPhaseReady, err
	})
	admin := h.create(t, "ops", "admin", cluster, withRole("cluster-admin"))
	kubeconfigOfAdmin := h.granted(t, admin)
	target, adminGoesOn := clientOf(t, kubeconfigOfAdmin), h.use(t, admin)

	// The same cluster belongs to a different provider, whose writes can be counted.
	provider := &fuse{agent: "cluster-provider", done: sets.New[string]()}
	tapped := h.tap(t, writeKubeconfig(t, string(kubeconfigOfAdmin)), provider)
	h.admit(t, harness.ProvidersNamespace, "existing", []string{"killed", "kept"}, harness.Must(os.ReadFile(tapped))(t))
	provider.Daemon = h.providerAs(t, "kubeconfig", "existing", h.tap(t, h.providerAccount(t, "existing"), provider))
	keptCluster := h.newCluster(t, "teams", "kept", "test.existing.kept")
	h.awaitReady(t, keptCluster)
	kept := h.create(t, "teams", "kept", keptCluster, permissions(readNodes...))
	keptGoesOn := h.use(t, kept)
	for finished := false; !finished; {
		controllers.arm(controllers.Restart)
		provider.arm(provider.Restart)
		h.lifecycle(t, "killed")
		h.nothingLeft(t, target, admin, kept)
		survived := controllers.arm(nil)
		finished = provider.arm(nil) && survived
		if t.Failed() {
			t.Fatalf("killed after %s and %s", controllers.last, provider.last)
		}
	}
	t.Logf("the controllers were killed %d times, after some of %q, the provider %d times, after some of %q", controllers.kills, sets.List(controllers.done),
		provider.kills, sets.List(provider.done))
	if controllers.kills == 0 || provider.kills == 0 {
		t.Error("both have to be killed")
	}
	provider.done, provider.kills = sets.New[string](), 0
	for finished := false; !finished; {
		finished = h.deletedMeanwhile(t, "deleted", keptCluster, provider)
		h.nothingLeft(t, target, admin, kept)
		if t.Failed() {
			t.Fatalf("killed after %s, and started again when the request was deleted", provider.last)
		}
	}
	t.Logf("the provider was killed %d times, of %d writes, and its request deleted", provider.kills, provider.done.Len())

	// The provider is killed while it deletes the cluster.
	keptGoesOn()
	adminGoesOn()
	for _, object := range []client.Object{kept, keptCluster} {
		if err := h.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		h.awaitGone(t, object)
	}
	for _, object := range []client.Object{admin, cluster} {
		if err := h.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		h.killUntil(t, here, object.GetName()+" is gone", func(ctx context.Context) (bool, error) {
			err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object)
			return err != nil, client.IgnoreNotFound(err)
		})
	}
	h.nothingLeft(t, nil)
	nothingStored(t, dir)
	if _, err := target.Discovery().ServerVersion(); err == nil {
		t.Error("the cluster is still there")
	}
}

// lifecycle runs the life of a cluster and access to it, from the requests to their deletion.
func (h *accessHub) lifecycle(t *testing.T, name string) {
	t.Helper()
	request := &v1alpha1.ClusterRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name}, Spec: v1alpha1.ClusterRequestSpec{Purpose: "workload"},
	}
	access := &v1alpha1.AccessRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name},
		Spec: v1alpha1.AccessRequestSpec{
			RequestRef: &v1alpha1.ObjectReference{Namespace: "teams", Name: name},
			Token: &v1alpha1.TokenConfig{
				Permissions: append([]v1alpha1.PermissionsRequest{{Namespace: "web", Rules: rulesOf("list", "configmaps")}}, readNodes...),
				RoleRefs:    []v1alpha1.RoleRef{viewer},
			},
		},
	}
	for _, object := range []client.Object{request, access} {
		if err := h.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	user := clientOf(t, h.granted(t, access))
	harness.Must(user.CoreV1().Nodes().List(t.Context(), listOptions()))(t)
	harness.Must(user.CoreV1().ConfigMaps("web").List(t.Context(), listOptions()))(t)
	harness.Must(harness.Ours(t, h.hub.AdminConfig()).OpenMCPV1alpha1().AccessRequests("teams").
		CreateToken(t.Context(), name, &v1alpha1.AccessToken{}, metav1.CreateOptions{}))(t)
	for _, object := range []client.Object{access, request} {
		if err := h.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	h.awaitGone(t, access, request)
	if _, err := user.CoreV1().Nodes().List(t.Context(), listOptions()); err == nil {
		t.Errorf("%s is gone, and its kubeconfig is still of use", name)
	}
	clusters := &v1alpha1.ClusterList{}
	if err := h.client.List(t.Context(), clusters, client.InNamespace("teams")); err != nil || len(clusters.Items) != 1 {
		t.Errorf("the Clusters %v are left, %v", clusters.Items, err)
	}
}

// deletedMeanwhile deletes a request while its provider, killed after a write, does not run. The provider survives if the request is granted before a
// kill.
func (h *accessHub) deletedMeanwhile(t *testing.T, name string, c *v1alpha1.Cluster, provider *fuse) (survived bool) {
	t.Helper()
	killed := make(chan struct{})
	provider.arm(func() { close(killed) })
	ar := h.create(t, "teams", name, c, permissions(readNodes...))
	harness.Eventually(t, name+" is granted, or its provider killed", func(ctx context.Context) (bool, error) {
		select {
		case <-killed:
			return true, nil
		default:
			err := h.client.Get(ctx, client.ObjectKeyFromObject(ar), ar)
			return ar.Status.IsGranted(), err
		}
	})
	if err := h.client.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	survived = provider.arm(nil)
	if !survived {
		provider.Restart()
	}
	h.awaitGone(t, ar)
	return survived
}

// use uses the access of a request until the returned function is called, and checks that it worked all the time and was not granted again.
func (h *accessHub) use(t *testing.T, ar *v1alpha1.AccessRequest) (stop func()) {
	t.Helper()
	user := clientOf(t, h.granted(t, ar))
	secret := object(t, h, ar.Namespace, ar.Status.SecretRef.Name, &corev1.Secret{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		uses := 0
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if _, err := user.CoreV1().Nodes().List(ctx, listOptions()); err != nil && ctx.Err() == nil {
				t.Errorf("the kubeconfig of %s does not work: %v", ar.Name, err)
			}
			uses++
		}, 100*time.Millisecond)
		ended <- uses
	}()
	return func() {
		t.Helper()
		cancel()
		if uses := <-ended; uses < 10 {
			t.Errorf("%s was used %d times only", ar.Name, uses)
		}
		if now := object(t, h, secret.Namespace, secret.Name, &corev1.Secret{}); now.ResourceVersion != secret.ResourceVersion {
			t.Errorf("%s has been granted anew", ar.Name)
		}
	}
}

// killUntil kills a process repeatedly, and increases the time that it runs each time.
func (h *accessHub) killUntil(t *testing.T, d *harness.Daemon, what string, ok func(context.Context) (bool, error)) {
	t.Helper()
	for life := 500 * time.Millisecond; life < harness.Timeout/4; life += 250 * time.Millisecond {
		d.Restart()
		time.Sleep(life) // the kill must hit an arbitrary moment of the process
		if done, err := ok(t.Context()); err != nil {
			t.Fatal(err)
		} else if done {
			return
		}
	}
	t.Fatalf("%s: not after all the lives of %v", what, d.Args)
}
