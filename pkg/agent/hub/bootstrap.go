// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/bootstrap"
)

// BootstrapRights are the rights on the management cluster to read the bootstrap kubeconfig.
var BootstrapRights = rights.Rights{Management: rights.Rules{Namespace: []rbacv1.PolicyRule{
	rights.Named(registration.BootstrapSecret, rights.Rule("", "secrets", "get")),
}}}

// Bootstrap reads the bootstrap kubeconfig each time, since its token is replaced from time to time.
type Bootstrap struct {
	// File is the path of the kubeconfig. If it is empty, registration.BootstrapSecret is read.
	File      string
	Client    kubernetes.Interface
	Namespace string
}

// Read returns the kubeconfig with its current context only, and without a reference to a file for the CA certificates of the hub.
func (b *Bootstrap) Read(ctx context.Context) (*clientcmdapi.Config, error) {
	if b.File == "" {
		return b.readSecret(ctx)
	}
	config, err := clientcmd.LoadFromFile(b.File)
	if err != nil {
		return nil, fmt.Errorf("reading the bootstrap kubeconfig: %w", err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, err
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("the bootstrap kubeconfig in %s: %w", b.File, err)
	}
	cluster, err := bootstrap.Cluster(config)
	if err != nil {
		return nil, fmt.Errorf("the bootstrap kubeconfig in %s %w", b.File, err)
	}
	if len(cluster.CertificateAuthorityData) == 0 && cluster.CertificateAuthority != "" {
		ca, err := os.ReadFile(cluster.CertificateAuthority)
		if err != nil {
			return nil, fmt.Errorf("the certificate authority of the bootstrap kubeconfig in %s: %w", b.File, err)
		}
		cluster.CertificateAuthorityData = ca
	}
	cluster.CertificateAuthority = ""
	return config, nil
}

func (b *Bootstrap) readSecret(ctx context.Context) (*clientcmdapi.Config, error) {
	where := fmt.Sprintf("secret %s/%s", b.Namespace, registration.BootstrapSecret)
	secret, err := b.Client.CoreV1().Secrets(b.Namespace).Get(ctx, registration.BootstrapSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no bootstrap kubeconfig: create %s with the key %s, or set --bootstrap-kubeconfig",
			where, registration.KeyKubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the bootstrap kubeconfig: %w", err)
	}
	data := secret.Data[registration.KeyKubeconfig]
	if len(data) == 0 {
		return nil, fmt.Errorf("%s has no key %s", where, registration.KeyKubeconfig)
	}
	config, err := bootstrap.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("the bootstrap kubeconfig in %s %w", where, err)
	}
	return config, nil
}
