// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// NamespacedName returns the reference as a NamespacedName.
func (r *ObjectReference) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// NamespacedName returns the reference as a NamespacedName, with the namespace of the referencing object.
func (r *LocalObjectReference) NamespacedName(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: r.Name}
}

// Get returns the URL of the endpoint with a name, and whether it exists.
func (e Endpoints) Get(name string) (string, bool) {
	for _, endpoint := range e {
		if endpoint.Name == name {
			return endpoint.URL, true
		}
	}
	return "", false
}

// Set sets the URL of the endpoint with a name. It adds the endpoint if it does not exist.
func (e *Endpoints) Set(name, url string) {
	for i := range *e {
		if (*e)[i].Name == name {
			(*e)[i].URL = url
			return
		}
	}
	*e = append(*e, Endpoint{Name: name, URL: url})
}

// SetProviderStatus sets the provider's own status to the JSON of a value, which must be a JSON object.
func (s *ClusterStatus) SetProviderStatus(from any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	s.ProviderStatus = &runtime.RawExtension{Raw: data}
	return nil
}

// GetProviderStatus decodes the provider's own status. If it is not set, into is not changed.
func (s *ClusterStatus) GetProviderStatus(into any) error {
	if s.ProviderStatus == nil || len(s.ProviderStatus.Raw) == 0 {
		return nil
	}
	return json.Unmarshal(s.ProviderStatus.Raw, into)
}

// GetPurposes returns the purposes of the cluster.
func (c *Cluster) GetPurposes() []string { return c.Spec.Purposes }

// GetTenancyCount returns the number of ClusterRequests that use the cluster.
func (c *Cluster) GetTenancyCount() int { return c.GetRequestUIDs().Len() }

// GetRequestUIDs returns the UIDs of the ClusterRequests that use the cluster, according to its finalizers.
func (c *Cluster) GetRequestUIDs() sets.Set[string] {
	uids := sets.New[string]()
	for _, finalizer := range c.Finalizers {
		if uid, ok := strings.CutPrefix(finalizer, RequestFinalizerOnClusterPrefix); ok {
			uids.Insert(uid)
		}
	}
	return uids
}

// FinalizerForCluster returns the finalizer of the request on the Cluster that it uses.
func (r *ClusterRequest) FinalizerForCluster() string {
	return RequestFinalizerOnClusterPrefix + string(r.UID)
}

// GetPurposes returns the requested purpose.
func (r *ClusterRequest) GetPurposes() []string { return []string{r.Spec.Purpose} }

// IsPending reports whether the request is neither granted nor denied.
func (s ClusterRequestStatus) IsPending() bool { return isPending(s.Phase) }

// IsGranted reports whether the request has a cluster.
func (s ClusterRequestStatus) IsGranted() bool { return s.Phase == REQUEST_GRANTED }

// IsDenied reports whether the request is denied.
func (s ClusterRequestStatus) IsDenied() bool { return s.Phase == REQUEST_DENIED }

// IsPending reports whether the request is neither granted nor denied.
func (s AccessRequestStatus) IsPending() bool { return isPending(s.Phase) }

// IsGranted reports whether access is granted.
func (s AccessRequestStatus) IsGranted() bool { return s.Phase == REQUEST_GRANTED }

// IsDenied reports whether the request is denied.
func (s AccessRequestStatus) IsDenied() bool { return s.Phase == REQUEST_DENIED }

func isPending(phase string) bool { return phase == "" || phase == REQUEST_PENDING }
