// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answers reads the objects of a hub with the permissions of its user, and has the packages diagnosis and doctor explain what is wrong and
// why. It is shared by `kubectl hub why`, `kubectl hub doctor` and the page. It writes nothing.
package answers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/clusterview"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

// HubView is a hub as a user sees it.
type HubView struct {
	kube     kubernetes.Interface
	clusters versioned.Interface
	objects  dynamic.Interface
}

// New returns the hub of a configuration, with the permissions of its user.
func New(config *rest.Config) (*HubView, error) {
	client, err := Client(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	h := &HubView{}
	h.kube, err = kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	h.clusters, err = versioned.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	h.objects, err = dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	return h, nil
}

// NotServedError reports that the server does not serve the API of a hub.
type NotServedError struct{ Err error }

// Error implements error.
func (e *NotServedError) Error() string { return "the API of a hub is not served: " + e.Err.Error() }

// Unwrap supports errors.Is and errors.As.
func (e *NotServedError) Unwrap() error { return e.Err }

// ServesClusters sends a request to the server, and uses no cached discovery.
func ServesClusters(client discovery.ServerResourcesInterface) error {
	list, err := client.ServerResourcesForGroupVersion(clusterv1.SchemeGroupVersion.String())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "managedclusters" }) {
		return apierrors.NewNotFound(clusterv1.SchemeGroupVersion.WithResource("managedclusters").GroupResource(), "")
	}
	return nil
}

// Reach reads clusters as managedclusters and, if that is forbidden, as managedclusters of clusterview: there, roles on sets replace permissions on
// the names of clusters. If both are forbidden, the error begins with the first, which users know.
func Reach[T any](stored, viewed func() (T, error)) (T, error) {
	result, err := stored()
	if !apierrors.IsForbidden(err) {
		return result, err
	}
	seen, viewErr := viewed()
	switch {
	case apierrors.IsForbidden(viewErr):
		return result, fmt.Errorf("%w (nor by a role on a set: %w)", err, viewErr)
	case apierrors.IsNotFound(viewErr), apierrors.IsMethodNotSupported(viewErr): // by an older hub
		return result, err
	}
	return seen, viewErr
}

// Cluster gets a cluster in one of the ways in which the user can access it.
func (h *HubView) Cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	return Reach(func() (*clusterv1.ManagedCluster, error) {
		return h.clusters.ClusterV1().ManagedClusters().Get(ctx, name, metav1.GetOptions{})
	}, func() (*clusterv1.ManagedCluster, error) {
		view := schema.GroupVersionResource{Group: clusterview.GroupName, Version: "v1", Resource: "managedclusters"}
		return AsCluster(h.objects.Resource(view).Get(ctx, name, metav1.GetOptions{}))
	})
}

// AsCluster converts a cluster of clusterview, which has the fields of a stored one.
func AsCluster(u *unstructured.Unstructured, err error) (*clusterv1.ManagedCluster, error) {
	if err != nil {
		return nil, err
	}
	cluster := &clusterv1.ManagedCluster{}
	return cluster, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cluster)
}

// service checks whether the API of the hub is served. If it is not, nothing else can be read, and this is the answer.
func (h *HubView) service(ctx context.Context, cluster string) (*diagnosis.ClusterFacts, error) {
	facts := &diagnosis.ClusterFacts{Name: cluster, Now: time.Now(), Service: clusterv1.SchemeGroupVersion.Version + "." + clusterv1.SchemeGroupVersion.Group}
	err := ServesClusters(h.kube.Discovery())
	if err == nil {
		return facts, nil
	}
	if !apierrors.IsServiceUnavailable(err) {
		return nil, &NotServedError{err}
	}
	services := h.objects.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	facts.ServiceFault = "the front kube-apiserver returned 503 for it"
	if service, err := services.Get(ctx, facts.Service, metav1.GetOptions{}); err == nil {
		facts.ServiceFault, facts.ServiceSince = serviceFault(service, facts.ServiceFault)
	}
	return facts, nil
}

// asRead converts the response of a server to a Read. It returns an error unless it means that the object does not exist or that the user may not see
// it.
func asRead[T any](value T, err error, what string) (diagnosis.Read[T], error) {
	switch {
	case err == nil:
		return diagnosis.Found(value), nil
	case apierrors.IsForbidden(err):
		return diagnosis.Hidden[T]("you may not " + what), nil
	case apierrors.IsNotFound(err):
		return diagnosis.Missing[T](), nil
	}
	return diagnosis.Read[T]{}, err
}

// setsOf returns the sets of a cluster that the user may see.
func (h *HubView) setsOf(ctx context.Context, cluster string) (diagnosis.Read[[]string], error) {
	sets, options := []string{}, metav1.ListOptions{FieldSelector: "spec.cluster=" + cluster}
	err := paging.EachItem(ctx, h.clusters.ViewV1alpha1().ClusterSetMembers().List, options, func(m *viewv1alpha1.ClusterSetMember) error {
		sets = append(sets, m.Spec.ClusterSet)
		return nil
	})
	slices.Sort(sets)
	return asRead(sets, err, "list clustersetmembers, which show the sets of the cluster")
}

// Explain returns the explanation of a placement, for one cluster or for all.
func (h *HubView) Explain(ctx context.Context, namespace, name, cluster string) (*v1beta1.PlacementExplanation, error) {
	options := &v1beta1.PlacementExplainOptions{Cluster: cluster}
	if cluster == "" {
		options.Limit = 5000 // two pages for a large fleet
	}
	var all *v1beta1.PlacementExplanation
	for {
		page := &v1beta1.PlacementExplanation{}
		err := h.clusters.ClusterV1beta1().RESTClient().Get().Namespace(namespace).Resource("placements").Name(name).SubResource("explain").
			VersionedParams(options, scheme.ParameterCodec).Do(ctx).Into(page)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = page
		} else {
			all.Status.Clusters = append(all.Status.Clusters, page.Status.Clusters...)
		}
		options.Continue = page.Status.Continue
		if options.Continue == "" {
			all.Status.Continue = ""
			all.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "PlacementExplanation"}
			return all, nil
		}
	}
}

// IsMissing reports whether an object of the resource does not exist. It returns false if the server does not serve the resource.
func IsMissing(err error, resource string) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == resource && status.Status().Details.Name != ""
}
