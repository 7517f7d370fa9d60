// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/await"
)

// teams is a real cluster with namespaces, and with users who have a role in one of them. Only a real server evaluates RBAC.
type teams struct {
	t     *testing.T
	admin *rest.Config
	client.Client
	// args are the arguments of install that select the hub, and name the Secrets that the namespaces have.
	args []string
}

func newTeams(t *testing.T, namespaces ...string) *teams {
	t.Helper()
	admin := operatortest.Shared.Config(t, "teams")
	c, err := client.New(admin, client.Options{Scheme: kit.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	hub := clitest.NewServer(t)
	hub.Allow(true)
	w := &teams{t: t, admin: admin, Client: c, args: []string{"--hub-token", clitest.BootstrapToken, "--hub-apiserver", hub.URL,
		"--ca-data", base64.StdEncoding.EncodeToString(hub.CA())}}
	for _, name := range append(namespaces, "people") {
		err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		w.settled(name)
	}
	return w
}

// settled waits until a namespace has the objects that every namespace gets by default.
func (w *teams) settled(namespace string) {
	w.t.Helper()
	for name, object := range map[string]client.Object{"default": &corev1.ServiceAccount{}, "kube-root-ca.crt": &corev1.ConfigMap{}} {
		operatortest.Eventually(w.t, namespace+" has its "+name, func() bool {
			return w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object) == nil
		})
	}
}

func (w *teams) make(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// user creates a user with a ClusterRole in a namespace, if one is given, and no other permissions. It returns the user's kubeconfig.
func (w *teams) user(name, role, namespace string) (config *rest.Config, file string) {
	w.t.Helper()
	w.make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "people", Name: name}})
	if role != "" {
		w.make(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "people", Name: name}}})
	}
	config = operatortest.AccountOf(w.t, w.admin, "people", name)
	return config, w.file(config)
}

func (w *teams) file(config *rest.Config) string {
	w.t.Helper()
	data, err := operatortest.Kubeconfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	name := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// do runs kubectl hub agent. It does not use run, whose time limit is for fake servers.
func (w *teams) do(kubeconfig, verb string, args ...string) (stdout, stderr string, err error) {
	w.t.Helper()
	all := append([]string{"agent", verb, "--timeout", await.Limit.String()}, args...)
	if verb == "install" {
		all = append(all, w.args...)
	}
	return clitest.RunFor(w.t.Context(), w.t, await.Limit, &kit.Options{PollInterval: 50 * time.Millisecond}, kubeconfig, all...)
}

func (w *teams) must(kubeconfig, verb string, args ...string) (stdout, stderr string) {
	w.t.Helper()
	stdout, stderr, err := w.do(kubeconfig, verb, args...)
	if err != nil {
		w.t.Fatalf("kubectl hub agent %s %q: %v: %s", verb, args, err, stderr)
	}
	return stdout, stderr
}

// refused verifies that the command fails with these texts, and that nothing was created or deleted.
func (w *teams) refused(kubeconfig, verb string, args []string, want ...string) {
	w.t.Helper()
	before := operatortest.Objects(w.t, w.admin)
	_, stderr, err := w.do(kubeconfig, verb, args...)
	if err == nil {
		w.t.Fatalf("kubectl hub agent %s %q is not refused", verb, args)
	}
	line := command.ErrorLine(err)
	clitest.Says(w.t, line, want...)
	if strings.Contains(line, "\n") || strings.Contains(stderr, " created\n") || strings.Contains(stderr, " deleted\n") {
		w.t.Errorf("it says %q and %q", line, stderr)
	}
	if after := operatortest.Objects(w.t, w.admin); !maps.Equal(before, after) {
		w.t.Errorf("kubectl hub agent %s %q has changed the objects", verb, args)
	}
}

var ofTeam = []string{"--namespace"}

// TestAgentInstall_UserWithOneNamespace verifies that a user with the role admin in one namespace can install, upgrade and uninstall the agent
// there, and that the installed objects have no permissions elsewhere.
func TestAgentInstall_UserWithOneNamespace(t *testing.T) {
	w := newTeams(t, "shop", "other")
	_, anns := w.user("ann", "admin", "shop")
	w.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"}})
	before := operatortest.Objects(t, w.admin)
	install := append(slices.Clone(ofTeam), "shop")

	stdout, stderr := w.must(anns, "install", install...)
	clitest.Says(t, stdout, "The agent of cluster c-shop is deployed.", "with the rights of admin in these namespaces: shop.", "kubectl hub accept --clusters c-shop")
	clitest.Says(t, stderr, "Its name on the hub is c-shop (set --cluster-name for another)", "deployment/hub-agent created")
	made := map[string]bool{}
	for name := range operatortest.Objects(t, w.admin) {
		if !before[name] {
			made[name] = true
			if !strings.Contains(name, " shop/") {
				t.Errorf("it makes %s", name)
			}
		}
	}
	objects, err := deploy.Agent{Namespace: "shop", Scoped: true}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		have := o.DeepCopy()
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(o), have); err != nil || !kit.Owner.Owns(have) {
			t.Errorf("%s: %v", o.GetName(), err)
		}
	}

	// Installing again takes the values of the installed agent, and creates nothing.
	_, stderr = w.must(anns, "install", install...)
	if strings.Contains(stderr, " created\n") {
		t.Errorf("again: %s", stderr)
	}
	clitest.Says(t, stderr, "Namespace shop already has an agent, of the cluster c-shop: upgrading it")
	w.refused(anns, "install", append(install, "--cluster-name", "another"), "namespace shop already has an agent, of the cluster c-shop")
	w.refused(w.file(w.admin), "install", []string{"--namespace", "shop", "--cluster-scoped"}, "for this namespace alone, and that cannot be changed")
	w.refused(anns, "uninstall", []string{"--namespace", "shop", "--cluster-name", "another"}, "is the one of cluster c-shop, not of another")

	w.must(anns, "uninstall", "--namespace", "shop")
	operatortest.NothingSince(t, w.admin, before)
	if after := operatortest.Objects(t, w.admin); !maps.Equal(before, after) {
		t.Error("it has removed what others have")
	}
	stdout, _ = w.must(anns, "uninstall", "--namespace", "shop")
	if stdout != "No agent found in namespace shop.\n" {
		t.Errorf("again it says %q", stdout)
	}
}

