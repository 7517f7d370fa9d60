// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"net"
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

func (h *Instance) authenticatorFile(name string) string { return h.path(procAuthenticator, name) }

// authenticatorFlags are for all of its commands: some settings are flags of one only.
func (h *Instance) authenticatorFlags() []string {
	return []string{"--config=" + h.authenticatorFile("config.yaml"), "--feature-gates=ConfiguredInitDirectories=true"}
}

// initAuthenticator creates the authenticator's certificate, and returns the flags with which kube-apiserver uses the authenticator.
func (h *Instance) initAuthenticator(ctx context.Context) (flags []string, err error) {
	webhook := h.authenticatorFile(authenticatorKubeconfig)
	config, err := yaml.Marshal(map[string]any{
		"clusterID": h.config.EKS.ClusterName,
		"server": map[string]any{
			"port": h.ports[procAuthenticator], "stateDir": h.path(procAuthenticator), "kubeconfig": h.AdminKubeconfig(),
			"generateKubeconfig": webhook, "kubeconfigPregenerated": true, "backendMode": []string{"EKSConfigMap"},
		},
	})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(h.path(procAuthenticator), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(h.authenticatorFile("config.yaml"), config, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, h.bin(procAuthenticator), append([]string{"init"}, h.authenticatorFlags()...)...)
	cmd.Dir = h.path(procAuthenticator)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s init: %w: %s", procAuthenticator, err, strings.TrimSpace(string(out)))
	}
	if first := h.config.EKS.TokenWebhook; first != "" {
		webhook = h.authenticatorFile("front.kubeconfig")
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

// Authenticator returns a handler of TokenReviews that uses the authenticator of this hub, with aws-auth.
func (h *Instance) Authenticator() (http.Handler, error) {
	config, err := clientcmd.BuildConfigFromFlags("", h.authenticatorFile(authenticatorKubeconfig))
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

func (h *Instance) startAuthenticator(ctx context.Context) error {
	// The health server is not started where the port is in use: nothing of a hub listens on other addresses than loopback.
	if taken, err := net.Listen("tcp", authenticatorHealth); err == nil {
		h.taken = taken
	}
	args := append([]string{"server"}, h.authenticatorFlags()...)
	return h.run(ctx, procAuthenticator, procAuthenticator, args, h.config.EKS.Env, func(ctx context.Context) bool {
		return dials(ctx, h.ports[procAuthenticator])
	})
}
