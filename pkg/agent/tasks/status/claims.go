// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Claims that the agent makes itself. A ClusterClaim of the same name has priority.
const (
	claimID       = "id.k8s.io"
	claimVersion  = "kubeversion.open-cluster-management.io"
	claimPlatform = "platform.open-cluster-management.io"
	claimProduct  = "product.open-cluster-management.io"
	claimRegion   = "region.open-cluster-management.io"
)

// Claims configures which ClusterClaims of the managed cluster are reported to the hub, beside those that the agent makes itself.
type Claims struct {
	// Most is their maximum number.
	Most int
	// Reserved are suffixes of the names of those that do not count towards Most.
	Reserved []string
}

func (c Claims) reserved(name string) bool {
	return slices.ContainsFunc(c.Reserved, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

const (
	// maxClaim is the maximum length of the value of a claim, and maxName that of its name.
	maxClaim, maxName = 1024, 253
	// maxRead is the maximum number of ClusterClaims that are read: a cluster that is not trusted may have any number of them.
	maxRead = 10_000
)

var clusterClaims = schema.GroupVersionResource{
	Group: "cluster.open-cluster-management.io", Version: "v1alpha1", Resource: "clusterclaims"}

// clusterClaims returns the ClusterClaims of the cluster; a cluster without their CRD has none.
func (f *spokeFacts) clusterClaims(ctx context.Context) (map[string]string, error) {
	claims, read := map[string]string{}, 0
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := f.spoke.Dynamic.Resource(clusterClaims).List(ctx, forHub(options))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return claims, nil
		}
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			value, _, err := unstructured.NestedString(item.Object, "spec", "value")
			if err == nil && value != "" && len(item.GetName()) <= maxName {
				// A value that is too long is cut, but stays recognizable as too long.
				claims[item.GetName()] = strings.Clone(value[:min(len(value), maxClaim+1)])
			}
		}
		read += len(list.Items)
		if read > maxRead {
			return nil, fmt.Errorf("the cluster has more than %d ClusterClaims, the maximum that the agent reads", maxRead)
		}
		options.Continue = list.GetContinue()
		if options.Continue == "" {
			return claims, nil
		}
	}
}

// mergeClaims returns all claims in a stable order, so that unchanged claims are not written. ClusterClaims beside those that the agent makes itself
// are limited as configured, and all claims together by what the hub accepts: it would reject all of them.
func (f *spokeFacts) mergeClaims(ctx context.Context, own, product map[string]string) []clusterv1.ManagedClusterClaim {
	var skipped []string
	all, taken := maps.Clone(product), 0
	for _, name := range slices.Sorted(maps.Keys(own)) {
		_, known := product[name]
		counts := !known && !f.claims.reserved(name)
		switch {
		case registration.IsAgentClaim(name):
			continue // only the agent makes this claim, and not the cluster
		case len(own[name]) > maxClaim, counts && taken >= f.claims.Most, !known && len(all) >= cluster.MaxClusterClaims-registration.MaxAgentClaims:
			skipped = append(skipped, name)
			continue
		case counts:
			taken++
		}
		// This is how the hub stores it: otherwise the two would differ forever.
		all[name] = bounds.Plain(own[name])
	}
	text := strings.Join(skipped, " ")
	if f.skipped.Again("skipped", text) && text != "" {
		klog.FromContext(ctx).Info("ClusterClaims are not reported to the hub: there are too many, or their values are too long",
			"most", f.claims.Most, "longest", maxClaim, "claims", shorten(text, maxMessage))
	}
	claims := make([]clusterv1.ManagedClusterClaim, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		claims = append(claims, clusterv1.ManagedClusterClaim{Name: name, Value: all[name]})
	}
	return claims
}

// withAgents adds the claims that the agent makes about itself. It returns nil if claims are not known.
func withAgents(claims []clusterv1.ManagedClusterClaim, agents map[string]string) []clusterv1.ManagedClusterClaim {
	if claims == nil {
		return nil
	}
	for name, value := range agents {
		claims = append(claims, clusterv1.ManagedClusterClaim{Name: name, Value: value})
	}
	slices.SortFunc(claims, func(a, b clusterv1.ManagedClusterClaim) int { return strings.Compare(a.Name, b.Name) })
	return claims
}

// productClaims returns the claims that follow from the cluster's version and nodes. An empty ID or version is not known.
func productClaims(id, version string, nodes []*corev1.Node) map[string]string {
	claims := map[string]string{claimProduct: productOf(version)}
	if id != "" {
		claims[claimID] = id
	}
	if version != "" {
		claims[claimVersion] = version
	}
	if node := firstByName(nodes); node != nil {
		claims[claimPlatform] = platformOf(node.Spec.ProviderID)
		if region := node.Labels[corev1.LabelTopologyRegion]; region != "" {
			claims[claimRegion] = region
		}
	}
	maps.DeleteFunc(claims, func(_, value string) bool { return len(value) > maxClaim }) // the cluster controls these values
	return claims
}

// firstByName returns the first node by name, which is the same every time.
func firstByName(nodes []*corev1.Node) *corev1.Node {
	if len(nodes) == 0 {
		return nil
	}
	return slices.MinFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
}

func productOf(version string) string {
	for _, p := range []struct{ part, product string }{
		{"-eks-", "EKS"}, {"-gke.", "GKE"}, {"+k3s", "K3S"}, {"+rke2", "RKE2"}, {"+IKS", "IKS"}, {"-aliyun", "ACK"},
	} {
		if strings.Contains(version, p.part) {
			return p.product
		}
	}
	return "Other"
}

func platformOf(providerID string) string {
	scheme, _, _ := strings.Cut(providerID, ":")
	switch scheme {
	case "aws":
		return "AWS"
	case "azure":
		return "Azure"
	case "gce":
		return "GCP"
	case "ibm":
		return "IBM"
	case "openstack":
		return "OpenStack"
	case "vsphere":
		return "VSphere"
	}
	return "Other"
}