// TestAgentUninstall_DeletesServicesOnRequest verifies that the user decides whether services are deleted, and that they are deleted with the
// permissions of that user.
func TestAgentUninstall_DeletesServicesOnRequest(t *testing.T) {
	w := newTeams(t, "running")
	config, sues := w.user("sue", "admin", "running")
	install := append(slices.Clone(ofTeam), "running")
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	before := operatortest.Objects(t, w.admin)
	for _, fate := range []string{"delete", "keep"} {
		w.must(sues, "install", install...)
		hash := memory.HubHash("https://hub.example.com/c-running")
		record, err := memory.NewNamespaced(client, "running", hash, deploy.AgentID("running")).Ensure(t.Context(), "w1", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		brought := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "running", Name: "brought", OwnerReferences: []metav1.OwnerReference{record.Owner.Reference()}}}
		w.make(brought)
		target := memory.AppliedResource{Target: apply.Target{GroupVersionResource: apply.ConfigMaps, Namespace: "running", Name: "brought"}, UID: brought.UID}
		if err := memory.NewNamespaced(client, "running", hash, deploy.AgentID("running")).SetResources(t.Context(), record, []memory.AppliedResource{target}); err != nil {
			t.Fatal(err)
		}
		w.refused(sues, "uninstall", []string{"--namespace", "running"}, "the agent has applied 1 work with 1 object", "--works=delete or --works=keep")
		stdout, _ := w.must(sues, "uninstall", "--namespace", "running", "--works", fate)
		clitest.Says(t, stdout, "The objects of its works ", "1 work with 1 object")
		if fate == "keep" {
			if err := w.Delete(t.Context(), brought); err != nil {
				t.Errorf("what was kept: %v", err)
			}
		}
		operatortest.NothingSince(t, w.admin, before)
	}
}

