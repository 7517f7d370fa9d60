// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// kubeconfigWith returns a kubeconfig whose user and cluster have additional fields.
func kubeconfigWith(user, cluster, others string) []byte {
	return []byte(fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], "+
		"clusters: [{name: c, cluster: {server: 'https://hub.example.com'%s}}], users: [{name: u, user: {%s}}%s]}", cluster, user, others))
}

// TestAttack_SecretCannotReadFilesOrRunPrograms: the pod of an agent has a token of the cluster that runs it. A hub that issues a kubeconfig,
// or a user who may write the secret and nothing else, could otherwise have it sent to a server of their own.
func TestAttack_SecretCannotReadFilesOrRunPrograms(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ user, cluster string }{
		"a token of the pod":         {user: "tokenFile: " + secret},
		"a file beside a token":      {user: "token: a, tokenFile: " + secret},
		"a certificate of the pod":   {user: "client-certificate: " + secret + ", client-key-data: YQ=="},
		"a key of the pod":           {user: "client-certificate-data: YQ==, client-key: " + secret},
		"a program":                  {user: "exec: {apiVersion: client.authentication.k8s.io/v1, command: cat, args: [" + secret + "], interactiveMode: Never}"},
		"a provider":                 {user: "auth-provider: {name: oidc, config: {idp-certificate-authority: " + secret + "}}"},
		"an authority that is read":  {user: "token: a", cluster: ", certificate-authority: " + secret},
		"a hub that is not verified": {user: "token: a", cluster: ", insecure-skip-tls-verify: true"},
	} {
		t.Run(name, func(t *testing.T) {
			w := agenttest.NewWorld(t)
			if err := w.Spoke.Tracker().Add(&corev1.Secret{Data: map[string][]byte{registration.KeyKubeconfig: kubeconfigWith(test.user, test.cluster, "")},
				ObjectMeta: metav1.ObjectMeta{Namespace: agenttest.Namespace, Name: registration.BootstrapSecret}}); err != nil {
				t.Fatal(err)
			}
			config, err := (&hub.Bootstrap{Client: w.Spoke, Namespace: agenttest.Namespace}).Read(t.Context())
			if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it is read as %+v: %v", config, err)
			}
		})
	}
	// Users that are not in use are not checked: this is the kubeconfig of a person.
	w := agenttest.NewWorld(t)
	if err := w.Spoke.Tracker().Add(&corev1.Secret{
		Data:       map[string][]byte{registration.KeyKubeconfig: kubeconfigWith("token: a", "", ", {name: other, user: {tokenFile: "+secret+"}}")},
		ObjectMeta: metav1.ObjectMeta{Namespace: agenttest.Namespace, Name: registration.BootstrapSecret}}); err != nil {
		t.Fatal(err)
	}
	config, err := (&hub.Bootstrap{Client: w.Spoke, Namespace: agenttest.Namespace}).Read(t.Context())
	if err != nil || len(config.AuthInfos) != 1 {
		t.Errorf("with a user that is not in use: %+v, %v", config, err)
	}
}

// TestAttack_OnlyOwnUserOfIdentityIsUsed: only the user with the name that agents use is made harmless. So no other user may be used.
func TestAttack_OnlyOwnUserOfIdentityIsUsed(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	harmless := func(user *clientcmdapi.AuthInfo) { *user = clientcmdapi.AuthInfo{Token: "own"} }
	for name, user := range map[string]string{
		"a token of the pod": "tokenFile: " + secret,
		"a program":          "exec: {apiVersion: client.authentication.k8s.io/v1, command: cat, args: [" + secret + "], interactiveMode: Never}",
		"another user":       "token: another, as: system:admin",
	} {
		var config *rest.Config
		config, err := hub.IdentityConfig(kubeconfigWith(user, "", ", {name: default-auth, user: {token: a}}"), harmless)
		if err != nil {
			continue
		}
		if config.BearerToken != "own" || config.BearerTokenFile != "" || config.ExecProvider != nil || config.Impersonate.UserName != "" {
			t.Errorf("%s: the agent comes to the hub with %+v", name, config)
		}
	}
	if config, err := hub.IdentityConfig(kubeconfigWith("token: a", ", certificate-authority: "+secret, ", {name: default-auth, user: {token: a}}"), harmless); err == nil {
		t.Errorf("a file of the pod is read: %+v", config)
	}
}
