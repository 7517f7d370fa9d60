// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// TestModes_Lifecycle runs each mode: the objects are created where they belong, what the pods refer to exists, the parts may do what
// is documented and nothing else, and at the end both clusters are as before.
func TestModes_Lifecycle(t *testing.T) {
	for _, mode := range operatortest.Modes {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			management, managed := operatortest.Shared.Config(t, "management"), operatortest.Shared.Config(t, "managed")
			atFirstHere, atFirstThere := operatortest.Objects(t, management), operatortest.Objects(t, managed)
			r := w.reconciler()
			k := w.applied(r, mode, nil)
			w.expectAll(k)
			w.expectStatus(k)
			w.expectPodsHaveAll(k)
			w.expectRights(k, management, managed)
			w.delete(k)
			w.until(r, k, "it is gone", isGone)
			operatortest.NothingSince(t, management, atFirstHere)
			operatortest.NothingSince(t, managed, atFirstThere)
		})
	}
}

// TestFinalize_InvalidSpec: a Klusterlet with a spec that is invalid for agents can be deleted, and its works end.
func TestFinalize_InvalidSpec(t *testing.T) {
	w := newWorld(t)
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeDefault, nil)
	w.works(w.here, k)
	k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{RegistrationDriver: operatorv1.RegistrationDriver{AuthType: operatorv1.GRPCAuthType}}
	if err := w.here.Update(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	w.until(r, k, "it is refused", func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(k, operatorv1.ConditionKlusterletApplied).Message, "authType must be")
	})
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
}

func (w *world) expectStatus(k *operatorv1.Klusterlet) {
	w.Helper()
	p, err := plan.New(k, "")
	if err != nil {
		w.Fatal(err)
	}
	if got, want := len(k.Status.RelatedResources), len(p.Inventory()); got != want || want < 15 {
		w.Errorf("%d things are known to have been made, want %d", got, want)
	}
	for _, c := range k.Status.Conditions {
		if c.ObservedGeneration != k.Generation {
			w.Errorf("%s is of generation %d", c.Type, c.ObservedGeneration)
		}
	}
	if len(k.Status.Generations) != len(p.Pods) || k.Status.ObservedGeneration != k.Generation {
		w.Errorf("of generations it says %+v, %d", k.Status.Generations, k.Status.ObservedGeneration)
	}
	if hosted := slices.Contains(k.Finalizers, operatorv1.KlusterletHostedFinalizer); hosted != k.IsDetached() {
		w.Errorf("the finalizers are %q", k.Finalizers)
	}
	ignored := condition(k, operatorv1.ConditionFieldsIgnored)
	if says := strings.Contains(ignored.Message, "spec.namespace"); says != (k.Mode() == operatorv1.InstallModeDetached) {
		w.Errorf("of the namespace it says: %+v", ignored)
	}
}

