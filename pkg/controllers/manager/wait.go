// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	pollInterval = time.Second
	// remindAfter is the number of polls after which the log repeats what is still missing.
	remindAfter = 30
)

// groups are the groups of hub-apiserver. The others are available as soon as the hub's kube-apiserver is.
var groups = []string{clusterv1.GroupName, viewv1alpha1.GroupName, openmcpv1alpha1.GroupName, workv1.GroupName, edgev1alpha1.GroupName}

// watched returns the resources that must be served before the controllers start.
func watched(controllers []kit.Controller) (resources []schema.GroupVersionResource) {
	for _, controller := range controllers {
		for _, right := range controller.Rights {
			resource := right.WithResource(right.Resource)
			// A permission that is granted to others has no version: it is not used.
			if right.Version != "" && slices.Contains(groups, right.Group) && slices.Contains(right.Verbs, "watch") && !slices.Contains(resources, resource) {
				resources = append(resources, resource)
			}
		}
	}
	return resources
}

// kindMapper maps resources to kinds as the controllers' clients do.
type kindMapper interface {
	KindFor(schema.GroupVersionResource) (schema.GroupVersionKind, error)
}

// waitUntilServed returns once all resources are served, or with an error when the context ends. It logs a line whenever the reason to wait
// changes.
func waitUntilServed(ctx context.Context, served discovery.ServerResourcesInterface, mapper kindMapper,
	resources []schema.GroupVersionResource, interval time.Duration) error {
	logger := klog.FromContext(ctx)
	last, repeated := "", 0
	err := wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		reason := missing(served, mapper, resources)
		if reason == "" {
			return true, nil
		}
		if reason != last || repeated == remindAfter {
			logger.Info("Waiting for hub-apiserver to serve its APIs", "reason", reason)
			last, repeated = reason, 0
		}
		repeated++
		return false, nil
	})
	if err == nil && last != "" {
		logger.Info("hub-apiserver serves its APIs")
	}
	return err
}

// missing returns a resource that is not served and why, or "" if all are.
func missing(served discovery.ServerResourcesInterface, mapper kindMapper, resources []schema.GroupVersionResource) string {
	for _, resource := range resources {
		groupVersion := resource.GroupVersion().String()
		list, err := served.ServerResourcesForGroupVersion(groupVersion)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("%s is not served: is its APIService registered?", groupVersion)
		case err != nil:
			return fmt.Sprintf("%s: %s", groupVersion, strings.TrimSpace(err.Error()))
		case !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == resource.Resource
		}):
			return fmt.Sprintf("%s has no %s", groupVersion, resource.Resource)
		}
		// The mapper uses the aggregated discovery of the front, which is updated a moment later.
		if _, err := mapper.KindFor(resource); err != nil {
			return fmt.Sprintf("the discovery of the hub's kube-apiserver: %s", strings.TrimSpace(err.Error()))
		}
	}
	return ""
}
