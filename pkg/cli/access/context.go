// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

const accessTokenCommand = "access-token"

// accessContext is the context of a cluster in the kubeconfig that the flags select. Context, cluster and user have the same name.
type accessContext struct {
	*kit.Options
	name, request, namespace string
	access                   clientcmd.ConfigAccess
	kubeconfig               *clientcmdapi.Config
}

// contextFor returns the context for a request. It fails if a context with that name belongs to something else.
func (o *accessOptions) contextFor(request string) (*accessContext, error) {
	c := &accessContext{Options: o.Options, name: o.cluster.Namespace + "--" + o.cluster.Name, request: request, namespace: o.namespace,
		access: o.ConfigFlags.ToRawKubeConfigLoader().ConfigAccess()}
	var err error
	c.kubeconfig, err = c.access.GetStartingConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	user, ok := c.kubeconfig.AuthInfos[c.name]
	ours := ok && user.Exec != nil && len(user.Exec.Args) > 0 && user.Exec.Args[0] == accessTokenCommand
	if !ours && (ok || c.kubeconfig.Contexts[c.name] != nil || c.kubeconfig.Clusters[c.name] != nil) {
		return nil, fmt.Errorf("the kubeconfig has a context, cluster or user %s that kubectl hub did not create: rename it, or use another "+
			"--kubeconfig", c.name)
	}
	return c, nil
}

// config returns a kubeconfig with the context. Its user gets tokens from the hub with the credentials of this command.
func (c *accessContext) config(token *v1alpha1.AccessToken) (*clientcmdapi.Config, error) {
	config, err := clientcmd.Load([]byte(token.Status.Kubeconfig))
	if err != nil || config.Contexts[config.CurrentContext] == nil ||
		config.Clusters[config.Contexts[config.CurrentContext].Cluster] == nil {
		return nil, fmt.Errorf("the hub returned no kubeconfig for AccessRequest %s/%s", c.namespace, c.request)
	}
	command, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if found, err := exec.LookPath("kubectl-hub"); err == nil && filepath.IsAbs(found) {
		command = "kubectl-hub"
	}
	return &clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{c.name: config.Clusters[config.Contexts[config.CurrentContext].Cluster]},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{c.name: {Exec: &clientcmdapi.ExecConfig{
			APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Command: command, Args: c.args(),
			InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
			InstallHint:     "kubectl-hub must be in the PATH.",
		}}},
		Contexts:       map[string]*clientcmdapi.Context{c.name: {Cluster: c.name, AuthInfo: c.name}},
		CurrentContext: c.name,
	}, nil
}

// args returns the arguments of access-token. They fix the hub that is used now, even if the current context changes later.
func (c *accessContext) args() []string {
	args := []string{accessTokenCommand, "--request=" + c.namespace + "/" + c.request}
	if path := *c.ConfigFlags.KubeConfig; path != "" {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		args = append(args, "--kubeconfig="+path)
	}
	hub := c.kubeconfig.CurrentContext
	if *c.ConfigFlags.Context != "" {
		hub = *c.ConfigFlags.Context
	}
	if hub != "" {
		args = append(args, "--context="+hub)
	}
	if *c.ConfigFlags.Impersonate != "" {
		args = append(args, "--as="+*c.ConfigFlags.Impersonate)
	}
	for _, group := range *c.ConfigFlags.ImpersonateGroup {
		args = append(args, "--as-group="+group)
	}
	return args
}

// merge adds the context and returns the file that it is in. The current context stays.
func (c *accessContext) merge(config *clientcmdapi.Config) (string, error) {
	c.kubeconfig.Clusters[c.name], c.kubeconfig.AuthInfos[c.name] = config.Clusters[c.name], config.AuthInfos[c.name]
	if have := c.kubeconfig.Contexts[c.name]; have == nil { // the namespace that the user selected stays
		c.kubeconfig.Contexts[c.name] = config.Contexts[c.name]
	}
	if err := clientcmd.ModifyConfig(c.access, *c.kubeconfig, true); err != nil {
		return "", fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return c.access.GetDefaultFilename(), nil
}

func (c *accessContext) remove() error {
	delete(c.kubeconfig.Clusters, c.name)
	delete(c.kubeconfig.AuthInfos, c.name)
	delete(c.kubeconfig.Contexts, c.name)
	if err := clientcmd.ModifyConfig(c.access, *c.kubeconfig, true); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// NewTokenCommand returns the command that the kubeconfigs written by access run.
func NewTokenCommand(opts *kit.Options) *cobra.Command {
	request, lifetime := "", time.Hour
	cmd := &cobra.Command{
		Use:    accessTokenCommand + " --request NAMESPACE/NAME",
		Short:  "Print a short-lived token of an AccessRequest, as an ExecCredential",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printAccessToken(cmd.Context(), opts, request, lifetime)
		},
	}
	cmd.Flags().StringVar(&request, "request", "", "The AccessRequest.")
	cmd.Flags().DurationVar(&lifetime, "lifetime", lifetime, "Lifetime of the token.")
	return cmd
}

func printAccessToken(ctx context.Context, opts *kit.Options, request string, lifetime time.Duration) error {
	namespace, name, found := strings.Cut(request, "/")
	if !found || namespace == "" || name == "" {
		return fmt.Errorf("--request must be NAMESPACE/NAME, not %q", request)
	}
	config, err := opts.RESTConfig()
	if err != nil {
		return err
	}
	h, err := kit.NewHub(config)
	if err != nil {
		return err
	}
	wanted := &v1alpha1.AccessToken{Spec: v1alpha1.AccessTokenSpec{ExpirationSeconds: new(int64(lifetime / time.Second))}}
	token, err := h.Clusters.OpenMCPV1alpha1().AccessRequests(namespace).CreateToken(ctx, name, wanted, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("AccessRequest %s does not exist any more: it has expired or was deleted. Request access again with "+
			"kubectl hub access", request)
	}
	if err != nil {
		return kit.ExplainUnreachable(config.Host, err, "check --context and --kubeconfig")
	}
	return json.NewEncoder(opts.Out).Encode(clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status: &clientauthenticationv1.ExecCredentialStatus{
			Token: token.Status.Token, ExpirationTimestamp: &token.Status.ExpirationTimestamp,
		},
	})
}
