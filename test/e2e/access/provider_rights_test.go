// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/typing"
)

const deployedProvider = "cluster-provider-kubeconfig"

// TestAccessProvider_Rights runs the provider of artifacts/deploy/cluster-provider as its pods would run: with the arguments of its Deployment, as
// its ServiceAccount, and with the rights in these files.
func TestAccessProvider_Rights(t *testing.T) {
	p := newProviding(t)
	p.env = "default"
	p.kubectl(t, "apply", "-k", harness.Overlay("cluster-provider"))
	hub := harness.Kube(t, p.hub.AdminConfig())
	deployment := harness.Must(hub.AppsV1().Deployments(harness.ProvidersNamespace).Get(t.Context(), deployedProvider, metav1.GetOptions{}))(t)
	p.admit("kubeconfig", "plain", harness.Must(os.ReadFile(p.plain.AdminKubeconfig()))(t))
	identity := p.startDeployed(t, deployment)
	c := p.newCluster("default.kubeconfig.plain", "blue")
	p.awaitPhase(c, v1alpha1.StatusPhaseReady)

	t.Run("others' Secrets", func(t *testing.T) { p.readsNoSecrets(t, identity) })
	ar := p.request(t, "ann", c, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}})
	message := p.awaitAccess(t, ar, v1alpha1.REQUEST_PENDING, "SecretsForbidden")
	accounts := harness.Must(p.target.CoreV1().ServiceAccounts("accessrequests").List(t.Context(), listOptions()))(t)
	if len(accounts.Items) > 0 {
		t.Errorf("there are rights that nobody is told how to use: %v", accounts.Items)
	}
	reader := p.reader(t)
	reader.Instead("prepared       passed    for", "prepared       passed    by another program, for") // the hub has no controllers here
	reader.Types(typing.RunBy(t, harness.Root, "test/e2e/access", t.Name()))
	said := p.why(t, ar)
	if f := said.Finding; f == nil || f.ID != diagnosis.AccessSecretsForbidden || len(f.Fix) != 1 || !strings.HasSuffix(message, `the namespace "teams": `+f.Fix[0]) {
		t.Fatalf("kubectl hub why finds %+v, and the provider says %s", f, message)
	}
	command := strings.TrimPrefix(said.Finding.Fix[0], "kubectl ")
	p.kubectl(t, strings.Fields(command)...)
	p.look(t, ar)
	secret := p.granted(t, ar)
	said = p.why(t, ar)
	if said.Finding != nil || len(said.Unseen) > 0 {
		t.Errorf("of a request that is granted, kubectl hub why says %+v", said)
	}
	harness.Eventually(t, "the kubeconfig is of use", func(ctx context.Context) (bool, error) {
		_, err := p.as(t, secret).CoreV1().Pods("default").List(ctx, listOptions())
		return err == nil, err
	})
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.TokenSourceNamespace, Name: string(ar.UID)}}
	p.get(t, source)
	t.Run("others' Secrets, once bound", func(t *testing.T) { p.readsNoSecrets(t, identity) })

	p.delete(t, secret)
	p.patch(t, ar, `{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`)
	harness.Eventually(t, "the Secret is made again", func(ctx context.Context) (bool, error) {
		_, err := hub.CoreV1().Secrets("teams").Get(ctx, secret.Name, metav1.GetOptions{})
		return err == nil, err
	})
	p.granted(t, ar)

	// The deletion of a namespace deletes the RoleBinding, maybe first. The deletion must not hang.
	p.kubectl(t, "delete", "rolebindings", "-n", "teams", "--all")
	harness.Eventually(t, "the right is gone", func(ctx context.Context) (bool, error) {
		_, err := harness.Kube(t, identity).CoreV1().Secrets("teams").Get(ctx, secret.Name, metav1.GetOptions{})
		return apierrors.IsForbidden(err), nil
	})
	p.delete(t, ar)
	p.awaitGone(t, ar)
	p.awaitGone(t, secret)
	p.awaitGone(t, source)
	if left := p.left(t, "kubeconfig", "ann"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	p.kubectl(t, strings.Fields(command)...)
	p.granted(t, p.request(t, "bob", c, &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{viewer}}))
	namespace := &corev1.Namespace{ObjectMeta: harness.Named("teams")}
	p.delete(t, namespace)
	p.awaitGone(t, namespace)
	sources := harness.Must(hub.CoreV1().Secrets(v1alpha1.TokenSourceNamespace).List(t.Context(), listOptions()))(t)
	if len(sources.Items) > 0 || len(p.left(t, "kubeconfig", "bob")) > 0 {
		t.Errorf("left: %d token sources, %v", len(sources.Items), p.left(t, "kubeconfig", "bob"))
	}
	p.delete(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: harness.ProvidersNamespace, Name: "plain"}})
	p.awaitGone(t, &v1alpha1.ClusterProfile{ObjectMeta: harness.Named("default.kubeconfig.plain")})
	log := string(harness.Must(os.ReadFile(p.log("deployed")))(t))
	if _, refused, ok := strings.Cut(log, "is forbidden: User"); ok { // an event may come too late for the namespace
		t.Errorf("it lacks a right: %.500s", refused)
	}
}

