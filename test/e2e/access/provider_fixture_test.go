// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/kubeconfig"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// providing is a hub, and a plain cluster that is configured for a provider of the kind kubeconfig.
type providing struct {
	t       *testing.T
	dir     string
	env     string
	hub     *localhub.Instance
	plain   *localhub.Instance
	client  client.Client
	target  kubernetes.Interface
	cluster *v1alpha1.Cluster
	// processes are the processes of the providers, by name.
	processes map[string]*os.Process
}

func newProvided(t *testing.T) *providing {
	p := newProviding(t)
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.ProvidersNamespace}})
	p.admit("existing", "plain", harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t))
	p.run("existing")
	p.cluster = p.newCluster("test.existing.plain", "blue")
	p.awaitPhase(p.cluster, v1alpha1.StatusPhaseReady)
	return p
}

// newProviding returns a hub and a cluster without a provider.
func newProviding(t *testing.T) *providing {
	p := &providing{
		t:         t,
		dir:       t.TempDir(),
		env:       "test",
		hub:       harness.LendHub(t),
		plain:     harness.LendCluster(t),
		processes: map[string]*os.Process{},
	}
	p.client = harness.Must(client.New(p.hub.AdminConfig(), client.Options{Scheme: scheme.Scheme}))(t)
	p.target = harness.Kube(t, p.plain.AdminConfig())
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "teams"}})
	return p
}

// admit creates a configuration of a provider.
func (p *providing) admit(provider, name string, kubeconfigFile []byte) *corev1.Secret {
	p.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: harness.ProvidersNamespace, Name: name, Labels: map[string]string{v1alpha1.ProviderLabel: provider},
			Annotations: map[string]string{kubeconfig.NamespacesAnnotation: "*"},
		},
		Type: kubeconfig.SecretType, Data: map[string][]byte{"kubeconfig": kubeconfigFile},
	}
	p.create(secret)
	return secret
}

// readmit sets a different kubeconfig in a configuration. The provider may write annotations concurrently.
func (p *providing) readmit(t *testing.T, secret *corev1.Secret, kubeconfigFile []byte) {
	t.Helper()
	before := secret.DeepCopy()
	secret.Data = map[string][]byte{"kubeconfig": kubeconfigFile}
	if err := p.client.Patch(t.Context(), secret, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// run starts a provider of the kind kubeconfig, and returns a function that kills it.
func (p *providing) run(name string) (kill func()) {
	p.t.Helper()
	return p.runKind("kubeconfig", name)
}

func (p *providing) runKind(kind, name string, own ...string) (kill func()) {
	p.t.Helper()
	flags := []string{
		"--provider-name=" + name, "--environment=" + p.env, "--verbosity=debug", "--kubeconfig=" + p.hub.AdminKubeconfig(),
	}
	flags = append(flags, own...)
	return p.start(name, append([]string{kind, "init"}, flags...), append([]string{kind, "run"}, flags...))
}

func (p *providing) log(name string) string { return filepath.Join(p.dir, name+".log") }

// start starts a provider after its init.
func (p *providing) start(name string, initialize, run []string) (kill func()) {
	p.t.Helper()
	bin := harness.Binary(p.t, "cluster-provider")
	if out, err := exec.CommandContext(p.t.Context(), bin, initialize...).CombinedOutput(); err != nil {
		p.t.Fatalf("init: %v\n%s", err, out)
	}
	log := harness.Must(os.OpenFile(p.log(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(p.t)
	p.t.Cleanup(func() { _ = log.Close() })
	cmd := exec.Command(bin, run...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.processes[name] = cmd.Process
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	p.t.Cleanup(func() {
		kill()
		if p.t.Failed() {
			data, _ := os.ReadFile(log.Name())
			p.t.Logf("log of the provider %s:\n%s", name, data[max(0, len(data)-6000):])
		}
	})
	return kill
}

func (p *providing) create(object client.Object) {
	p.t.Helper()
	if err := p.client.Create(p.t.Context(), object); err != nil {
		p.t.Fatal(err)
	}
}

// newCluster creates a Cluster once its profile exists.
func (p *providing) newCluster(profile, name string) *v1alpha1.Cluster {
	p.t.Helper()
	harness.Eventually(p.t, "the profile "+profile, func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, types.NamespacedName{Name: profile}, &v1alpha1.ClusterProfile{})
		return err == nil, client.IgnoreNotFound(err)
	})
	c := harness.OpenMCPCluster("teams", profile)
	c.Name = name
	p.create(c)
	return c
}

func (p *providing) get(t *testing.T, object client.Object) {
	t.Helper()
	if err := p.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

func (p *providing) awaitPhase(c *v1alpha1.Cluster, phase string) {
	p.t.Helper()
	harness.Eventually(p.t, fmt.Sprintf("%s is %s", c.Name, phase), func(ctx context.Context) (bool, error) {
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return false, err
		}
		if c.Status.Phase != phase {
			return false, fmt.Errorf("%+v", c.Status)
		}
		return true, nil
	})
}

// request creates an AccessRequest to a cluster, prepared as openMCP's operator does it.
func (p *providing) request(t *testing.T, name string, c *v1alpha1.Cluster, token *v1alpha1.TokenConfig) *v1alpha1.AccessRequest {
	t.Helper()
	ar := p.unprepared(t, name, c, token)
	p.pending(t, ar)
	return ar
}

func (p *providing) unprepared(
	t *testing.T, name string, c *v1alpha1.Cluster, token *v1alpha1.TokenConfig,
) *v1alpha1.AccessRequest {
	t.Helper()
	provider := strings.Split(c.Spec.Profile, ".")[1]
	ar := &v1alpha1.AccessRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, Labels: map[string]string{
			v1alpha1.ProviderLabel: provider, v1alpha1.ProfileLabel: c.Spec.Profile,
		}},
		Spec: v1alpha1.AccessRequestSpec{ClusterRef: &v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}, Token: token},
	}
	if token == nil {
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
			Name: "corp", Issuer: "https://oidc.example.com", ClientID: "hub", RoleBindings: []v1alpha1.RoleBindings{},
		}}
	}
	if err := p.client.Create(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	return ar
}

