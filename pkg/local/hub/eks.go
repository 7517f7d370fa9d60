// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// EKS makes a front behave like one of EKS: aws-iam-authenticator authenticates the identities in kube-system/aws-auth, and TokenWebhook others.
type EKS struct {
	// ClusterName is the cluster's name in EKS, for which tokens are issued.
	ClusterName string
	// Env is the environment with which the authenticator reaches AWS, to verify who has signed a token.
	Env []string
	// TokenWebhook is the URL that the front uses for TokenReviews instead of the authenticator. It must forward to the authenticator, with
	// Hub.Authenticator: as in EKS, access entries of the cluster come before aws-auth.
	TokenWebhook string
}

// authenticatorKubeconfig is the file that the authenticator writes for its clients.
const authenticatorKubeconfig = "webhook.kubeconfig"

// authenticatorHealth is the health address of the authenticator, on all interfaces and independent of its flags.
const authenticatorHealth = "127.0.0.1:21363"

// authenticator is the authenticator of the front of EKS.
type authenticator struct{ *identity }

func (a authenticator) file(name string) string { return a.path(procAuthenticator, name) }

// flags are for all of its commands: some settings are flags of one only.
func (a authenticator) flags() []string {
	return []string{"--config=" + a.file("config.yaml"), "--feature-gates=ConfiguredInitDirectories=true"}
}

// initialize creates the authenticator's certificate, and returns the flags with which kube-apiserver uses the authenticator.
func (a authenticator) initialize(ctx context.Context) (flags []string, err error) {
	webhook := a.file(authenticatorKubeconfig)
	config, err := yaml.Marshal(map[string]any{
		"clusterID": a.config.EKS.ClusterName,
		"server": map[string]any{
			"port": a.ports[procAuthenticator], "stateDir": a.path(procAuthenticator), "kubeconfig": a.kubeconfigFile(adminClient),
			"generateKubeconfig": webhook, "kubeconfigPregenerated": true, "backendMode": []string{"EKSConfigMap"},
		},
	})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(a.path(procAuthenticator), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(a.file("config.yaml"), config, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, a.bin(procAuthenticator), append([]string{"init"}, a.flags()...)...)
	cmd.Dir = a.path(procAuthenticator)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s init: %w: %s", procAuthenticator, err, strings.TrimSpace(string(out)))
	}
	if first := a.config.EKS.TokenWebhook; first != "" {
		webhook = a.file("front.kubeconfig")
		if err := clientcmd.WriteToFile(*kubeconfigOf(first), webhook); err != nil {
			return nil, err
		}
	}
	return []string{"--authentication-token-webhook-config-file=" + webhook, "--authentication-token-webhook-version=v1beta1"}, nil
}

// kubeconfigOf returns the kubeconfig of a server that requires no credentials.
func kubeconfigOf(server string) *clientcmdapi.Config {
	const name = "webhook"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}

// handler returns a handler of TokenReviews that uses the authenticator of this hub, with aws-auth.
func (a authenticator) handler() (http.Handler, error) {
	config, err := clientcmd.BuildConfigFromFlags("", a.file(authenticatorKubeconfig))
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = target, "" },
		Transport: transport,
	}, nil
}

func (a authenticator) start(ctx context.Context) error {
	args := append([]string{"server"}, a.flags()...)
	return a.run(ctx, procAuthenticator, procAuthenticator, args, a.config.EKS.Env, func(ctx context.Context) bool {
		return dials(ctx, a.ports[procAuthenticator])
	})
}
