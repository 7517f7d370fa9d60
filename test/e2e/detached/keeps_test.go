// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestDetached_RetainsPodsWhenTokenIsRenewed deletes the ServiceAccount of the work agent on the managed cluster. The same pod continues with the
// token of a new ServiceAccount. It rereads its token after at most a minute.
func TestDetached_RetainsPodsWhenTokenIsRenewed(t *testing.T) {
	w := newWorld(t)
	j := w.joined()
	before := livesOf(j.pods())
	j.losesAccount(j.name+"-work-sa", "external-managed-kubeconfig-work")
	j.bringsBy("renewed", j.name+"-renewed")
	harness.MustKubectlOf(t, w.hub, "", "delete", "manifestwork", "renewed", "-n", j.name, "--timeout="+harness.Timeout.String())
	if got, err := kubectl(t, w.managed.Instance, "get", "configmap", j.name+"-renewed"); err == nil || !strings.Contains(got, "not found") {
		t.Errorf("the agent has not taken away what the work has brought: %s", got)
	}
	if now := livesOf(j.pods()); len(before) != 2 || !slices.Equal(now, before) {
		t.Errorf("the pods were\n%s\nand are\n%s", strings.Join(before, "\n"), strings.Join(now, "\n"))
	}
}

// losesAccount deletes a ServiceAccount on the managed cluster, and waits until a new one exists with its own token, and until the previous token is
// rejected: the kube-apiserver caches it for some seconds.
func (j *joined) losesAccount(account, secret string) {
	j.Helper()
	secrets := harness.Kube(j.T, j.management.AdminConfig()).CoreV1().Secrets(j.namespace)
	accounts := harness.Kube(j.T, j.managed.AdminConfig()).CoreV1().ServiceAccounts(j.namespace)
	answers := func(token []byte) error {
		config := rest.AnonymousClientConfig(j.managed.AdminConfig())
		config.BearerToken = string(token)
		_, err := harness.Get(j.T, config, "/api") // allowed to each authenticated user
		return err
	}
	former := harness.Must(secrets.Get(j.Context(), secret, metav1.GetOptions{}))(j.T).Data[operatorv1.KeyToken]
	if err := answers(former); err != nil {
		j.Fatalf("the token of %s: %v", account, err)
	}
	if err := accounts.Delete(j.Context(), account, metav1.DeleteOptions{}); err != nil {
		j.Fatal(err)
	}
	eventually(j.T, "there is a token of a new account", func() error {
		made, err := accounts.Get(j.Context(), account, metav1.GetOptions{})
		if err != nil {
			return err
		}
		minted, err := secrets.Get(j.Context(), secret, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if of := string(minted.Data[operatorv1.KeyServiceAccountUID]); of != string(made.UID) {
			return fmt.Errorf("it is of %s, want %s", of, made.UID)
		}
		return answers(minted.Data[operatorv1.KeyToken])
	})
	eventually(j.T, "the former token is worth nothing", func() error {
		if err := answers(former); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("it is answered with %w", err)
		}
		return nil
	})
}
