// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/bootstrap"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
)

// agentSecrets are the Secrets of an agent that were read. Those that do not exist are nil.
type agentSecrets struct {
	namespace string
	// external has the source for the managed cluster of a detached agent.
	external  *corev1.Secret
	bootstrap *corev1.Secret
	identity  *corev1.Secret
	// hubs are the names of the Secrets of an agent with several hubs. They are mounted into its pod, and not read here: RBAC would have to let
	// hub-operator read all Secrets.
	hubs []string
}

// readSecrets reads the Secrets of an agent. hubs are the names of the Secrets of several hubs.
func readSecrets(ctx context.Context, c client.Reader, namespace string, isDetached bool, hubs []string) (s agentSecrets, err error) {
	s.namespace, s.hubs = namespace, hubs
	read := func(name string) (*corev1.Secret, error) {
		secret := &corev1.Secret{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return secret, err
	}
	if isDetached {
		s.external, err = read(operatorv1.ExternalManagedKubeconfig)
		if err != nil {
			return s, err
		}
	}
	s.bootstrap, err = read(operatorv1.BootstrapHubKubeconfig)
	if err != nil {
		return s, err
	}
	s.identity, err = read(operatorv1.HubKubeconfigSecret)
	return s, err
}

// source returns the source for the managed cluster, or an error for the user.
func (s agentSecrets) source() (*mint.Source, error) {
	name := s.namespace + "/" + operatorv1.ExternalManagedKubeconfig
	if s.external == nil {
		return nil, fmt.Errorf("the Secret %s does not exist: create it with the key %s, a kubeconfig of an admin of the managed cluster", name, operatorv1.KeyKubeconfig)
	}
	data, ok := s.external.Data[operatorv1.KeyKubeconfig]
	if !ok {
		return nil, fmt.Errorf("the Secret %s has no key %s: put a kubeconfig of an admin of the managed cluster there", name, operatorv1.KeyKubeconfig)
	}
	source, err := mint.Parse(data)
	var refused *mint.Refused
	if errors.As(err, &refused) {
		return nil, fmt.Errorf("key %s of Secret %s is refused (%s): %s", operatorv1.KeyKubeconfig, name, refused.Reason, refused.Message)
	}
	return source, err
}

// ready returns the source, or nil if the agent does not need one, and why the agent cannot run yet: it also needs a kubeconfig of the hub.
func (s agentSecrets) ready() (*mint.Source, error) {
	source, err := s.source()
	if err != nil {
		return nil, err
	}
	if err := s.bootstrapProblem(); err != nil {
		return source, err
	}
	return source, nil
}

func (s agentSecrets) hasIdentity() bool {
	return s.identity != nil && len(s.identity.Data[operatorv1.KeyKubeconfig]) > 0
}

// bootstrapProblem returns why the user's Secret does not lead the agent to its hub. The agent needs the Secret as long as it has no identity.
// Whether the hub accepts the token is reported by the agent: no request is sent to a hub from here.
func (s agentSecrets) bootstrapProblem() error {
	if s.hasIdentity() || len(s.hubs) > 0 {
		return nil
	}
	name := s.namespace + "/" + operatorv1.BootstrapHubKubeconfig
	if s.bootstrap == nil {
		return fmt.Errorf("the Secret %s does not exist: create it with the key %s, a kubeconfig with a bootstrap token of the hub", name, operatorv1.KeyKubeconfig)
	}
	data := s.bootstrap.Data[operatorv1.KeyKubeconfig]
	if len(data) == 0 {
		return fmt.Errorf("the Secret %s has no key %s: put a kubeconfig with a bootstrap token of the hub there", name, operatorv1.KeyKubeconfig)
	}
	if _, err := bootstrap.Parse(data); err != nil {
		return fmt.Errorf("key %s of Secret %s is refused: it %w", operatorv1.KeyKubeconfig, name, err)
	}
	return nil
}

// refusals maps what the agent reports of a hub that rejects it to a text with what to do.
var refusals = map[string]string{
	registration.RefusalNotAccepted: "the hub does not accept the cluster, or no longer, so the agent has no rights there: an admin of the hub can " +
		"accept it (kubectl hub accept); to have the cluster leave, delete the Klusterlet",
	registration.RefusalNoCluster: "the hub forbids the agent to get its ManagedCluster, usually because it was deleted: restart the pods of " +
		"the registration agent to register the cluster again; to have it leave, delete the Klusterlet",
	registration.RefusalUnknown: "the hub does not know the identity of the agent, which requests another one with its bootstrap token: check " +
		"whether the hub is the one that has accepted the cluster, and whether the token in the Secret " + operatorv1.BootstrapHubKubeconfig +
		" is still valid",
}

// refused returns how the hub rejects the agent, as the agent wrote it, or "". The value selects a text, and is never quoted.
func (s agentSecrets) refused() string {
	if s.identity == nil {
		return ""
	}
	return refusals[string(s.identity.Data[registration.KeyRefusal])]
}

// clusterName returns the name that the cluster has on the hub, once it has one.
func (s agentSecrets) clusterName() string {
	if s.identity == nil {
		return ""
	}
	return string(s.identity.Data[registration.KeyClusterName])
}
