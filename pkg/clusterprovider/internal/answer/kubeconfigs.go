// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// tokenKubeconfig returns the kubeconfig of a user with a token.
func tokenKubeconfig(config *rest.Config, user, token string) ([]byte, error) {
	return kubeconfig(config, "cluster", "cluster", user, &api.AuthInfo{Token: token})
}

// oidcKubeconfig returns the kubeconfig for users of an OIDC provider, with kubectl's plugin oidc-login.
func oidcKubeconfig(config *rest.Config, cluster *v1alpha1.Cluster, provider *v1alpha1.OIDCProviderConfig) ([]byte, error) {
	args := []string{
		"oidc-login", "get-token", "--grant-type=auto", "--oidc-issuer-url=" + provider.Issuer, "--oidc-client-id=" + provider.ClientID,
	}
	for _, scope := range provider.ExtraScopes {
		args = append(args, "--oidc-extra-scope="+scope)
	}
	name := cluster.Namespace + "--" + cluster.Name
	return kubeconfig(config, name, name+"--"+provider.Name, provider.Name, &api.AuthInfo{Exec: &api.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1beta1", Command: "kubectl", Args: append(args, "--oidc-pkce-method=auto"),
		InteractiveMode: api.IfAvailableExecInteractiveMode,
	}})
}

func kubeconfig(config *rest.Config, cluster, context, user string, auth *api.AuthInfo) ([]byte, error) {
	loaded, err := endpoint(config)
	if err != nil {
		return nil, err
	}
	result := api.NewConfig()
	result.Clusters[cluster], result.AuthInfos[user] = loaded, auth
	result.Contexts[context] = &api.Context{Cluster: cluster, AuthInfo: user}
	result.CurrentContext = context
	return clientcmd.Write(*result)
}

// endpoint returns how a cluster is reached, without an identity.
func endpoint(config *rest.Config) (*api.Cluster, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	return &api.Cluster{
		Server: config.Host, TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure,
		CertificateAuthorityData: config.CAData,
	}, nil
}

// EndpointDigest returns a digest of the endpoint of a configuration.
func EndpointDigest(config *rest.Config) string {
	e, err := endpoint(config)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%t\n%s",
		e.Server, e.TLSServerName, e.InsecureSkipTLSVerify, e.CertificateAuthorityData))
	return hex.EncodeToString(sum[:8])
}
