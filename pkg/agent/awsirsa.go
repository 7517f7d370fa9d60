// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Which command the kubeconfig in the secret gets its tokens by.
const (
	tokenCommandOwn = "hub-agent"
	tokenCommandAWS = "aws"
)

// awsIdentity is an IAM role in the hub's account, which the hub makes once it has accepted the cluster, and which the
// agent's own IAM role may assume.
type awsIdentity struct {
	store   *store
	roles   irsa.Identity
	command string
	tokens  *eksTokens
	connect func(*rest.Config) (*hub, error)

	said said
}

var _ identity = &awsIdentity{}

func (i *awsIdentity) prepare(context.Context) error { return nil }

// annotations have the ARN under both names: ours and upstream's, and the specification's.
func (i *awsIdentity) annotations(state) (map[string]string, error) {
	arn := i.roles.Managed.String()
	return map[string]string{
		registration.AnnotationManagedClusterARN:       arn,
		registration.AnnotationManagedClusterARNOfSeed: arn,
		registration.AnnotationRoleSuffix:              i.roles.Suffix(),
	}, nil
}

// asked is always so: there is nothing to ask for, the hub makes the role by itself.
func (i *awsIdentity) asked(state) bool { return true }

// step tries whether the hub lets the role in: bootstrap kubeconfigs need not be allowed to look at the cluster.
func (i *awsIdentity) step(ctx context.Context, bootstrap *clientcmdapi.Config, _ *hub) (bool, error) {
	s := i.store.get()
	kubeconfig, err := hubKubeconfig(bootstrap, s.clusterName, i.user())
	if err != nil {
		return false, err
	}
	config, err := i.config(s, kubeconfig)
	if err != nil {
		return false, err
	}
	h, err := i.connect(config)
	if err != nil {
		return false, err
	}
	_, err = h.clusters.ClusterV1().ManagedClusters().Get(ctx, s.clusterName, metav1.GetOptions{})
	switch {
	case err == nil:
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		// As long as the cluster is not accepted this is as it should be. Afterwards somebody will want to know.
		if i.said.again("role", err.Error()) {
			klog.FromContext(ctx).Info("The hub does not let the agent's role in yet", "role", i.roles.HubRoleARN(), "reason", err.Error())
		}
		return false, nil
	default:
		return false, fmt.Errorf("trying the role %s: %w", i.roles.HubRoleARN(), err)
	}
	_, err = i.store.update(ctx, func(to *state) {
		to.kubeconfig, to.clusterName, to.agentName = kubeconfig, s.clusterName, s.agentName
		// What a registration by certificate has left.
		to.cert, to.key, to.nextKey, to.nextCSR, to.registeredKey = nil, nil, nil, "", ""
	})
	return err == nil, err
}

func (i *awsIdentity) usable(s state) error {
	if len(s.kubeconfig) == 0 {
		return errors.New("there is no kubeconfig for the hub")
	}
	if len(s.cert) > 0 {
		return errors.New("the identity in the secret is a certificate")
	}
	return nil
}

// keep has nothing to renew: a token is made when it is needed.
func (i *awsIdentity) keep(ctx context.Context, _ *hub) error {
	<-ctx.Done()
	return ctx.Err()
}

func (i *awsIdentity) user() *clientcmdapi.AuthInfo {
	hub, role := i.roles.Hub, i.roles.HubRoleARN()
	exec := &clientcmdapi.ExecConfig{
		APIVersion:      "client.authentication.k8s.io/v1",
		Command:         tokenCommandOwn,
		Args:            []string{"eks-token", "--cluster-name", hub.Name, "--region", hub.Region, "--role-arn", role},
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	if i.command == tokenCommandAWS {
		exec.APIVersion = "client.authentication.k8s.io/v1beta1" // the one that every release of the aws CLI knows
		exec.Command = tokenCommandAWS
		exec.Args = []string{"--region", hub.Region, "eks", "get-token", "--cluster-name", hub.Name, "--output", "json",
			"--role-arn", role}
	}
	return &clientcmdapi.AuthInfo{Exec: exec}
}

// tokensOf makes the tokens that the user of a kubeconfig gets by a command, without running it: the command may be one
// that is not there.
func tokensOf(kubeconfig []byte) (*eksTokens, error) {
	tokens := &eksTokens{}
	_, err := hubRESTConfig(kubeconfig, func(user *clientcmdapi.AuthInfo) {
		for i := 1; user.Exec != nil && i < len(user.Exec.Args); i++ {
			switch value := user.Exec.Args[i]; user.Exec.Args[i-1] {
			case "--cluster-name":
				tokens.cluster = value
			case "--region":
				tokens.region = value
			case "--role-arn", "--role": // the AWS CLI writes the second
				tokens.roleARN = value
			}
		}
	})
	if err == nil && (tokens.cluster == "" || tokens.region == "" || tokens.roleARN == "") {
		err = fmt.Errorf("the kubeconfig of secret %s names no EKS cluster, region and role", registration.HubKubeconfigSecret)
	}
	return tokens, err
}

// config makes the tokens in this process, whatever the command for others.
func (i *awsIdentity) config(_ state, kubeconfig []byte) (*rest.Config, error) {
	config, err := hubRESTConfig(kubeconfig, func(user *clientcmdapi.AuthInfo) { *user = clientcmdapi.AuthInfo{} })
	if err != nil {
		return nil, err
	}
	config.Wrap(i.tokens.wrap)
	return config, nil
}