// expectPodsHaveAll verifies that what the pods of a Klusterlet refer to exists, and that they refer to nothing of another part.
func (w *world) expectPodsHaveAll(k *operatorv1.Klusterlet) {
	w.Helper()
	want := map[string]string{k.RegistrationDeployment(): k.RegistrationServiceAccount(), k.WorkDeployment(): k.WorkServiceAccount()}
	secrets := map[string][]string{k.RegistrationDeployment(): nil, k.WorkDeployment(): {operatorv1.HubKubeconfigSecret}}
	minted := map[string]string{k.RegistrationDeployment(): operatorv1.ExternalManagedKubeconfigRegistration, k.WorkDeployment(): operatorv1.ExternalManagedKubeconfigWork,
		k.AgentDeployment(): operatorv1.ExternalManagedKubeconfigAgent}
	if k.IsSingleton() {
		want, secrets = map[string]string{k.AgentDeployment(): k.AgentServiceAccount()}, map[string][]string{k.AgentDeployment(): nil}
	}
	list := &appsv1.DeploymentList{}
	if err := w.here.List(w.Context(), list, client.InNamespace(k.AgentNamespace())); err != nil || len(list.Items) != len(want) {
		w.Fatalf("there are %d Deployments, want those of %v: %v", len(list.Items), want, err)
	}
	for _, d := range list.Items {
		pod := d.Spec.Template.Spec
		if pod.ServiceAccountName != want[d.Name] || w.here.Get(w.Context(), client.ObjectKey{Namespace: d.Namespace, Name: pod.ServiceAccountName}, &corev1.ServiceAccount{}) != nil {
			w.Errorf("the ServiceAccount of %s is %q, want %q", d.Name, pod.ServiceAccountName, want[d.Name])
		}
		named := secrets[d.Name]
		if k.IsDetached() {
			named = append(named, minted[d.Name])
		}
		var got []string
		for _, v := range pod.Volumes {
			if v.Secret == nil {
				w.Errorf("%s has the volume %+v", d.Name, v)
				continue
			}
			got = append(got, v.Secret.SecretName)
			optional := v.Secret.Optional != nil && *v.Secret.Optional
			secret := &corev1.Secret{}
			if err := w.here.Get(w.Context(), client.ObjectKey{Namespace: d.Namespace, Name: v.Secret.SecretName}, secret); !optional && (err != nil || len(secret.Data[operatorv1.KeyKubeconfig]) == 0) {
				w.Errorf("%s waits for the Secret %s: %v", d.Name, v.Secret.SecretName, err)
			}
		}
		slices.Sort(got)
		slices.Sort(named)
		if !slices.Equal(got, named) {
			w.Errorf("%s has the Secrets %q, want %q", d.Name, got, named)
		}
	}
}

// expectRights compares the rights of each part with the documented ones, on both clusters: all verbs on all resources that discovery returns, and
// the rules in each namespace, which may be for one namespace or one name only.
func (w *world) expectRights(k *operatorv1.Klusterlet, management, managed *rest.Config) {
	w.Helper()
	parts := deploy.Klusterlet{Name: k.Name, Singleton: k.IsSingleton()}.Parts()
	for i, part := range parts {
		accounts, works := []string{"K-registration-sa", "K-work-sa"}, true
		if !k.IsSingleton() {
			accounts, works = accounts[i:i+1], i == 1
		}
		own, home := documented(w.T, "managed", accounts...), documented(w.T, "management", accounts...)
		inPod := operatortest.AccountOf(w.T, management, k.AgentNamespace(), part.ServiceAccount)
		if !k.IsDetached() {
			w.expectMay(part.ServiceAccount, management, inPod, own, works, k.AgentNamespace(), home)
			continue
		}
		w.expectMay(part.Secret, managed, w.minted(k, part, managed), own, works, "", nil)
		w.expectMay(part.ServiceAccount, management, inPod, nil, false, k.AgentNamespace(), home)
	}
}

// expectMay verifies that an account has the given rights everywhere, those of the ClusterRole admin if it is for works, more in one namespace, and
// otherwise only those that every account has.
func (w *world) expectMay(who string, admin, config *rest.Config, everywhere operatortest.Rights, works bool, in string, more operatortest.Rights) {
	w.Helper()
	kube, err := kubernetes.NewForConfig(admin)
	if err != nil {
		w.Fatal(err)
	}
	none := operatortest.AccountOf(w.T, admin, metav1.NamespaceDefault, "default")
	want := maps.Clone(everywhere)
	if want == nil {
		want = operatortest.Rights{}
	}
	if works {
		role, err := kube.RbacV1().ClusterRoles().Get(w.Context(), "admin", metav1.GetOptions{})
		if err != nil || len(role.Rules) < 10 {
			w.Fatalf("the role admin has %d rules: %v", len(role.Rules), err)
		}
		addRules(want, role.Rules)
	}
	if len(everywhere) > 0 { // otherwise the rules below are complete
		w.expectAllowed(who, admin, config, none, want)
	}
	namespaces, err := kube.CoreV1().Namespaces().List(w.Context(), metav1.ListOptions{})
	if err != nil || len(namespaces.Items) < 5 {
		w.Fatalf("there are %d namespaces: %v", len(namespaces.Items), err)
	}
	for _, namespace := range namespaces.Items {
		wanted := maps.Clone(want)
		if namespace.Name == in {
			maps.Copy(wanted, more)
		}
		rules, base := operatortest.RightsIn(w.T, config, namespace.Name), operatortest.RightsIn(w.T, none, namespace.Name)
		for right := range rules {
			if !wanted[right] && !base[right] {
				w.Errorf("%s has the rule to %s in %s, which is not documented", who, right, namespace.Name)
			}
		}
		for right := range wanted {
			if !rules[right] {
				w.Errorf("%s has no rule to %s in %s, which is documented", who, right, namespace.Name)
			}
		}
	}
}

