// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/kubeconfig"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// accessHub is a hub with all components that grant access to clusters. Each process has only the rights of its manifests.
type accessHub struct {
	hub             *localhub.Instance
	client          client.Client
	schedulerConfig string
}

// newAccessHub returns a hub with a scheduler's configuration. Its controllers do not run yet.
func newAccessHub(t *testing.T, schedulerConfig string) *accessHub {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, []byte(schedulerConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &accessHub{schedulerConfig: file, hub: harness.LendHub(t)}
	h.client = harness.Must(client.New(h.hub.AdminConfig(), client.Options{Scheme: scheme.Scheme}))(t)
	h.apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+harness.ProvidersNamespace+"}}")
	return h
}

// startControllers runs hub-controller-manager until the test ends, with the rights of its manifests.
func startControllers(t *testing.T, h *localhub.Instance, flags ...string) *harness.Daemon {
	t.Helper()
	return harness.StartDaemon(t, harness.Binary(t, "hub-controller-manager"), append([]string{
		"--kubeconfig=" + filepath.Join(h.Dir(), "hub-controller-manager.kubeconfig"), "--registration-drivers=",
		"--leader-elect=false", "--health-probe-bind-address=0", "--metrics-bind-address=0",
	}, flags...)...)
}

func (h *accessHub) apply(t *testing.T, manifests string) {
	t.Helper()
	h.must(t, h.hub.AdminKubeconfig(), manifests, "apply", "-f", "-")
}

