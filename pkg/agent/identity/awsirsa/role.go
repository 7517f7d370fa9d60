// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// role is an IAM role in the hub's account, which the hub creates once it has accepted the cluster, and which the agent's own IAM role may assume.
type role struct {
	agent   identity.Agent
	roles   irsa.Identity
	command string
	tokens  *Tokens

	said repeat.Said
}

var _ identity.Identity = &role{}

// Prepare implements identity.Identity.
func (i *role) Prepare(context.Context) error { return nil }

// Annotations implements identity.Identity. The ARN is set under two names: upstream's, which is also ours, and that of the specification.
func (i *role) Annotations(state.State) (map[string]string, error) {
	arn := i.roles.Managed.String()
	return map[string]string{
		registration.AnnotationManagedClusterARN:       arn,
		registration.AnnotationManagedClusterARNOfSeed: arn,
		registration.AnnotationRoleSuffix:              i.roles.Suffix(),
	}, nil
}

// Requested implements identity.Identity. It always returns true: no request is needed, since the hub creates the role by itself.
func (i *role) Requested(state.State) bool { return true }

// Step implements identity.Identity. It checks whether the hub accepts the role, since bootstrap kubeconfigs need not have the right to read the
// ManagedCluster.
func (i *role) Step(ctx context.Context, by identity.Bootstrap) (bool, error) {
	s := i.agent.Store.Get()
	kubeconfig, err := hub.Kubeconfig(by.Kubeconfig, s.ClusterName, i.User())
	if err != nil {
		return false, err
	}
	config, err := i.Config(s, kubeconfig)
	if err != nil {
		return false, err
	}
	h, err := i.agent.Connect(config)
	if err != nil {
		return false, err
	}
	_, err = h.Clusters.ClusterV1().ManagedClusters().Get(ctx, s.ClusterName, metav1.GetOptions{})
	switch {
	case err == nil:
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		// This is expected until the cluster is accepted. Afterwards the log must show it.
		if i.said.Again("role", err.Error()) {
			klog.FromContext(ctx).Info("The hub does not authorize the agent's role yet", "role", i.roles.HubRoleARN(), "reason", err.Error())
		}
		return false, nil
	default:
		return false, fmt.Errorf("connecting to the hub with the role %s: %w", i.roles.HubRoleARN(), err)
	}
	_, err = i.agent.Store.Update(ctx, func(to *state.State) {
		to.Kubeconfig, to.ClusterName, to.AgentName = kubeconfig, s.ClusterName, s.AgentName
		// These are left of a registration by certificate.
		to.Cert, to.Key, to.NextKey, to.NextCSR, to.RegisteredKey = nil, nil, nil, "", ""
	})
	return err == nil, err
}

// Usable implements identity.Identity.
func (i *role) Usable(s state.State) error {
	if len(s.Kubeconfig) == 0 {
		return errors.New("there is no kubeconfig for the hub")
	}
	if len(s.Cert) > 0 {
		return errors.New("the identity in the secret is a certificate")
	}
	return nil
}

// Maintain implements identity.Identity. Nothing needs to be renewed: tokens are created on demand.
func (i *role) Maintain(ctx context.Context, _ *hub.Hub) error {
	<-ctx.Done()
	return ctx.Err()
}

// User implements identity.Identity.
func (i *role) User() *clientcmdapi.AuthInfo {
	hub, role := i.roles.Hub, i.roles.HubRoleARN()
	exec := &clientcmdapi.ExecConfig{
		APIVersion:      "client.authentication.k8s.io/v1",
		Command:         tokenCommandOwn,
		Args:            []string{"eks-token", "--cluster-name", hub.Name, "--region", hub.Region, "--role-arn", role},
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	if i.command == tokenCommandAWS {
		exec.APIVersion = "client.authentication.k8s.io/v1beta1" // the version that every release of the aws CLI supports
		exec.Command = tokenCommandAWS
		exec.Args = []string{"--region", hub.Region, "eks", "get-token", "--cluster-name", hub.Name, "--output", "json",
			"--role-arn", role}
	}
	return &clientcmdapi.AuthInfo{Exec: exec}
}

// TokensOf returns the Tokens for the user of a kubeconfig who gets them by a command. It does not run the command, which may not exist.
func TokensOf(kubeconfig []byte) (*Tokens, error) {
	tokens := &Tokens{}
	_, err := hub.IdentityConfig(kubeconfig, func(user *clientcmdapi.AuthInfo) {
		for i := 1; user.Exec != nil && i < len(user.Exec.Args); i++ {
			switch value := user.Exec.Args[i]; user.Exec.Args[i-1] {
			case "--cluster-name":
				tokens.Cluster = value
			case "--region":
				tokens.Region = value
			case "--role-arn", "--role": // the AWS CLI accepts both, and writes the second
				tokens.RoleARN = value
			}
		}
		*user = clientcmdapi.AuthInfo{} // it is not used, and may name files that do not exist here
	})
	if err == nil && (tokens.Cluster == "" || tokens.Region == "" || tokens.RoleARN == "") {
		err = fmt.Errorf("the kubeconfig of secret %s names no EKS cluster, region and role", registration.HubKubeconfigSecret)
	}
	return tokens, err
}

// Config implements identity.Identity. It creates the tokens in this process, whatever command the kubeconfig names for others.
func (i *role) Config(_ state.State, kubeconfig []byte) (*rest.Config, error) {
	config, err := hub.IdentityConfig(kubeconfig, func(user *clientcmdapi.AuthInfo) { *user = clientcmdapi.AuthInfo{} })
	if err != nil {
		return nil, err
	}
	config.Wrap(i.tokens.wrap)
	return config, nil
}
