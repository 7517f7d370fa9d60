// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach_test

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/pkg/remote/reach"
	"github.com/clusterhub/clusterhub/test/await"
	"github.com/clusterhub/clusterhub/test/binaries"
)

// kubeAPIServer starts a real one with additional flags, and returns an admin's kubeconfig for it.
func kubeAPIServer(t *testing.T, flags ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	bin := binaries.Kubernetes(t, filepath.Join(dir, "bin"))
	certificates := localserver.Certificates{Dir: filepath.Join(dir, "pki")}
	authorities := map[string]*localserver.Authority{}
	for _, name := range []string{"server-ca", "client-ca", "etcd-ca", "etcd-client-ca", "etcd-peer-ca"} {
		authority, err := certificates.Authority(name, name)
		if err != nil {
			t.Fatal(err)
		}
		authorities[name] = authority
	}
	port := func() int {
		l, port, err := localserver.Listen()
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		return port
	}
	etcd := localserver.Etcd{
		Members:      []localserver.EtcdMember{{Port: port(), PeerPort: port(), DataDir: filepath.Join(dir, "etcd")}},
		Certificates: certificates, ServerCA: "etcd-ca", ClientCA: "etcd-client-ca", PeerCA: "etcd-peer-ca",
		Server: "etcd", Client: "etcd-client", Peer: "etcd-peer", UnsafeNoFsync: true,
	}
	server := localserver.KubeAPIServer{
		Port: port(), Certificates: certificates, Server: "kube-apiserver", ClientCA: "client-ca", Issuer: localserver.DefaultIssuer, Etcd: etcd,
	}
	if err := errors.Join(
		etcd.Identify(authorities), certificates.SigningKey(localserver.ServiceAccountKey),
		authorities["server-ca"].Server("kube-apiserver", "kube-apiserver"),
		authorities["client-ca"].Client("admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}),
	); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"etcd": etcd.Args(0), "kube-apiserver": append(server.Args(), flags...)} {
		process := localserver.Process{Dir: dir, Name: name, Tied: true}
		if err := process.Start(filepath.Join(bin, name), args); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := process.Kill(); err != nil {
				t.Error(err)
			}
		})
	}
	read := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL(), CertificateAuthorityData: read(certificates.Cert("server-ca"))}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: read(certificates.Cert("admin")), ClientKeyData: read(certificates.Key("admin"))}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestKeeper_RealCluster: only a real kube-apiserver shows which lifetime it grants, to whom a token belongs, and what of a Secret is immutable.
// It is also the management cluster.
func TestKeeper_RealCluster(t *testing.T) {
	source, err := mint.Parse(kubeAPIServer(t, "--service-account-max-token-expiration=2h"))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := reach.New(source, reach.Options{UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	own, err := cluster.Client(client.Options{})
	if err == nil {
		err = wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, await.Limit, true, func(ctx context.Context) (bool, error) {
			return own.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{}) == nil, nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	account := func() (*corev1.ServiceAccount, mint.Account) {
		made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "k-work-sa"}}
		if err := own.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		return made, mint.Account{Namespace: made.Namespace, Name: made.Name, UID: made.UID}
	}
	made, first := account()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	keeper := &mint.Minter{Client: own, Clock: clock}
	wanted := mint.Desired{
		Secret:  types.NamespacedName{Namespace: "default", Name: "external-managed-kubeconfig-work"},
		Account: first, Source: source, Cluster: cluster,
	}
	ensure := func(minted bool) mint.Result {
		t.Helper()
		state, err := keeper.Ensure(t.Context(), wanted)
		if err != nil || !state.Usable || state.Minted != minted {
			t.Fatalf("%+v: %v", state, err)
		}
		if user := whoIs(t, own, wanted.Secret); user != "system:serviceaccount:default:k-work-sa" {
			t.Errorf("with what is minted, a client is %q", user)
		}
		return state
	}

	// The requested lifetime is 30 days.
	if state := ensure(true); state.Expiration.Sub(clock.Now()).Round(time.Minute) != 2*time.Hour {
		t.Errorf("at %s it is granted until %s", clock.Now(), state.Expiration)
	}
	ensure(false)
	clock.SetTime(clock.Now().Add(83 * time.Minute))
	ensure(false)

	secret := &corev1.Secret{}
	if err := own.Get(t.Context(), wanted.Secret, secret); err != nil {
		t.Fatal(err)
	}
	secret.Immutable = new(true)
	if err := own.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	ensure(false)
	clock.SetTime(time.Now())
	wanted.Labels = map[string]string{"of": "k"}
	ensure(false)

	// A token of the previous ServiceAccount would be invalid.
	if err := own.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	_, wanted.Account = account()
	ensure(true)
	other := wanted
	other.Secret.Name, other.Account = "other", first
	if state, err := keeper.Ensure(t.Context(), other); err == nil || !strings.Contains(err.Error(), "UID") || state.Usable {
		t.Errorf("with the UID of one that is gone: %+v: %v", state, err)
	}
	other.Secret.Name, other.Account.Name = "third", "missing"
	if state, err := keeper.Ensure(t.Context(), other); err == nil || !strings.Contains(err.Error(), "not found") || state.Usable {
		t.Errorf("without the ServiceAccount: %+v: %v", state, err)
	}
}

// whoIs returns the user that the cluster authenticates for a client with the Secret as files.
func whoIs(t *testing.T, from client.Client, name types.NamespacedName) string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := from.Get(t.Context(), name, secret); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for key, data := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, key), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var review *authenticationv1.SelfSubjectReview
	// A server that has just started does not have all of its roles yet.
	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, await.Limit, true, func(ctx context.Context) (bool, error) {
		review, err = typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return true, err
	}); err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}