// pending sets the phase with which a request is handed to its provider.
func (p *providing) pending(t *testing.T, ar *v1alpha1.AccessRequest) {
	t.Helper()
	p.patchStatus(t, ar, fmt.Sprintf(`{"status":{"phase":"Pending","observedGeneration":%d}}`, ar.Generation))
}

func (p *providing) patchStatus(t *testing.T, object client.Object, patch string) {
	t.Helper()
	if err := p.client.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (p *providing) patch(t *testing.T, object client.Object, patch string) {
	t.Helper()
	if err := p.client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// look makes the provider reconcile a request immediately, as it does periodically.
func (p *providing) look(t *testing.T, ar *v1alpha1.AccessRequest) {
	t.Helper()
	p.patch(t, ar, `{"metadata":{"annotations":{"looked":"`+rand.String(5)+`"}}}`)
}

// past waits until the provider has processed all previous writes: it processes requests in their order, and has granted and revoked access to a
// Cluster for a later request.
func (p *providing) past(t *testing.T, c *v1alpha1.Cluster) {
	t.Helper()
	later := p.request(t, harness.Unique("later"), c, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	p.granted(t, later)
	p.delete(t, later)
	p.awaitGone(t, later)
}

func (p *providing) delete(t *testing.T, object client.Object) {
	t.Helper()
	if err := p.client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (p *providing) awaitGone(t *testing.T, object client.Object) {
	t.Helper()
	harness.Eventually(t, object.GetName()+" is gone", func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return false, fmt.Errorf("%+v", object)
		}
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// awaitAccess waits until a request has a phase, and its condition a reason.
func (p *providing) awaitAccess(t *testing.T, ar *v1alpha1.AccessRequest, phase, reason string) string {
	t.Helper()
	var message string
	harness.Eventually(t, ar.Name+" is "+phase+" "+reason, func(ctx context.Context) (bool, error) {
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(ar), ar); err != nil {
			return false, err
		}
		condition := meta.FindStatusCondition(ar.Status.Conditions, "AccessReady")
		if condition == nil || condition.Reason != reason || condition.ObservedGeneration != ar.Generation ||
			ar.Status.Phase != phase || ar.Status.ObservedGeneration != ar.Generation {
			return false, fmt.Errorf("%+v", ar.Status)
		}
		message = condition.Message
		return true, nil
	})
	return message
}

func (p *providing) granted(t *testing.T, ar *v1alpha1.AccessRequest) *corev1.Secret {
	t.Helper()
	p.awaitAccess(t, ar, v1alpha1.REQUEST_GRANTED, "Granted")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ar.Namespace, Name: ar.Status.SecretRef.Name}}
	p.get(t, secret)
	return secret
}

// as returns a client with the kubeconfig of a Secret.
func (p *providing) as(t *testing.T, secret *corev1.Secret) kubernetes.Interface {
	t.Helper()
	return harness.Kube(t, harness.Must(clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"]))(t))
}

// left returns the objects in the cluster that exist for a request.
func (p *providing) left(t *testing.T, provider, name string) (left []string) {
	t.Helper()
	group := p.env + "." + provider + ".clusters.openmcp.cloud"
	ctx, options := t.Context(), metav1.ListOptions{LabelSelector: group + "/managed-by-name=" + name}
	for _, binding := range harness.Must(p.target.RbacV1().RoleBindings("").List(ctx, options))(t).Items {
		left = append(left, "RoleBinding "+binding.Namespace+"/"+binding.Name+" to "+binding.RoleRef.Name)
	}
	for _, binding := range harness.Must(p.target.RbacV1().ClusterRoleBindings().List(ctx, options))(t).Items {
		left = append(left, "ClusterRoleBinding "+binding.Name+" to "+binding.RoleRef.Name)
	}
	for _, role := range harness.Must(p.target.RbacV1().Roles("").List(ctx, options))(t).Items {
		left = append(left, "Role "+role.Namespace+"/"+role.Name)
	}
	for _, role := range harness.Must(p.target.RbacV1().ClusterRoles().List(ctx, options))(t).Items {
		left = append(left, "ClusterRole "+role.Name)
	}
	for _, account := range harness.Must(p.target.CoreV1().ServiceAccounts("").List(ctx, options))(t).Items {
		left = append(left, "ServiceAccount "+account.Namespace+"/"+account.Name)
	}
	return left
}

func rulesOf(verbs, resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{harness.RuleIn("", verbs, resource)}
}
