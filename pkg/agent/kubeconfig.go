// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Names in a kubeconfig of an agent; upstream's agents use the same.
const (
	kubeconfigCluster = "default-cluster"
	kubeconfigUser    = "default-auth"
	kubeconfigContext = "default-context"
)

// proxySchemes are those of proxies that client-go knows.
var proxySchemes = []string{"http", "https", "socks5"}

// bootstrapSource reads the bootstrap kubeconfig, each time anew: its token is replaced from time to time.
type bootstrapSource struct {
	// file is its path. Without one it is read from registration.BootstrapSecret.
	file      string
	client    kubernetes.Interface
	namespace string
}

// read returns the kubeconfig with nothing but its current context, and no reference to a file for how the hub is
// trusted.
func (b *bootstrapSource) read(ctx context.Context) (*clientcmdapi.Config, error) {
	config, where, err := b.load(ctx)
	if err != nil {
		return nil, err
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("the bootstrap kubeconfig in %s: %w", where, err)
	}
	cluster, err := onlyCluster(config)
	if err != nil {
		return nil, fmt.Errorf("the bootstrap kubeconfig in %s %w", where, err)
	}
	if len(cluster.CertificateAuthorityData) == 0 && cluster.CertificateAuthority != "" {
		ca, err := os.ReadFile(cluster.CertificateAuthority)
		if err != nil {
			return nil, fmt.Errorf("the certificate authority of the bootstrap kubeconfig in %s: %w", where, err)
		}
		cluster.CertificateAuthorityData = ca
	}
	cluster.CertificateAuthority = ""
	return config, nil
}

func (b *bootstrapSource) load(ctx context.Context) (config *clientcmdapi.Config, where string, err error) {
	if b.file != "" {
		config, err = clientcmd.LoadFromFile(b.file)
		if err != nil {
			return nil, "", fmt.Errorf("reading the bootstrap kubeconfig: %w", err)
		}
		return config, b.file, clientcmd.ResolveLocalPaths(config)
	}
	where = fmt.Sprintf("secret %s/%s", b.namespace, registration.BootstrapSecret)
	secret, err := b.client.CoreV1().Secrets(b.namespace).Get(ctx, registration.BootstrapSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("there is no bootstrap kubeconfig: make %s with the key %s, or set --bootstrap-kubeconfig",
			where, registration.KeyKubeconfig)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the bootstrap kubeconfig: %w", err)
	}
	data := secret.Data[registration.KeyKubeconfig]
	if len(data) == 0 {
		return nil, "", fmt.Errorf("%s has no key %s", where, registration.KeyKubeconfig)
	}
	config, err = clientcmd.Load(data)
	if err != nil {
		// The error may quote what it could not read, and that may be a token.
		return nil, "", fmt.Errorf("%s has no valid kubeconfig under %s", where, registration.KeyKubeconfig)
	}
	return config, where, nil
}

func onlyCluster(config *clientcmdapi.Config) (*clientcmdapi.Cluster, error) {
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, errors.New("has no current context")
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok || cluster.Server == "" {
		return nil, errors.New("does not say where the hub is")
	}
	return cluster, nil
}

// hubKubeconfig is the kubeconfig of the agent's own identity: the hub as the bootstrap kubeconfig has it, with its
// certificate authority, proxy and server name.
func hubKubeconfig(bootstrap *clientcmdapi.Config, namespace string, user *clientcmdapi.AuthInfo) ([]byte, error) {
	cluster, err := onlyCluster(bootstrap)
	if err != nil {
		return nil, fmt.Errorf("the bootstrap kubeconfig %w", err)
	}
	cluster = cluster.DeepCopy()
	cluster.LocationOfOrigin, cluster.Extensions = "", nil
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{kubeconfigCluster: cluster},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{kubeconfigUser: user},
		Contexts: map[string]*clientcmdapi.Context{kubeconfigContext: {
			Cluster: kubeconfigCluster, AuthInfo: kubeconfigUser, Namespace: namespace}},
		CurrentContext: kubeconfigContext,
	})
}

// hubURL is where the hub of a kubeconfig of the secret is.
func hubURL(kubeconfig []byte) (string, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return "", fmt.Errorf("the secret %s has no valid kubeconfig", registration.HubKubeconfigSecret)
	}
	cluster, err := onlyCluster(config)
	if err != nil {
		return "", fmt.Errorf("the kubeconfig of secret %s %w", registration.HubKubeconfigSecret, err)
	}
	return cluster.Server, nil
}

// hubRESTConfig reads a kubeconfig of the secret. localize turns its user, who is written for a process that has the
// secret as files, into one for this process.
func hubRESTConfig(kubeconfig []byte, localize func(*clientcmdapi.AuthInfo)) (*rest.Config, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the secret %s has no valid kubeconfig", registration.HubKubeconfigSecret)
	}
	user, ok := config.AuthInfos[kubeconfigUser]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig of secret %s has no user %s", registration.HubKubeconfigSecret, kubeconfigUser)
	}
	localize(user)
	return restConfig(config)
}

func restConfig(config *clientcmdapi.Config) (*rest.Config, error) {
	cluster, err := onlyCluster(config)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig for the hub %w", err)
	}
	// The error of client-go has the URL of a proxy in it, and that may have a password.
	if u, err := url.Parse(cluster.ProxyURL); cluster.ProxyURL != "" && (err != nil || !slices.Contains(proxySchemes, u.Scheme)) {
		return nil, fmt.Errorf("the kubeconfig for the hub has a proxy-url that is none: it must be a URL that begins with one of %s://",
			strings.Join(proxySchemes, "://, "))
	}
	c, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	c.Timeout = requestTimeout
	return rest.AddUserAgent(c, "hub-agent"), nil
}
