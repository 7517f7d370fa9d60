// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/answers"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
)

// hub is a hub that responds.
type hub struct {
	config   *rest.Config
	kube     kubernetes.Interface
	clusters versioned.Interface
	asked    *answers.HubView
}

// hub returns the hub that the flags select.
func (g *global) hub() (*hub, error) {
	config, err := g.restConfig()
	if err != nil {
		return nil, err
	}
	h, err := newHub(config)
	if err != nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, unreachable(config.Host, err, "check --context and --kubeconfig")
	}
	return h, nil
}

// restConfig returns the configuration for the cluster that the flags select. It has no rate limit: a command sends few requests.
func (g *global) restConfig() (*rest.Config, error) {
	config, err := g.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.WarningHandler = warner{g}
	return rest.AddUserAgent(config, "kubectl-hub"), nil
}

// warner prints warnings of a server.
type warner struct{ *global }

// HandleWarningHeader implements rest.WarningHandler.
func (w warner) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" {
		w.warn("%s", text)
	}
}

func newHub(config *rest.Config) (*hub, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("configuring the connection to the hub: %w", err)
	}
	clusters, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("configuring the connection to the hub: %w", err)
	}
	asked, err := answers.New(config)
	if err != nil {
		return nil, err
	}
	return &hub{config: config, kube: kube, clusters: clusters, asked: asked}, nil
}

// check returns an error if the cluster is not a hub.
func (h *hub) check() error { return h.notAHub(servesClusters(h.kube.Discovery())) }

// notAHub explains the error of a server that does not serve clusters.
func (h *hub) notAHub(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s is not a hub: it does not serve managedclusters of %s: choose another --context, or deploy a "+
			"hub there first", h.config.Host, clusterv1.SchemeGroupVersion)
	}
	if apierrors.IsServiceUnavailable(err) {
		return fmt.Errorf("hub-apiserver of %s does not answer: kubectl get apiservice v1.%s says why", h.config.Host,
			clusterv1.SchemeGroupVersion.Group)
	}
	return err
}

// servesClusters sends a request to the server, and uses no cached discovery.
func servesClusters(client discovery.ServerResourcesInterface) error {
	return answers.ServesClusters(client)
}

// answers returns the reader that explains the state of objects.
func (h *hub) answers() *answers.HubView { return h.asked }

// objects returns a client for Kubernetes' own kinds.
func (h *hub) objects() (client.Client, error) { return client.New(h.config, client.Options{}) }

// listClusters lists the clusters in pages, since there may be many.
func (h *hub) listClusters(ctx context.Context, options metav1.ListOptions) (*clusterv1.ManagedClusterList, error) {
	return reach(h, func(c clusters) (*clusterv1.ManagedClusterList, error) { return paging.List(ctx, c.List, options) })
}
