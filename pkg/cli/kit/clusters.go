// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/clusterview"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	typedv1 "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
)

// ManagedClusters are the ManagedClusters of a hub by one of the ways in which a user can access them.
type ManagedClusters interface {
	Get(ctx context.Context, name string) (*clusterv1.ManagedCluster, error)
	List(ctx context.Context, options metav1.ListOptions) (*clusterv1.ManagedClusterList, error)
	// Label patches the labels of a cluster. A patch with a resourceVersion applies to that version alone.
	Label(ctx context.Context, name string, patch []byte) (*clusterv1.ManagedCluster, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// Reach calls do with managedclusters and, if that is forbidden, with managedclusters of clusterview. The two have different resourceVersions, so all
// requests of do must use the same one.
func Reach[T any](h *HubClient, do func(ManagedClusters) (T, error)) (T, error) {
	return answers.Reach(func() (T, error) { return do(stored{h.Clusters.ClusterV1().ManagedClusters()}) }, func() (result T, err error) {
		view, err := h.view("v1", "managedclusters")
		if err != nil {
			return result, err
		}
		return do(viewed{view})
	})
}

// view returns a client for a resource of clusterview. Its objects have the fields of the stored ones.
func (h *HubClient) view(version, resource string) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(h.Config)
	if err != nil {
		return nil, fmt.Errorf("configuring the connection to the hub: %w", err)
	}
	return client.Resource(schema.GroupVersionResource{Group: clusterview.GroupName, Version: version, Resource: resource}), nil
}

// ListSets lists all sets or, for a user who may not, the sets that the user may get.
func (h *HubClient) ListSets(ctx context.Context, options metav1.ListOptions) (*v1beta2.ManagedClusterSetList, error) {
	list, err := h.Clusters.ClusterV1beta2().ManagedClusterSets().List(ctx, options)
	if !apierrors.IsForbidden(err) {
		return list, err
	}
	view, viewErr := h.view("v1alpha1", "managedclustersets")
	if viewErr != nil {
		return nil, viewErr
	}
	seen := &v1beta2.ManagedClusterSetList{}
	viewErr = listView(ctx, view, options, seen)
	if viewErr != nil || len(seen.Items) == 0 {
		return nil, err // the error names the missing permission
	}
	return seen, nil
}

// listView lists a view into a list of the stored kind.
func listView(ctx context.Context, view dynamic.ResourceInterface, options metav1.ListOptions, into any) error {
	list, err := view.List(ctx, options)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), into)
}

// stored accesses managedclusters.
type stored struct {
	typedv1.ManagedClusterInterface
}

func (s stored) Get(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	return s.ManagedClusterInterface.Get(ctx, name, metav1.GetOptions{})
}

func (s stored) Label(ctx context.Context, name string, patch []byte) (*clusterv1.ManagedCluster, error) {
	cluster, err := s.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) {
		return cluster, err
	}
	// Some users may change the labels and nothing else.
	cluster, narrow := s.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "label")
	if narrow != nil {
		return nil, err
	}
	return cluster, nil
}

// viewed accesses managedclusters of clusterview, which have the fields of the stored ones.
type viewed struct{ dynamic.ResourceInterface }

// IsView reports whether the clusters are those of clusterview, which has only the clusters in sets that the user may get.
func IsView(c ManagedClusters) bool {
	_, ok := c.(viewed)
	return ok
}

func (v viewed) Get(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	return answers.AsCluster(v.ResourceInterface.Get(ctx, name, metav1.GetOptions{}))
}

func (v viewed) List(ctx context.Context, options metav1.ListOptions) (*clusterv1.ManagedClusterList, error) {
	list := &clusterv1.ManagedClusterList{}
	err := listView(ctx, v.ResourceInterface, options, list)
	if err == nil && len(list.Items) == 0 && options.Continue == "" { // the error names the missing permission
		err = apierrors.NewForbidden(clusterv1.Resource("managedclusters"), "", errors.New("this user may not see any cluster"))
	}
	return list, err
}

func (v viewed) Label(ctx context.Context, name string, patch []byte) (*clusterv1.ManagedCluster, error) {
	return answers.AsCluster(v.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}))
}

// Delete returns a Forbidden error if the user cannot see the cluster, rather than reporting that it does not exist.
func (v viewed) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	err := v.ResourceInterface.Delete(ctx, name, options)
	if apierrors.IsNotFound(err) {
		return apierrors.NewForbidden(clusterv1.Resource("managedclusters"), name, errors.New("this user may not see it"))
	}
	return err
}

// ListMembers returns the members of a set. It returns an error if the set does not exist or is not shown to the user, rather than an empty list.
func (h *HubClient) ListMembers(ctx context.Context, set string) (*viewv1alpha1.ClusterSetMemberList, error) {
	if _, err := h.Clusters.ClusterV1beta2().ManagedClusterSets().Get(ctx, set, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	all, err := paging.List(ctx, h.Clusters.ViewV1alpha1().ClusterSetMembers().List, metav1.ListOptions{FieldSelector: MembersOfSet(set).String()})
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		all.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: viewv1alpha1.SchemeGroupVersion.String(), Kind: "ClusterSetMember"}
	}
	return &viewv1alpha1.ClusterSetMemberList{Items: all.Items}, nil
}

// EachMember calls do for the members that the user may see and that a field selector matches.
func (h *HubClient) EachMember(ctx context.Context, selector fields.Selector, do func(*viewv1alpha1.ClusterSetMember)) error {
	options := metav1.ListOptions{FieldSelector: selector.String()}
	return paging.EachItem(ctx, h.Clusters.ViewV1alpha1().ClusterSetMembers().List, options, func(m *viewv1alpha1.ClusterSetMember) error {
		do(m)
		return nil
	})
}

// MembersOfSet returns the field selector of the ClusterSetMembers of a set.
func MembersOfSet(set string) fields.Selector {
	return fields.OneTermEqualSelector("spec.clusterSet", set)
}