// kubectl runs kubectl with a kubeconfig.
func (h *accessHub) kubectl(t *testing.T, kubeconfig, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := h.hub.Kubectl(t.Context(), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	bin := filepath.Dir(harness.Binary(t, "kubectl-hub"))
	cmd.Env = append(cmd.Env, "KUBECONFIG="+kubeconfig, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h *accessHub) must(t *testing.T, kubeconfig, stdin string, args ...string) string {
	t.Helper()
	out, err := h.kubectl(t, kubeconfig, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// refused returns the output of kubectl, which must fail.
func (h *accessHub) refused(t *testing.T, kubeconfig, stdin string, args ...string) string {
	t.Helper()
	out, err := h.kubectl(t, kubeconfig, stdin, args...)
	if err == nil {
		t.Errorf("kubectl %s: it succeeded\n%s", strings.Join(args, " "), out)
	}
	return out
}

func (h *accessHub) awaitGone(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		harness.Eventually(t, object.GetName()+" is gone", func(ctx context.Context) (bool, error) {
			err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object)
			if err == nil {
				return false, fmt.Errorf("%+v", object)
			}
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
}

// account creates a ServiceAccount, and returns a kubeconfig with its token.
func (h *accessHub) account(t *testing.T, namespace, name string) (kubeconfig string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := h.client.Create(t.Context(), account); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	token := harness.Must(harness.Kube(t, h.hub.AdminConfig()).CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	config := harness.Must(clientcmd.LoadFromFile(h.hub.AdminKubeconfig()))(t)
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{name: {Token: token.Status.Token}}
	config.Contexts[config.CurrentContext].AuthInfo = name
	return writeKubeconfig(t, string(harness.Must(clientcmd.Write(*config))(t)))
}

// namespace creates a namespace in which providers process requests.
func (h *accessHub) namespace(t *testing.T, name string) {
	t.Helper()
	h.apply(t, strings.ReplaceAll(`
{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: NAME, name: cluster-providers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: clusterhub:cluster-provider-secrets}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:`+harness.ProvidersNamespace+`"}]
`, "NAME", name))
}

// team creates a namespace, and returns the kubeconfig of a user who may only request clusters and access there.
func (h *accessHub) team(t *testing.T, name string) (kubeconfig string) {
	t.Helper()
	h.namespace(t, name)
	h.apply(t, strings.ReplaceAll(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: TEAM, name: person}
rules:
- {apiGroups: [clusters.openmcp.cloud], resources: [accessrequests, clusterrequests], verbs: ["*"]}
- {apiGroups: [clusters.openmcp.cloud], resources: [accessrequests/token], verbs: [create]}
- {apiGroups: [clusters.openmcp.cloud], resources: [clusters], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [secrets], verbs: ["*"]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: TEAM, name: person}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: person}
subjects: [{kind: ServiceAccount, namespace: TEAM, name: person}]
`, "TEAM", name))
	return h.account(t, name, "person")
}

// provider runs a cluster provider as its Deployment does: as a ServiceAccount with the ClusterRoles of the manifests.
func (h *accessHub) provider(t *testing.T, kind, name string, own ...string) *harness.Daemon {
	t.Helper()
	return h.providerAs(t, kind, name, h.providerAccount(t, name), own...)
}

func (h *accessHub) providerAs(t *testing.T, kind, name, kubeconfig string, own ...string) *harness.Daemon {
	t.Helper()
	flags := append([]string{"--provider-name=" + name, "--environment=test", "--kubeconfig=" + kubeconfig}, own...)
	bin := harness.Binary(t, "cluster-provider")
	if out, err := exec.CommandContext(t.Context(), bin, append([]string{kind, "init"}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	return harness.StartDaemon(t, bin, append([]string{kind, "run"}, flags...)...)
}

// providerAccount creates the identity of a provider, with the rights of its manifests.
func (h *accessHub) providerAccount(t *testing.T, name string) (kubeconfig string) {
	t.Helper()
	rights := string(harness.Must(os.ReadFile(harness.Overlay("cluster-provider") + "/rbac.yaml"))(t))
	account := "cluster-provider-" + name
	h.apply(t, strings.ReplaceAll(rights, deployedProvider, account))
	return h.account(t, harness.ProvidersNamespace, account)
}

// localProvider runs a provider whose clusters are processes, which stop with it.
func (h *accessHub) localProvider(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	h.provider(t, "local", name, "--dir="+dir, "--bin-dir="+localBin(t), "--end-with-provider", "--unsafe-no-fsync")
	return dir
}

func localBin(t *testing.T) string {
	t.Helper()
	return harness.Must(filepath.Abs(harness.HubConfig("").BinDir))(t)
}

// object gets an object of the hub.
func object[T client.Object](t *testing.T, h *accessHub, namespace, name string, into T) T {
	t.Helper()
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// create creates an AccessRequest to a Cluster, as the hub's admin.
func (h *accessHub) create(
	t *testing.T, namespace, name string, c *v1alpha1.Cluster, adapt ...func(*v1alpha1.AccessRequest),
) *v1alpha1.AccessRequest {
	t.Helper()
	ar := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}
	ar.Spec.Token = &v1alpha1.TokenConfig{}
	for _, f := range adapt {
		f(ar)
	}
	if err := h.client.Create(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	return ar
}

func withRole(name string) func(*v1alpha1.AccessRequest) {
	return func(ar *v1alpha1.AccessRequest) {
		ar.Spec.Token.RoleRefs = append(ar.Spec.Token.RoleRefs, v1alpha1.RoleRef{Kind: "ClusterRole", Name: name})
	}
}

// awaitRequest waits until ok accepts a request.
func (h *accessHub) awaitRequest(t *testing.T, what string, ar *v1alpha1.AccessRequest, ok func(*v1alpha1.AccessRequest) bool) {
	t.Helper()
	harness.Eventually(t, ar.Namespace+"/"+ar.Name+" "+what, func(ctx context.Context) (bool, error) {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(ar), ar); err != nil {
			return false, err
		}
		return harness.Holds(ok(ar), ar.Status)
	})
}

// granted returns the kubeconfig that a request was granted.
func (h *accessHub) granted(t *testing.T, ar *v1alpha1.AccessRequest) []byte {
	t.Helper()
	h.awaitRequest(t, "is granted", ar, func(ar *v1alpha1.AccessRequest) bool {
		return ar.Status.IsGranted() && ar.Status.ObservedGeneration == ar.Generation
	})
	return object(t, h, ar.Namespace, ar.Status.SecretRef.Name, &corev1.Secret{}).Data["kubeconfig"]
}

// refusal waits until a condition states why a request is not granted.
func (h *accessHub) refusal(t *testing.T, ar *v1alpha1.AccessRequest, reason string) (message string) {
	t.Helper()
	h.awaitRequest(t, "is "+reason, ar, func(ar *v1alpha1.AccessRequest) bool {
		for _, condition := range ar.Status.Conditions {
			if condition.Status == metav1.ConditionFalse && condition.Reason == reason && condition.ObservedGeneration == ar.Generation {
				message = condition.Message
				return !ar.Status.IsGranted()
			}
		}
		return false
	})
	return message
}

// admit creates configurations of a provider of the kind kubeconfig.
func (h *accessHub) admit(t *testing.T, namespace, provider string, names []string, kubeconfigFile []byte) {
	t.Helper()
	for _, name := range names {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.ProviderLabel: provider},
				Annotations: map[string]string{kubeconfig.NamespacesAnnotation: "*"},
			},
			Type: kubeconfig.SecretType, Data: map[string][]byte{"kubeconfig": kubeconfigFile},
		}
		if err := h.client.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
}

// newCluster creates a Cluster of a profile that does not need to exist yet.
func (h *accessHub) newCluster(t *testing.T, namespace, name, profile string) *v1alpha1.Cluster {
	t.Helper()
	c := harness.OpenMCPCluster(namespace, profile)
	c.Name = name
	harness.Eventually(t, "the Cluster "+name, func(ctx context.Context) (bool, error) {
		err := h.client.Create(ctx, c)
		return err == nil, err
	})
	return c
}

func (h *accessHub) awaitReady(t *testing.T, c *v1alpha1.Cluster) {
	t.Helper()
	harness.Eventually(t, c.Name+" is ready", func(ctx context.Context) (bool, error) {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return false, err
		}
		return harness.Holds(c.Status.Phase == v1alpha1.StatusPhaseReady, c.Status)
	})
}

// clientOf returns a client with a kubeconfig.
func clientOf(t *testing.T, kubeconfig []byte) kubernetes.Interface {
	t.Helper()
	config := harness.Must(clientcmd.RESTConfigFromKubeConfig(kubeconfig))(t)
	config.QPS = -1
	return harness.Kube(t, config)
}

// writeKubeconfig writes data of the API, with or without base64 encoding, to a file.
func writeKubeconfig(t *testing.T, data string) (file string) {
	t.Helper()
	if decoded, err := base64.StdEncoding.DecodeString(data); err == nil {
		data = string(decoded)
	}
	file = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// made returns all objects that providers have created in a cluster for AccessRequests: objects with a label of theirs, with the request.
func made(t *testing.T, target kubernetes.Interface) (all []string) {
	t.Helper()
	ctx, o := t.Context(), metav1.ListOptions{}
	lists := map[string]client.ObjectList{
		"ServiceAccount":     harness.Must(target.CoreV1().ServiceAccounts("").List(ctx, o))(t),
		"Role":               harness.Must(target.RbacV1().Roles("").List(ctx, o))(t),
		"RoleBinding":        harness.Must(target.RbacV1().RoleBindings("").List(ctx, o))(t),
		"ClusterRole":        harness.Must(target.RbacV1().ClusterRoles().List(ctx, o))(t),
		"ClusterRoleBinding": harness.Must(target.RbacV1().ClusterRoleBindings().List(ctx, o))(t),
	}
	for kind, list := range lists {
		items := harness.Must(meta.ExtractList(list))(t)
		for _, item := range items {
			o := item.(client.Object)
			for label, value := range o.GetLabels() {
				if provider, ok := strings.CutSuffix(label, ".clusters.openmcp.cloud/managed-by-name"); ok {
					all = append(all, fmt.Sprintf("%s %s %s/%s", provider, value, kind, o.GetName()))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// madeFor returns the objects of a request.
func madeFor(t *testing.T, target kubernetes.Interface, provider, request string) (all []string) {
	t.Helper()
	return slices.DeleteFunc(made(t, target), func(s string) bool { return !strings.HasPrefix(s, "test."+provider+" "+request+" ") })
}

var readNodes = []v1alpha1.PermissionsRequest{{Rules: []rbacv1.PolicyRule{harness.RuleIn("", "list", "nodes")}}}
