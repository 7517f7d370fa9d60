// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

const (
	modeFlag                 = "mode"
	managementContextFlag    = "management-context"
	managementKubeconfigFlag = "management-kubeconfig"
	managedKubeconfigFlag    = "managed-kubeconfig"
	hubKubeconfigFlag        = "hub-kubeconfig"

	modeDefault, modeDetached, modeHosted = "default", "detached", "hosted"
)

// outside are the flags for a hub or an agent that runs on another cluster than the one it serves.
type outside struct {
	mode                string
	context, kubeconfig string
}

func (o *outside) addModeTo(cmd *cobra.Command, usage string) {
	o.mode = modeDefault
	cmd.Flags().StringVar(&o.mode, modeFlag, o.mode, usage)
	must(cmd.RegisterFlagCompletionFunc(modeFlag,
		cobra.FixedCompletions([]string{modeDefault, modeDetached, modeHosted}, cobra.ShellCompDirectiveNoFileComp)))
}

func (o *outside) addManagementTo(fs *pflag.FlagSet) {
	fs.StringVar(&o.context, managementContextFlag, "", "Context of the management cluster in --"+managementKubeconfigFlag+". Defaults to --context.")
	fs.StringVar(&o.kubeconfig, managementKubeconfigFlag, "", "File with the kubeconfig of the management cluster. Defaults to --kubeconfig.")
}

// isOutside reports whether the pods run on a management cluster.
func (o *outside) isOutside() bool { return o.mode == modeDetached || o.mode == modeHosted }

// validate accepts the API's spelling, too: Detached is detached.
func (o *outside) validate() error {
	switch o.mode = strings.ToLower(o.mode); o.mode {
	case modeDetached, modeHosted:
		return nil
	case modeDefault:
	default:
		return fmt.Errorf("--%s must be %s, %s or %s, not %q", modeFlag, modeDefault, modeDetached, modeHosted, o.mode)
	}
	if o.context != "" || o.kubeconfig != "" {
		return fmt.Errorf("--%s and --%s are for --%s=%s", managementContextFlag, managementKubeconfigFlag, modeFlag, modeDetached)
	}
	return nil
}

func (o *outside) apiMode() operatorv1.InstallMode {
	if o.mode == modeHosted {
		return operatorv1.InstallModeHosted
	}
	return operatorv1.InstallModeDetached
}

// management is the cluster that runs the pods.
type management struct {
	*clusterTarget
	// uid is the UID of its namespace kube-system.
	uid types.UID
}

// managementCluster returns the cluster that the flags select.
func managementCluster(ctx context.Context, g *global, o *outside) (*management, error) {
	if o.context != "" && *g.flags.Context != "" && *g.flags.Context != o.context {
		return nil, fmt.Errorf("--context and --%s both select the management cluster: set only one of them", managementContextFlag)
	}
	at := g
	if o.context != "" || o.kubeconfig != "" {
		at = g.at(cmp.Or(o.kubeconfig, *g.flags.KubeConfig), cmp.Or(o.context, *g.flags.Context))
	}
	t, err := at.target("the management cluster", "check --"+managementContextFlag+" and --"+managementKubeconfigFlag)
	if err != nil {
		return nil, err
	}
	system := &corev1.Namespace{}
	if err := t.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, fmt.Errorf("getting the identity of the management cluster: %w", t.explain(err))
	}
	if system.UID == "" {
		return nil, errors.New("the management cluster has no identity: its namespace kube-system has no UID")
	}
	return &management{clusterTarget: t, uid: system.UID}, nil
}

// at returns the options of the same user for another kubeconfig or another context.
func (g *global) at(kubeconfig, context string) *global {
	other, flags := *g, genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Context = &kubeconfig, &context
	flags.Timeout, flags.CacheDir = g.flags.Timeout, g.flags.CacheDir
	flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup = g.flags.Impersonate, g.flags.ImpersonateUID, g.flags.ImpersonateGroup
	other.flags = flags
	return &other
}

// podOf returns what prevents the pod of a Deployment from running. It returns "" if there is nothing, if there is no such Deployment, or if the user
// may not get it: then conditions have to do.
func (m *management) podOf(ctx context.Context, deployment client.ObjectKey) (string, error) {
	err := m.Get(ctx, deployment, &appsv1.Deployment{})
	state := ""
	if err == nil {
		state, err = m.podStateIn(ctx, deployment.Namespace, deployment.Name)
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	return state, err
}
