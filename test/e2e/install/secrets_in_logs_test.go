// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/kubeconfig"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// notSecret lists the keys of Secrets whose values are public.
var notSecret = []string{
	"agent-name", "auth-extra-groups", "ca-bundle.crt", "ca.crt", "cluster-name", "creationTimestamp", "description", "expiration",
	"expirationTimestamp", "host", "kubeconfig", "namespace", "registered-key-sha256", "tls.crt", "token-id",
	"usage-bootstrap-authentication", "usage-bootstrap-signing",
	v1alpha1.TokenSourceAccessRequestKey, v1alpha1.TokenSourceServiceAccountNameKey, v1alpha1.TokenSourceServiceAccountNamespaceKey,
}

// logged is a hub with all of our programs at the highest verbosity.
type logged struct {
	*harness.Logged
	hub, cluster *localhub.Instance
}

// TestSecretsInLogs runs a cluster that joins and access to it, and searches each log for each secret.
func TestSecretsInLogs(t *testing.T) {
	const most = "-v=10"
	l := &logged{Logged: harness.NewLogged()}
	l.hub = harness.Relaunch(t, harness.LendHub(t), func(c *localhub.Options) {
		c.WithoutHubControllerManager = false
		c.HubAPIServerArgs = []string{most, "--vmodule=*=10"}
		c.HubControllerManagerArgs = []string{most, "--vmodule=*=10"}
	})
	l.cluster = harness.LendCluster(t)
	node := runsPods(t, l.cluster, l.hub, most, "--vmodule=*=10")
	hub := harness.Must(client.New(l.hub.AdminConfig(), client.Options{Scheme: scheme.Scheme}))(t)
	p := harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{"hub": l.hub, "c1": l.cluster})}
	command := func(args ...string) (stdout string) {
		t.Helper()
		stdout, stderr, err := p.Run(t, append(args, most)...)
		if err != nil {
			t.Fatalf("kubectl hub %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
		}
		l.Logs["kubectl-hub "+args[0]] = []byte(stderr)
		return stdout
	}

	// A cluster joins.
	j := harness.Joining{}
	if err := json.Unmarshal([]byte(command("init", "--context", "hub", "-o", "json")), &j); err != nil {
		t.Fatal(err)
	}
	l.Add(t, "token for joining", j.Token)
	join := slices.DeleteFunc(j.Args(t, "c1"), func(arg string) bool { return arg == "--wait" })
	command(append(join, "--context", "c1")...)
	command("accept", "--clusters", "c1", "--wait", "--context", "hub")
	harness.Eventually(t, "the agent has its certificate", func(ctx context.Context) (bool, error) {
		secret, err := harness.Kube(t, l.cluster.AdminConfig()).CoreV1().Secrets(registration.AgentNamespace).
			Get(ctx, registration.HubKubeconfigSecret, metav1.GetOptions{})
		return err == nil && len(secret.Data[corev1.TLSPrivateKeyKey]) > 0 && len(secret.Data[corev1.TLSCertKey]) > 0, err
	})
	command("get", "clusters", "--context", "hub")

	// The cluster is offered, and access to it is granted.
	offered := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: harness.ProvidersNamespace, Name: "plain", Labels: map[string]string{v1alpha1.ProviderLabel: "existing"},
			Annotations: map[string]string{kubeconfig.NamespacesAnnotation: "teams"},
		},
		Type: kubeconfig.SecretType, Data: map[string][]byte{"kubeconfig": harness.Must(os.ReadFile(l.cluster.AdminKubeconfig()))(t)},
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: harness.Named(harness.ProvidersNamespace)}, &corev1.Namespace{ObjectMeta: harness.Named("teams")}, offered,
	} {
		if err := hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	provider := []string{"--provider-name=existing", "--environment=test", "--kubeconfig=" + l.hub.AdminKubeconfig(), "-v=DEBUG"}
	bin := harness.Binary(t, "cluster-provider")
	initialize := harness.StartDaemon(t, bin, append([]string{"kubeconfig", "init"}, provider...)...)
	run := harness.StartDaemon(t, bin, append([]string{"kubeconfig", "run"}, provider...)...)
	blue := harness.OpenMCPCluster("teams", "test.existing.plain")
	blue.Name = "blue"
	harness.Eventually(t, "the provider's profile", func(ctx context.Context) (bool, error) {
		err := hub.Create(ctx, blue)
		return err == nil, err
	})
	command("access", "blue", "-n", "teams", "--cluster-role=view", "--context", "hub", "--timeout="+harness.Timeout.String())
	requests := &v1alpha1.AccessRequestList{}
	if err := hub.List(t.Context(), requests, client.InNamespace("teams")); err != nil || len(requests.Items) != 1 {
		t.Fatalf("%v: %+v", err, requests.Items)
	}
	credential := clientauthenticationv1.ExecCredential{}
	out := command("access-token", "--request=teams/"+requests.Items[0].Name, "--context", "hub")
	if err := json.Unmarshal([]byte(out), &credential); err != nil {
		t.Fatal(err)
	}
	l.Add(t, "token for access", credential.Status.Token)

	// A user bypasses the front, and hub-apiserver reviews the user's token.
	account := harness.Must(harness.Kube(t, l.hub.AdminConfig()).CoreV1().ServiceAccounts("teams").
		CreateToken(t.Context(), l.user(t), &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	l.Add(t, "token for review", account.Status.Token)
	direct := rest.AnonymousClientConfig(l.hub.HubAPIServerConfig(0))
	direct.BearerToken = account.Status.Token
	if _, err := harness.Kube(t, direct).Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}

	l.collect(t)
	command("unjoin", "--cluster-name", "c1", "--context", "c1")
	for _, name := range []string{"hub-apiserver", "hub-controller-manager"} {
		l.Logs[name] = harness.Must(os.ReadFile(filepath.Join(l.hub.Dir(), "logs", name+".log")))(t)
	}
	l.Logs["hub-agent"] = []byte(node.Logs("", ""))
	l.Logs["cluster-provider init"], l.Logs["cluster-provider run"] = []byte(initialize.Out.String()), []byte(run.Out.String())
	l.Look(t, "hub clusterhub-system ", "hub "+v1alpha1.TokenSourceNamespace+" ", "hub teams ",
		"hub "+harness.ProvidersNamespace+" plain kubeconfig", "cluster "+registration.AgentNamespace+" ", "hub service-accounts.key", "cluster ca.key")
}

func (l *logged) user(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: harness.Named("direct")}
	harness.Must(harness.Kube(t, l.hub.AdminConfig()).CoreV1().ServiceAccounts("teams").Create(t.Context(), account, metav1.CreateOptions{}))(t)
	return account.Name
}

// collect adds all secrets of both clusters.
func (l *logged) collect(t *testing.T) {
	t.Helper()
	for where, h := range map[string]*localhub.Instance{"hub": l.hub, "cluster": l.cluster} {
		for _, secret := range harness.Must(harness.Kube(t, h.AdminConfig()).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}))(t).Items {
			for key, value := range secret.Data {
				name := strings.Join([]string{where, secret.Namespace, secret.Name, key}, " ")
				if l.Secrets.AddFrom(name, value) == 0 && !slices.Contains(notSecret, key) {
					l.Secrets[name] = value
				}
			}
		}
		for _, pattern := range []string{"pki/*.key", "*.kubeconfig"} {
			for _, file := range harness.Must(filepath.Glob(filepath.Join(h.Dir(), pattern)))(t) {
				l.Add(t, where+" "+filepath.Base(file), string(harness.Must(os.ReadFile(file))(t)))
			}
		}
	}
}
