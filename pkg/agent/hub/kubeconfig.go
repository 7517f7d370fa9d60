// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/limits"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/bootstrap"
)

// Names in a kubeconfig of an agent; upstream's agents use the same.
const (
	kubeconfigCluster = "default-cluster"
	kubeconfigUser    = "default-auth"
	kubeconfigContext = "default-context"
)

// Kubeconfig returns the kubeconfig of the agent's own identity, with the hub of the bootstrap kubeconfig, its certificate authority, proxy and
// server name.
func Kubeconfig(joining *clientcmdapi.Config, namespace string, user *clientcmdapi.AuthInfo) ([]byte, error) {
	cluster, err := bootstrap.Cluster(joining)
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

// URL returns the URL of the hub in a kubeconfig of the secret.
func URL(kubeconfig []byte) (string, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return "", fmt.Errorf("the secret %s has no valid kubeconfig", registration.HubKubeconfigSecret)
	}
	cluster, err := bootstrap.Cluster(config)
	if err != nil {
		return "", fmt.Errorf("the kubeconfig of secret %s %w", registration.HubKubeconfigSecret, err)
	}
	return cluster.Server, nil
}

// IdentityConfig reads a kubeconfig of the secret. localize adapts its user, which is for a process that has the secret as files, to this process.
func IdentityConfig(kubeconfig []byte, localize func(*clientcmdapi.AuthInfo)) (*rest.Config, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the secret %s has no valid kubeconfig", registration.HubKubeconfigSecret)
	}
	user, ok := config.AuthInfos[kubeconfigUser]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig of secret %s has no user %s", registration.HubKubeconfigSecret, kubeconfigUser)
	}
	localize(user)
	// No other user is used: other clients may write the secret.
	if current, ok := config.Contexts[config.CurrentContext]; ok {
		current.AuthInfo = kubeconfigUser
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{kubeconfigUser: user}
	if err := bootstrap.CheckNoFiles(config); err != nil {
		return nil, fmt.Errorf("the kubeconfig of secret %s %w", registration.HubKubeconfigSecret, err)
	}
	return BootstrapConfig(config)
}

// BootstrapConfig returns the client configuration for the hub of a bootstrap kubeconfig.
func BootstrapConfig(config *clientcmdapi.Config) (*rest.Config, error) {
	cluster, err := bootstrap.Cluster(config)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig for the hub %w", err)
	}
	if err := command.CheckProxyURL(cluster.ProxyURL); err != nil {
		return nil, fmt.Errorf("the kubeconfig for the hub has an invalid proxy-url: it %w", err)
	}
	c, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	c.Timeout = RequestTimeout
	return limits.WithoutRedirects(rest.AddUserAgent(c, "hub-agent")), nil
}
