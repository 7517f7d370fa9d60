// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
)

// HubClient is a hub that responds.
type HubClient struct {
	// Config is the configuration of the clients.
	Config *rest.Config
	// Kube is the client for Kubernetes' own kinds, and Clusters the one for the kinds of a hub.
	Kube     kubernetes.Interface
	Clusters versioned.Interface

	asked *answers.HubView
}

// Hub returns the hub that the flags select.
func (o *Options) Hub() (*HubClient, error) {
	config, err := o.RESTConfig()
	if err != nil {
		return nil, err
	}
	h, err := NewHub(config)
	if err != nil {
		return nil, err
	}
	if err := h.Check(); err != nil {
		return nil, ExplainUnreachable(config.Host, err, "check --context and --kubeconfig")
	}
	return h, nil
}

// RESTConfig returns the configuration for the cluster that the flags select. It has no rate limit: a command sends few requests.
func (o *Options) RESTConfig() (*rest.Config, error) {
	config, err := o.ConfigFlags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.WarningHandler = WarningHandler{o}
	return rest.AddUserAgent(config, "kubectl-hub"), nil
}

// WarningHandler prints warnings of a server.
type WarningHandler struct{ *Options }

// HandleWarningHeader implements rest.WarningHandler.
func (w WarningHandler) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" {
		w.Warn("%s", text)
	}
}

// NewHub returns a hub without checking that it responds.
func NewHub(config *rest.Config) (*HubClient, error) {
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
	return &HubClient{Config: config, Kube: kube, Clusters: clusters, asked: asked}, nil
}

// Check returns an error if the cluster is not a hub.
func (h *HubClient) Check() error { return h.ExplainError(servesClusters(h.Kube.Discovery())) }

// ExplainError explains the error of a server that does not serve clusters.
func (h *HubClient) ExplainError(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s is not a hub: it does not serve managedclusters of %s: choose another --context, or deploy a "+
			"hub there first", h.Config.Host, clusterv1.SchemeGroupVersion)
	}
	if apierrors.IsServiceUnavailable(err) {
		return fmt.Errorf("hub-apiserver of %s does not answer: kubectl get apiservice v1.%s says why", h.Config.Host,
			clusterv1.SchemeGroupVersion.Group)
	}
	return err
}

// servesClusters sends a request to the server, and uses no cached discovery.
func servesClusters(client discovery.ServerResourcesInterface) error {
	return answers.ServesClusters(client)
}

// Answers returns the reader that explains the state of objects.
func (h *HubClient) Answers() *answers.HubView { return h.asked }

// Client returns a client for Kubernetes' own kinds.
func (h *HubClient) Client() (client.Client, error) { return client.New(h.Config, client.Options{}) }

// ListClusters lists the clusters in pages, since there may be many.
func (h *HubClient) ListClusters(ctx context.Context, options metav1.ListOptions) (*clusterv1.ManagedClusterList, error) {
	return Reach(h, func(c ManagedClusters) (*clusterv1.ManagedClusterList, error) {
		return paging.List(ctx, c.List, options)
	})
}
