// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// ProcClusterFront is the kube-apiserver of a cluster in the names of processes.
const ProcClusterFront = "kube-apiserver of the cluster"

// targetManifest has an account with all rights in a cluster.
//
//go:embed target.yaml
var targetManifest []byte

// StartCluster starts a cluster beside the hub, in a folder of the hub's directory. adapt changes its configuration.
func StartCluster(ctx context.Context, e *Env, folder string, adapt func(*localhub.Options) error) (*localhub.Instance, error) {
	config := localhub.Options{Dir: filepath.Join(e.Config.Dir, folder), BinDir: e.Config.BinDir, Plain: true, UnsafeNoFsync: e.Config.UnsafeNoFsync}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := adapt(&config); err != nil {
		return nil, err
	}
	return localhub.Start(ctx, config)
}

// ClusterAdmin creates an account with all rights in a cluster, and returns the cluster and a token of the account.
func ClusterAdmin(ctx context.Context, cluster *localhub.Instance) (*clientcmdapi.Cluster, string, error) {
	if err := ApplyTo(ctx, cluster, targetManifest); err != nil {
		return nil, "", err
	}
	return Account(ctx, cluster.AdminConfig(), "kube-system", "provider-admin")
}

// Account returns a cluster, and a token of one of its service accounts.
func Account(ctx context.Context, admin *rest.Config, namespace, name string) (*clientcmdapi.Cluster, string, error) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, "", err
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}, metav1.CreateOptions{})
	if err != nil {
		return nil, "", err
	}
	if err := rest.LoadTLSFiles(admin); err != nil {
		return nil, "", err
	}
	return &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}, token.Status.Token, nil
}

// Kubeconfig returns a kubeconfig with one context.
func Kubeconfig(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	return &clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"cluster": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"user": user},
		Contexts:       map[string]*clientcmdapi.Context{"context": {Cluster: "cluster", AuthInfo: "user"}},
		CurrentContext: "context",
	}
}
