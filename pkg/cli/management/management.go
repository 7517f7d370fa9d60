// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package management deploys hub-operator, and what it reconciles, to a management cluster: the hubs and agents that are detached.
package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

// These are names of flags.
const (
	ModeFlag              = "mode"
	ContextFlag           = "management-context"
	KubeconfigFlag        = "management-kubeconfig"
	ManagedKubeconfigFlag = "managed-kubeconfig"
	HubKubeconfigFlag     = "hub-kubeconfig"
)

// These are the values of the flag ModeFlag.
const (
	ModeDefault  = "default"
	ModeDetached = "detached"
	ModeHosted   = "hosted"
)

// ModeFlags are the flags for a hub or an agent that runs on another cluster than the one it serves.
type ModeFlags struct {
	// Mode is ModeDefault, ModeDetached or ModeHosted.
	Mode                string
	context, kubeconfig string
}

// AddModeTo adds --mode.
func (o *ModeFlags) AddModeTo(cmd *cobra.Command, usage string) {
	o.Mode = ModeDefault
	cmd.Flags().StringVar(&o.Mode, ModeFlag, o.Mode, usage)
	kit.Must(cmd.RegisterFlagCompletionFunc(ModeFlag,
		cobra.FixedCompletions([]string{ModeDefault, ModeDetached, ModeHosted}, cobra.ShellCompDirectiveNoFileComp)))
}

// AddManagementTo adds the flags that select the management cluster.
func (o *ModeFlags) AddManagementTo(fs *pflag.FlagSet) {
	fs.StringVar(&o.context, ContextFlag, "", "Context of the management cluster in --"+KubeconfigFlag+". Defaults to --context.")
	fs.StringVar(&o.kubeconfig, KubeconfigFlag, "", "File with the kubeconfig of the management cluster. Defaults to --kubeconfig.")
}

// IsOutside reports whether the pods run on a management cluster.
func (o *ModeFlags) IsOutside() bool { return o.Mode == ModeDetached || o.Mode == ModeHosted }

// Validate accepts the API's spelling, too: Detached is detached.
func (o *ModeFlags) Validate() error {
	switch o.Mode = strings.ToLower(o.Mode); o.Mode {
	case ModeDetached, ModeHosted:
		return nil
	case ModeDefault:
	default:
		return fmt.Errorf("--%s must be %s, %s or %s, not %q", ModeFlag, ModeDefault, ModeDetached, ModeHosted, o.Mode)
	}
	if o.context != "" || o.kubeconfig != "" {
		return fmt.Errorf("--%s and --%s are for --%s=%s", ContextFlag, KubeconfigFlag, ModeFlag, ModeDetached)
	}
	return nil
}

// InstallMode returns the mode as the API spells it.
func (o *ModeFlags) InstallMode() operatorv1.InstallMode {
	if o.Mode == ModeHosted {
		return operatorv1.InstallModeHosted
	}
	return operatorv1.InstallModeDetached
}

// Client is a client for the management cluster, which runs the pods.
type Client struct {
	*kit.ClusterClient
	// UID is the UID of its namespace kube-system.
	UID types.UID
}

// Connect returns the cluster that the flags select.
func Connect(ctx context.Context, opts *kit.Options, o *ModeFlags) (*Client, error) {
	if o.context != "" && *opts.ConfigFlags.Context != "" && *opts.ConfigFlags.Context != o.context {
		return nil, fmt.Errorf("--context and --%s both select the management cluster: set only one of them", ContextFlag)
	}
	at := opts
	if o.context != "" || o.kubeconfig != "" {
		at = opts.WithContext(cmp.Or(o.kubeconfig, *opts.ConfigFlags.KubeConfig), cmp.Or(o.context, *opts.ConfigFlags.Context))
	}
	t, err := at.Cluster("the management cluster", "check --"+ContextFlag+" and --"+KubeconfigFlag)
	if err != nil {
		return nil, err
	}
	system := &corev1.Namespace{}
	if err := t.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, fmt.Errorf("getting the identity of the management cluster: %w", t.Explain(err))
	}
	if system.UID == "" {
		return nil, errors.New("the management cluster has no identity: its namespace kube-system has no UID")
	}
	return &Client{ClusterClient: t, UID: system.UID}, nil
}

// DeploymentState returns what prevents the pod of a Deployment from running. It returns "" if there is nothing, if there is no such Deployment, or
// if the user may not get it: then conditions have to do.
func (m *Client) DeploymentState(ctx context.Context, deployment client.ObjectKey) (string, error) {
	err := m.Get(ctx, deployment, &appsv1.Deployment{})
	state := ""
	if err == nil {
		state, err = m.PodState(ctx, deployment.Namespace, deployment.Name)
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	return state, err
}