// TestAgentInstall_PrintsManifestsForOneNamespace verifies that the user who printed the manifests can apply them.
func TestAgentInstall_PrintsManifestsForOneNamespace(t *testing.T) {
	w := newTeams(t, "printed")
	config, pams := w.user("pam", "admin", "printed")
	before := operatortest.Objects(t, w.admin)
	stdout, _ := w.must(pams, "install", append(slices.Clone(ofTeam), "printed", "--output", "yaml")...)
	if after := operatortest.Objects(t, w.admin); !maps.Equal(before, after) {
		t.Fatal("it makes something")
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(stdout, "---\n")
	for _, document := range documents {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl")); err != nil {
			t.Errorf("%s: %v", o.GetKind(), err)
		}
	}
	if len(documents) != 7 {
		t.Errorf("there are %d", len(documents))
	}
	w.must(pams, "uninstall", "--namespace", "printed")
	operatortest.NothingSince(t, w.admin, before)
}

// TestAgentInstall_ReportsMissingRights verifies that a user without the necessary permissions gets an error that says what is missing and what to
// request, and that nothing is created.
func TestAgentInstall_ReportsMissingRights(t *testing.T) {
	w := newTeams(t, "lacking", "not-theirs")
	_, eds := w.user("ed", "edit", "lacking")
	_, vis := w.user("vi", "view", "lacking")
	_, nos := w.user("no", "", "")
	_, als := w.user("al", "admin", "lacking")
	ask := func(name, namespace string) string {
		return "ask an admin of the cluster to run kubectl create rolebinding " + name + "-admin --clusterrole=admin --serviceaccount=people:" + name + " --namespace=" + namespace
	}
	install := append(slices.Clone(ofTeam), "lacking")
	w.refused(eds, "install", install, "this user may not get, create, patch roles.rbac.authorization.k8s.io in the namespace lacking; "+
		"get, create, patch rolebindings.rbac.authorization.k8s.io in the namespace lacking (nothing was created): "+ask("ed", "lacking"))
	w.refused(vis, "install", install, "create, patch serviceaccounts in the namespace lacking; ", "create, patch deployments.apps in the namespace lacking", ask("vi", "lacking"))
	w.refused(nos, "install", install, "this user may not get the namespace lacking, if it exists: "+ask("no", "lacking"))
	w.refused(als, "install", append(slices.Clone(ofTeam), "not-theirs"), "this user may not get the namespace not-theirs, if it exists: "+ask("al", "not-theirs"))
	w.refused(w.file(w.admin), "install", append(slices.Clone(ofTeam), "missing"), "the cluster has no namespace missing", "kubectl create namespace missing")
	// These users may not create an agent of the whole cluster.
	w.refused(als, "install", []string{"--works", "admin"}, "this user may not ", "clusterroles.rbac.authorization.k8s.io", "install an agent of one namespace by --namespace NAMESPACE")
	w.refused(als, "install", []string{"--namespace", "lacking", "--cluster-scoped"}, "install an agent of one namespace by --namespace NAMESPACE without --cluster-scoped")

	// A user who may write roles, and has no other permission, cannot grant any.
	_, ros := w.user("ro", "edit", "lacking")
	w.make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "lacking", Name: "ro"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"*"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "lacking", Name: "ro-roles"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "ro"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "people", Name: "ro"}}})
	w.refused(ros, "install", install, "this user may not grant the rights of RoleBinding lacking/clusterhub:hub-agent-namespace, because it does not have them (nothing was created): "+
		ask("ro", "lacking"))

	// An existing object of another owner is a conflict, and stays.
	w.make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "lacking", Name: registration.AgentServiceAccount}})
	w.refused(als, "install", install, "ServiceAccount lacking/"+registration.AgentServiceAccount+" already exists and was not created by kubectl hub")
	w.refused(eds, "uninstall", []string{"--namespace", "not-theirs"}, "this user may not get the agent in namespace not-theirs", ask("ed", "not-theirs"))
}

