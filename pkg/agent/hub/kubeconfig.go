// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Names in a kubeconfig of an agent; upstream's agents use the same.
const (
	kubeconfigCluster = "default-cluster"
	kubeconfigUser    = "default-auth"
	kubeconfigContext = "default-context"
)

func onlyCluster(config *clientcmdapi.Config) (*clientcmdapi.Cluster, error) {
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, errors.New("has no current context")
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok || cluster.Server == "" {
		return nil, errors.New("names no server of the hub in its current context")
	}
	return cluster, nil
}

// whole refuses a kubeconfig of a secret that names files or programs. They would be those of the agent, such as the token of its pod, and
// what is in a secret is from a hub, or from users who may write nothing but secrets.
func whole(config *clientcmdapi.Config) error {
	for _, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return errors.New("names a file in certificate-authority, which a secret cannot have: put it into certificate-authority-data")
		}
	}
	for _, user := range config.AuthInfos {
		switch {
		case user.Exec != nil || user.AuthProvider != nil:
			return errors.New("has a user who logs in by a program (exec or auth-provider), and the agent runs none: put a token there")
		case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
			return errors.New("names a file in tokenFile, client-certificate or client-key, which a secret cannot have: put a token there, " +
				"or client-certificate-data and client-key-data")
		}
	}
	return nil
}

// Kubeconfig is the kubeconfig of the agent's own identity: the hub as the bootstrap kubeconfig has it, with its
// certificate authority, proxy and server name.
func Kubeconfig(bootstrap *clientcmdapi.Config, namespace string, user *clientcmdapi.AuthInfo) ([]byte, error) {
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

// URL is where the hub of a kubeconfig of the secret is.
func URL(kubeconfig []byte) (string, error) {
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

// IdentityConfig reads a kubeconfig of the secret. localize turns its user, who is written for a process that has the
// secret as files, into one for this process.
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
	// Of whatever other users there are, none is used: the secret may be written by others.
	if current, ok := config.Contexts[config.CurrentContext]; ok {
		current.AuthInfo = kubeconfigUser
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{kubeconfigUser: user}
	if err := whole(config); err != nil {
		return nil, fmt.Errorf("the kubeconfig of secret %s %w", registration.HubKubeconfigSecret, err)
	}
	return BootstrapConfig(config)
}

// BootstrapConfig is how the hub of a bootstrap kubeconfig is reached.
func BootstrapConfig(config *clientcmdapi.Config) (*rest.Config, error) {
	cluster, err := onlyCluster(config)
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
	return rest.AddUserAgent(c, "hub-agent"), nil
}
