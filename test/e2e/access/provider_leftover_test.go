// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/namehash"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestAccessProvider_Leftovers verifies that the provider finds the rights that remain in the cluster when a user removes the finalizer from a
// request, and that it deletes nothing else.
func TestAccessProvider_Leftovers(t *testing.T) {
	p := newProviding(t)
	p.create(&corev1.Namespace{ObjectMeta: harness.Named(harness.ProvidersNamespace)})
	admin := harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t)
	p.admit("existing", "plain", admin)
	p.admit("another", "shared", admin)
	kill := p.run("existing")
	killOther := p.run("another")
	blue, green := p.newCluster("test.existing.plain", "blue"), p.newCluster("test.another.shared", "green")
	p.awaitPhase(blue, v1alpha1.StatusPhaseReady)
	p.awaitPhase(green, v1alpha1.StatusPhaseReady)

	token := func(named string) *v1alpha1.TokenConfig {
		return &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}, Permissions: []v1alpha1.PermissionsRequest{
			{Rules: rulesOf("list", "nodes")}, {Namespace: "web", Rules: rulesOf("get", "secrets")}, {Name: named, Rules: rulesOf("get", "nodes")},
		}}
	}
	requests, users := map[string]*v1alpha1.AccessRequest{}, map[string]kubernetes.Interface{}
	for _, name := range []string{"lost", "kept", "again", "stuck", "half", "theirs"} {
		c := blue
		if name == "theirs" {
			c = green
		}
		requests[name] = p.request(t, name, c, token(name+"-named"))
	}
	for name, ar := range requests {
		users[name] = p.as(t, p.granted(t, ar))
	}
	kill()
	killOther()
	for _, name := range []string{"lost", "again", "stuck", "half", "theirs"} {
		p.vanish(t, requests[name])
	}
	// One is created again and can be granted, the other one is not.
	again := p.request(t, "again", blue, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	p.unprepared(t, "stuck", blue, token(""))
	// The deletion of one had begun when the provider was killed.
	h := namehash.NameHash("test", "existing", "teams", "half")
	bindings := p.target.RbacV1().ClusterRoleBindings()
	if err := bindings.Delete(t.Context(), "openmcp:permission:"+h+":0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	unchanged := p.forge(t)
	before := p.left(t, "existing", "lost")
	theirs := p.left(t, "another", "theirs")
	if len(before) != 8+3 || len(theirs) != 8 {
		t.Fatalf("there is %v, and of another provider %v", before, theirs)
	}

	t.Run("the hub answers with errors", func(t *testing.T) {
		for _, status := range []int32{http.StatusInternalServerError, http.StatusForbidden, http.StatusNotFound} {
			kubeconfig, asked := p.failing(t, status)
			const stays = "Deleting the leftovers of deleted AccessRequests failed and will be retried"
			said := p.said("existing", stays)
			kill := p.runKind("kubeconfig", "existing", "--kubeconfig="+kubeconfig)
			harness.Eventually(t, fmt.Sprintf("it is said that the hub answers %d", status), func(context.Context) (bool, error) {
				return p.said("existing", stays) > said, nil
			})
			kill()
			if left := p.left(t, "existing", "lost"); !slices.Equal(left, before) || asked.Load() == 0 {
				t.Errorf("asked the hub %d times, which answered %d, and there is %v", asked.Load(), status, left)
			}
		}
	})

	p.run("existing")
	// The role has a name that the request chose, and has no subjects.
	for name, want := range map[string][]string{
		"lost": {"ClusterRole lost-named"}, "half": {"ClusterRole half-named"}, "stuck": {"ClusterRole stuck-named"},
	} {
		harness.Eventually(t, "what is left of "+name, func(context.Context) (bool, error) {
			left := slices.DeleteFunc(p.left(t, "existing", name), func(object string) bool { return strings.Contains(object, "forged") })
			if !slices.Equal(left, want) {
				return false, fmt.Errorf("%v", left)
			}
			return true, nil
		})
	}
	sources := harness.Kube(t, p.hub.AdminConfig()).CoreV1().Secrets(v1alpha1.TokenSourceNamespace)
	for name, ar := range requests {
		_, err := sources.Get(t.Context(), string(ar.UID), metav1.GetOptions{})
		switch name {
		case "kept", "theirs":
			if err != nil {
				t.Errorf("the token source of %s: %v", name, err)
			}
		case "lost", "half", "stuck":
			if !apierrors.IsNotFound(err) {
				t.Errorf("the token source of %s is left: %v", name, err)
			}
		}
	}
	p.granted(t, again)
	for _, name := range []string{"lost", "half", "stuck", "again"} {
		harness.Eventually(t, "the token of "+name+" is of no use", func(ctx context.Context) (bool, error) {
			_, err := users[name].CoreV1().Pods("default").List(ctx, listOptions())
			return apierrors.IsUnauthorized(err), nil
		})
	}
	for name, user := range map[string]kubernetes.Interface{
		"kept": users["kept"], "theirs": users["theirs"], "again": p.as(t, p.granted(t, again)),
	} {
		harness.Eventually(t, name+" has access", func(ctx context.Context) (bool, error) {
			_, err := user.CoreV1().Pods("default").List(ctx, listOptions())
			return err == nil, err
		})
	}
	if left := p.left(t, "another", "theirs"); !slices.Equal(left, theirs) {
		t.Errorf("another provider had %v, and has %v", theirs, left)
	}
	if kept := p.left(t, "existing", "kept"); len(kept) != 8 {
		t.Errorf("of a request that is there, there is %v", kept)
	}
	unchanged()
	if p.said("existing", "Deleted a leftover of a deleted AccessRequest in the cluster") == 0 || p.said("existing", "Skipping objects that refer to a deleted AccessRequest") == 0 {
		t.Error("it is not said")
	}

	t.Run("while the provider runs", func(t *testing.T) { p.byForce(t, blue, token("")) })

	// The cluster remains but is no longer provided, so that no later check would find the access.
	late := p.request(t, "late", blue, token(""))
	p.granted(t, late)
	p.vanish(t, late)
	p.delete(t, blue)
	p.awaitGone(t, blue)
	if left := p.left(t, "existing", "late"); len(left) > 0 {
		t.Errorf("left in a cluster that lives on: %v", left)
	}
}

// byForce removes the finalizer from requests that have access, at various states of the provider.
func (p *providing) byForce(t *testing.T, c *v1alpha1.Cluster, token *v1alpha1.TokenConfig) {
	const free = `{"metadata":{"finalizers":null}}`
	requests := map[string]*v1alpha1.AccessRequest{}
	for _, name := range []string{"tried", "refused", "swift"} {
		requests[name] = p.request(t, name, c, token)
	}
	for name, ar := range requests {
		p.granted(t, ar)
		if left := p.left(t, "existing", name); len(left) != 8 {
			t.Fatalf("%s has %v", name, left)
		}
	}
	tried, refused, swift := requests["tried"], requests["refused"], requests["swift"]
	held := tried.Finalizers
	p.patch(t, tried, free)
	harness.Eventually(t, "the provider holds the request again", func(context.Context) (bool, error) {
		p.get(t, tried)
		return harness.Holds(slices.Equal(tried.Finalizers, held), tried.Finalizers)
	})

	p.signal(t, "existing", syscall.SIGSTOP)
	p.patch(t, refused, `{"metadata":{"finalizers":null,"labels":null}}`)
	p.patchStatus(t, refused, `{"status":{"phase":"Denied"}}`)
	p.patch(t, swift, `{"metadata":{"finalizers":["test/held"]}}`)
	p.delete(t, swift)
	p.patch(t, swift, free)
	p.awaitGone(t, swift)
	p.signal(t, "existing", syscall.SIGCONT)
	for _, name := range []string{"refused", "swift"} {
		harness.Eventually(t, "what "+name+" has goes", func(context.Context) (bool, error) {
			left := p.left(t, "existing", name)
			return harness.Holds(len(left) == 0, left)
		})
	}
	p.get(t, tried)
	if !tried.Status.IsGranted() || len(p.left(t, "existing", "tried")) != 8 {
		t.Errorf("the request that was tried: %+v", tried.Status)
	}
}

// vanish deletes a request without its finalization.
func (p *providing) vanish(t *testing.T, ar *v1alpha1.AccessRequest) {
	t.Helper()
	p.patch(t, ar, `{"metadata":{"finalizers":null}}`)
	p.delete(t, ar)
	p.awaitGone(t, ar)
}

func (p *providing) signal(t *testing.T, provider string, signal os.Signal) {
	t.Helper()
	if err := p.processes[provider].Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// said returns how often a provider has logged a message.
func (p *providing) said(provider, what string) int {
	p.t.Helper()
	return strings.Count(string(harness.Must(os.ReadFile(p.log(provider)))(p.t)), what)
}

// forge creates objects that claim to belong to the request lost, or to a different hub, and returns a function that checks that they are unchanged.
func (p *providing) forge(t *testing.T) (unchanged func()) {
	t.Helper()
	ctx, rbac := t.Context(), p.target.RbacV1()
	h := namehash.NameHash("test", "existing", "teams", "lost")
	origin := harness.Must(rbac.ClusterRoleBindings().Get(ctx, "openmcp:roleref:"+h+":0", metav1.GetOptions{}))(t)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: maps.Clone(origin.Labels), Annotations: maps.Clone(origin.Annotations)}
	}
	admins := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "admins"}}
	otherHub := &rbacv1.ClusterRoleBinding{ObjectMeta: meta("openmcp:roleref:" + h + ":7"), RoleRef: origin.RoleRef, Subjects: admins}
	otherHub.Annotations["test.existing.clusters.openmcp.cloud/cluster-uid"] = "another"
	otherHub.Labels["test.existing.clusters.openmcp.cloud/managed-by-name"] = "of-another-hub"
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta("forged"), RoleRef: origin.RoleRef, Subjects: admins}
	role := &rbacv1.ClusterRole{ObjectMeta: meta("forged")}
	account := &corev1.ServiceAccount{ObjectMeta: meta("forged")}

	versions := func() []string {
		return []string{
			harness.Must(rbac.ClusterRoleBindings().Get(ctx, otherHub.Name, metav1.GetOptions{}))(t).ResourceVersion,
			harness.Must(rbac.ClusterRoleBindings().Get(ctx, binding.Name, metav1.GetOptions{}))(t).ResourceVersion,
			harness.Must(rbac.ClusterRoles().Get(ctx, role.Name, metav1.GetOptions{}))(t).ResourceVersion,
			harness.Must(p.target.CoreV1().ServiceAccounts("default").Get(ctx, account.Name, metav1.GetOptions{}))(t).ResourceVersion,
		}
	}
	harness.Must(rbac.ClusterRoleBindings().Create(ctx, otherHub, metav1.CreateOptions{}))(t)
	harness.Must(rbac.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}))(t)
	harness.Must(rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{}))(t)
	harness.Must(p.target.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}))(t)
	before := versions()
	return func() {
		t.Helper()
		if now := versions(); !slices.Equal(now, before) {
			t.Errorf("what somebody else has made had the versions %v, and has %v", before, now)
		}
	}
}

// failing returns a kubeconfig of a proxy to the hub that responds to lists of AccessRequests in the namespace teams with a status, and counts them.
func (p *providing) failing(t *testing.T, status int32) (kubeconfig string, asked *atomic.Int32) {
	t.Helper()
	admin := p.hub.AdminConfig()
	proxy := &httputil.ReverseProxy{
		Transport: harness.Must(rest.TransportFor(admin))(t), FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(harness.Must(url.Parse(admin.Host))(t)) },
	}
	asked = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/namespaces/teams/accessrequests") && r.Method == http.MethodGet {
			asked.Add(1)
			http.Error(w, "no", int(status))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	config := api.NewConfig()
	config.Clusters["hub"] = &api.Cluster{Server: server.URL}
	config.Contexts["hub"] = &api.Context{Cluster: "hub"}
	config.CurrentContext = "hub"
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, asked
}
