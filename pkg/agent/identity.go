// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
)

// requestTimeout is for one request to the hub.
const requestTimeout = 30 * time.Second

// hub is a hub as one identity reaches it.
type hub struct {
	kube     kubernetes.Interface
	clusters clusterclient.Interface
}

func connect(config *rest.Config) (*hub, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	clusters, err := clusterclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &hub{kube: kube, clusters: clusters}, nil
}

// identity is how an agent proves to the hub who it is. All that it remembers is in the secret.
type identity interface {
	// prepare writes what has to be in the secret before the hub hears of the cluster.
	prepare(ctx context.Context) error
	// annotations are what the hub is told when the cluster is made, and later.
	annotations(s state) (map[string]string, error)
	// asked says whether the identity has been asked for; the cluster has to be on the hub before.
	asked(s state) bool
	// step takes the next step towards an identity, with the rights of the bootstrap kubeconfig. It returns true once there is
	// one in the secret, and false when it has to be called again later.
	step(ctx context.Context, bootstrap *clientcmdapi.Config, h *hub) (bool, error)
	// usable says why the identity of the secret is none, or nil.
	usable(s state) error
	// keep renews the identity with itself. It returns nil as soon as there is another in the secret, and an error when the one
	// that there is can be used no longer, or the context has ended.
	keep(ctx context.Context, h *hub) error
	// user is the user of the kubeconfig in the secret, which is for processes that have the secret as files.
	user() *clientcmdapi.AuthInfo
	// config is how this process comes to the hub by a kubeconfig of that kind.
	config(s state, kubeconfig []byte) (*rest.Config, error)
}
