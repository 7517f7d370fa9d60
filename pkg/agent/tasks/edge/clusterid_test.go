// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

func answers(issuer, keys string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if path == pathIssuer {
			return []byte(issuer), nil
		}
		return []byte(keys), nil
	}
}

func TestID_DerivesFromIssuerKeysAndCertificates(t *testing.T) {
	const issuer, keys = `{"issuer": "https://kubernetes.default.svc", "jwks_uri": "https://10.0.0.1/openid/v1/jwks"}`, `{"keys": [{"kid": "1", "n": "x"}, {"kid": "2", "n": "y"}]}`
	of := func(issuer, keys string, certificates ...string) string {
		t.Helper()
		id, err := idOf(answers(issuer, keys), certificates)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := of(issuer, keys, "a", "b")
	if len(id) != 64 {
		t.Fatalf("the id is %q", id)
	}
	for what, same := range map[string]string{
		"the order of keys and members": of(issuer, `{"keys": [{"n": "y", "kid": "2"}, {"kid": "1", "n": "x"}]}`, "a", "b"),
		"the order of certificates":     of(issuer, keys, "b", "a"),
		"the address":                   of(`{"issuer": "https://kubernetes.default.svc", "jwks_uri": "https://10.0.0.2/openid/v1/jwks"}`, keys, "a", "b"),
	} {
		if same != id {
			t.Errorf("%s makes it another cluster", what)
		}
	}
	seen := map[string]string{id: "the cluster"}
	for what, other := range map[string]string{
		"the issuer":        of(`{"issuer": "https://other"}`, keys, "a", "b"),
		"a key":             of(issuer, `{"keys": [{"kid": "1", "n": "x"}]}`, "a", "b"),
		"a certificate":     of(issuer, keys, "a"),
		"where a part ends": of(issuer, keys, "ab"),
	} {
		if before, found := seen[other]; found {
			t.Errorf("%s makes no other cluster than %s", what, before)
		}
		seen[other] = what
	}
	for what, unknown := range map[string]string{"no issuer": of(`{}`, keys, "a"), "no keys": of(issuer, `{"keys": []}`, "a"), "no certificates": of(issuer, keys)} {
		if unknown != "" {
			t.Errorf("%s: the id is %q", what, unknown)
		}
	}
	resource := corev1.Resource("paths")
	for _, c := range []struct {
		err     error
		unknown bool
	}{{apierrors.NewForbidden(resource, "", errors.New("no")), true}, {apierrors.NewNotFound(resource, ""), true}, {apierrors.NewUnauthorized("who"), false},
		{errors.New("timeout"), false}} {
		id, err := idOf(func(string) ([]byte, error) { return nil, c.err }, []string{"a"})
		if id != "" || (err == nil) != c.unknown {
			t.Errorf("%v: the id is %q: %v", c.err, id, err)
		}
	}
	if _, err := idOf(answers("<html>", keys), []string{"a"}); err == nil {
		t.Error("what cannot be read is no error")
	}
}

// Two ServiceAccounts of one real cluster, one with all rights and the other with none, get the same ID.
func TestID_IsSharedByAgentsOfCluster(t *testing.T) {
	admin := worktest.Config(t)
	kube := kubernetes.NewForConfigOrDie(admin)
	known := map[string]bool{}
	for range 2 {
		namespace := worktest.Namespace(t)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
		if _, err := kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		token, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "agent", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		config := rest.AnonymousClientConfig(admin)
		config.BearerToken = token.Status.Token
		file := filepath.Join(t.TempDir(), "ca.crt")
		if len(config.CAData) > 0 { // as in a pod
			if err := os.WriteFile(file, config.CAData, 0o600); err != nil {
				t.Fatal(err)
			}
			config.CAData, config.CAFile = nil, file
		}
		known[idAs(t, config)] = true
	}
	known[idAs(t, admin)] = true
	if len(known) != 1 || known[""] {
		t.Errorf("it is known as %v", known)
	}
	if id := idAs(t, rest.AnonymousClientConfig(admin)); id != "" {
		t.Errorf("who has no rights at all knows it as %q", id)
	}
}

func idAs(t *testing.T, config *rest.Config) string {
	t.Helper()
	cluster, err := spoke.New(config, "agent")
	if err != nil {
		t.Fatal(err)
	}
	id, err := clusterID(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