// expectAllowed checks each verb on each resource.
func (w *world) expectAllowed(who string, admin, config, none *rest.Config, want operatortest.Rights) {
	w.Helper()
	each, got := w.eachMay(admin, none), operatortest.May(w.T, admin, config)
	for right := range got {
		if !want[right] && !each[right] {
			w.Errorf("%s may %s, which is not documented", who, right)
		}
	}
	for right := range want {
		fields := strings.Fields(right)
		name := strings.Join(fields[2:], "")
		// Roles also name resources that do not exist.
		if (name != "" || !got[right]) && !operatortest.Allowed(w.T, config, fields[0], schema.ParseGroupResource(fields[1]), "", name) {
			w.Errorf("%s may not %s, which is documented", who, right)
		}
	}
}

// each has the rights of an account without rights of its own, on each cluster.
var each = map[string]operatortest.Rights{}

func (w *world) eachMay(admin, none *rest.Config) operatortest.Rights {
	w.Helper()
	if each[admin.Host] == nil {
		each[admin.Host] = operatortest.May(w.T, admin, none)
	}
	return each[admin.Host]
}

func addRules(to operatortest.Rights, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		to.Add(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames)
	}
}

// minted returns the configuration with which the pod of a part reaches the managed cluster. It has the identity of the part's ServiceAccount there.
func (w *world) minted(k *operatorv1.Klusterlet, part deploy.Part, managed *rest.Config) *rest.Config {
	w.Helper()
	secret := &corev1.Secret{}
	if err := w.here.Get(w.Context(), client.ObjectKey{Namespace: k.AgentNamespace(), Name: part.Secret}, secret); err != nil {
		w.Fatal(err)
	}
	file, err := clientcmd.Load(secret.Data[operatorv1.KeyKubeconfig])
	if err != nil {
		w.Fatal(err)
	}
	cluster := file.Clusters[file.Contexts[file.CurrentContext].Cluster]
	config := &rest.Config{Host: cluster.Server, TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CertificateAuthorityData, ServerName: cluster.TLSServerName},
		BearerToken: string(secret.Data[operatorv1.KeyToken]), QPS: -1}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	review, err := kube.AuthenticationV1().SelfSubjectReviews().Create(w.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	want := fmt.Sprintf("system:serviceaccount:%s:%s", k.ManagedNamespace(), part.ServiceAccount)
	if got := review.Status.UserInfo.Username; got != want || config.Host != managed.Host {
		w.Errorf("%s is the way of %s to %s, want %s", part.Secret, got, config.Host, want)
	}
	return config
}

// documented returns the rights of accounts on a cluster as documented.
func documented(t *testing.T, cluster string, accounts ...string) operatortest.Rights {
	t.Helper()
	page, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	all, lines := operatortest.Rights{}, 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || !slices.Contains(accounts, strings.Trim(cells[0], " `")) {
			continue
		}
		lines++
		if strings.TrimSpace(cells[1]) != cluster {
			continue
		}
		resource, name, _ := strings.Cut(strings.TrimSpace(cells[3]), " named ")
		for verb := range strings.SplitSeq(strings.TrimSpace(cells[4]), ", ") {
			all[strings.TrimSpace(verb+" "+strings.Trim(resource, "`")+" "+name)] = true
		}
	}
	if lines == 0 {
		t.Fatalf("the documentation says nothing of %q", accounts)
	}
	return all
}