// reader returns a shell session in which an admin of the hub types the commands of pages.
func (p *providing) reader(t *testing.T) *typing.Session {
	t.Helper()
	return typing.New(t, p.dir, "HOME="+p.dir, "LC_ALL=C.UTF-8", "KUBECONFIG="+harness.Must(filepath.Abs(p.hub.AdminKubeconfig()))(t),
		"PATH="+harness.Must(filepath.Abs(harness.BinDir(t)))(t)+":"+os.Getenv("PATH"))
}

// why returns the answer of kubectl hub why about a request.
func (p *providing) why(t *testing.T, ar *v1alpha1.AccessRequest) (a diagnosis.Answer) {
	t.Helper()
	stdout, stderr, _ := harness.Plugin{Kubeconfig: p.hub.AdminKubeconfig()}.Run(t, "why", "accessrequest", ar.Name, "-n", ar.Namespace, "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &a); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	return a
}

// startDeployed starts the provider, and returns a client configuration with its identity on the hub.
func (p *providing) startDeployed(t *testing.T, deployment *appsv1.Deployment) *rest.Config {
	t.Helper()
	admin, pod := p.hub.AdminConfig(), deployment.Spec.Template.Spec
	token := harness.Must(harness.Kube(t, admin).CoreV1().ServiceAccounts(harness.ProvidersNamespace).
		CreateToken(t.Context(), pod.ServiceAccountName, tokenRequest(), metav1.CreateOptions{}))(t)
	if err := rest.LoadTLSFiles(admin); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string]string{"host": admin.Host, "token": token.Status.Token, "ca.crt": string(admin.CAData)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A pod would have its own network namespace.
	health := localserver.Address(harness.FreePort(t))
	p.start("deployed", append(pod.InitContainers[0].Args, "--kubeconfig="+dir),
		append(pod.Containers[0].Args, "--kubeconfig="+dir, "--health-probe-bind-address="+health))
	for _, probe := range []*corev1.Probe{pod.Containers[0].LivenessProbe, pod.Containers[0].ReadinessProbe} {
		harness.Eventually(t, probe.HTTPGet.Path+" answers", func(ctx context.Context) (bool, error) {
			request := harness.Must(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+probe.HTTPGet.Path, nil))(t)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return false, err
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return false, errors.New(response.Status)
			}
			return true, nil
		})
	}
	identity := rest.AnonymousClientConfig(admin)
	identity.BearerToken = token.Status.Token
	return identity
}

// readsNoSecrets makes the requests of an attacker who has the provider's identity.
func (p *providing) readsNoSecrets(t *testing.T, identity *rest.Config) {
	ctx, core := t.Context(), harness.Kube(t, identity).CoreV1()
	serving := harness.Must(harness.Kube(t, p.hub.AdminConfig()).CoreV1().Secrets("clusterhub-system").List(ctx, listOptions()))(t)
	if len(serving.Items) == 0 {
		t.Fatal("there is nothing to read")
	}
	all := map[string]error{}
	all["read the key of hub-apiserver's CA"] = harness.ErrorOf(core.Secrets("clusterhub-system").Get(ctx, serving.Items[0].Name, metav1.GetOptions{}))
	all["admit a cluster"] = harness.ErrorOf(core.Secrets(harness.ProvidersNamespace).Create(ctx, &corev1.Secret{}, metav1.CreateOptions{}))
	for _, namespace := range []string{"", "teams", v1alpha1.TokenSourceNamespace, "clusterhub-system"} {
		all["list the Secrets of "+namespace] = harness.ErrorOf(core.Secrets(namespace).List(ctx, listOptions()))
		all["watch the Secrets of "+namespace] = harness.ErrorOf(core.Secrets(namespace).Watch(ctx, listOptions()))
	}
	for what, err := range all {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want a 403", what, err)
		}
	}
}

func (p *providing) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := p.hub.Kubectl(t.Context(), args...).CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