// TestAttack_NamespacedAgentHasNoOtherRights checks every verb on every resource of the cluster: outside of its namespace the agent has no
// more permissions than a user without any role.
func TestAttack_NamespacedAgentHasNoOtherRights(t *testing.T) {
	w := newTeams(t, "inside", "outside")
	_, ians := w.user("ian", "admin", "inside")
	nothing, _ := w.user("nothing", "", "")
	before := operatortest.Objects(t, w.admin)
	w.must(ians, "install", append(slices.Clone(ofTeam), "inside")...)
	agent := operatortest.AccountOf(t, w.admin, "inside", registration.AgentServiceAccount)
	for _, namespace := range []string{"", "outside", "people", metav1.NamespaceSystem, metav1.NamespaceDefault} {
		if got, want := operatortest.MayIn(t, w.admin, agent, namespace), operatortest.MayIn(t, w.admin, nothing, namespace); !maps.Equal(got, want) {
			t.Errorf("in the namespace %q it may %v, want %v", namespace, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
	inside := operatortest.MayIn(t, w.admin, agent, "inside")
	for _, right := range []string{"create deployments.apps", "delete configmaps", "create localsubjectaccessreviews.authorization.k8s.io", "create secrets", "update roles.rbac.authorization.k8s.io"} {
		if !inside[right] {
			t.Errorf("in its namespace it may not %s", right)
		}
	}
	for _, right := range []string{"delete namespaces", "create namespaces", "update resourcequotas", "create resourcequotas"} {
		if inside[right] {
			t.Errorf("in its namespace it may %s", right)
		}
	}
	w.must(ians, "uninstall", "--namespace", "inside")
	operatortest.NothingSince(t, w.admin, before)
}

// TestAgents_OfOneCluster verifies that agents of teams and of the whole cluster can run in one cluster, and can be upgraded and uninstalled in any
// order, without deleting each other's objects.
func TestAgents_OfOneCluster(t *testing.T) {
	w := newTeams(t, "red", "blue")
	_, rays := w.user("ray", "admin", "red")
	_, bobs := w.user("bob", "admin", "blue")
	admin := w.file(w.admin)
	before := operatortest.Objects(t, w.admin)
	agents := []struct {
		kubeconfig, namespace string
		args                  []string
	}{{rays, "red", append(slices.Clone(ofTeam), "red")}, {admin, registration.AgentNamespace, []string{"--works", "cluster-admin"}}, {bobs, "blue", append(slices.Clone(ofTeam), "blue")}}
	own := map[string]map[string]bool{}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		for _, i := range order {
			was := operatortest.Objects(t, w.admin)
			w.must(agents[i].kubeconfig, "install", agents[i].args...)
			own[agents[i].namespace] = map[string]bool{}
			for name := range operatortest.Objects(t, w.admin) {
				own[agents[i].namespace][name] = !was[name]
			}
		}
		w.refused(admin, "install", []string{"--namespace", "another", "--cluster-scoped"}, "namespace "+registration.AgentNamespace+" already has an agent of the whole cluster")
		for _, a := range agents { // an upgrade keeps what is not set
			_, stderr := w.must(a.kubeconfig, "install", slices.DeleteFunc(slices.Clone(a.args), func(arg string) bool { return arg == "--works" || arg == "cluster-admin" })...)
			if strings.Contains(stderr, " created\n") || strings.Contains(stderr, " deleted\n") {
				t.Errorf("the upgrade in %s says %s", a.namespace, stderr)
			}
		}
		for _, i := range order {
			was := operatortest.Objects(t, w.admin)
			w.must(agents[i].kubeconfig, "uninstall", "--namespace", agents[i].namespace)
			now := operatortest.Objects(t, w.admin)
			for name := range was {
				if !now[name] && !own[agents[i].namespace][name] {
					t.Errorf("the end of the agent in %s takes away %s", agents[i].namespace, name)
				}
			}
		}
		// The namespace that join creates stays.
		w.settled(registration.AgentNamespace)
		for _, name := range []string{"namespaces " + registration.AgentNamespace, "serviceaccounts " + registration.AgentNamespace + "/default",
			"configmaps " + registration.AgentNamespace + "/kube-root-ca.crt"} {
			before[name] = true
		}
		operatortest.NothingSince(t, w.admin, before)
	}
}
