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

// NamespacedName is the reference as clients take it.
func (r *ObjectReference) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// NamespacedName is the reference as clients take it, in the namespace of the referring object.
func (r *LocalObjectReference) NamespacedName(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: r.Name}
}

// Get returns the URL of the endpoint with a name, and whether there is one.
func (e Endpoints) Get(name string) (string, bool) {
	for _, endpoint := range e {
		if endpoint.Name == name {
			return endpoint.URL, true
		}
	}
	return "", false
}

// Set gives the endpoint with a name its URL, and adds it if it is not there.
func (e *Endpoints) Set(name, url string) {
	for i := range *e {
		if (*e)[i].Name == name {
			(*e)[i].URL = url
			return
		}
	}
	*e = append(*e, Endpoint{Name: name, URL: url})
}

// SetProviderStatus makes the JSON of a value the provider's own status. The value has to be an object in JSON.
func (s *ClusterStatus) SetProviderStatus(from any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	s.ProviderStatus = &runtime.RawExtension{Raw: data}
	return nil
}

// GetProviderStatus reads the provider's own status. A status that is not there leaves into as it is.
func (s *ClusterStatus) GetProviderStatus(into any) error {
	if s.ProviderStatus == nil || len(s.ProviderStatus.Raw) == 0 {
		return nil
	}
	return json.Unmarshal(s.ProviderStatus.Raw, into)
}

// GetPurposes returns the purposes of the cluster.
func (c *Cluster) GetPurposes() []string { return c.Spec.Purposes }

// GetTenancyCount is the number of ClusterRequests that have the cluster.
func (c *Cluster) GetTenancyCount() int { return c.GetRequestUIDs().Len() }

// GetRequestUIDs are the UIDs of the ClusterRequests that have the cluster, as its finalizers tell.
func (c *Cluster) GetRequestUIDs() sets.Set[string] {
	uids := sets.New[string]()
	for _, finalizer := range c.Finalizers {
		if uid, ok := strings.CutPrefix(finalizer, RequestFinalizerOnClusterPrefix); ok {
			uids.Insert(uid)
		}
	}
	return uids
}

// FinalizerForCluster is the finalizer of a Cluster that tells that this request has it.
func (r *ClusterRequest) FinalizerForCluster() string {
	return RequestFinalizerOnClusterPrefix + string(r.UID)
}

// GetPurposes returns the requested purpose.
func (r *ClusterRequest) GetPurposes() []string { return []string{r.Spec.Purpose} }

// IsPending says that the request is neither granted nor denied yet.
func (s ClusterRequestStatus) IsPending() bool { return isPending(s.Phase) }

// IsGranted says that the request has a cluster.
func (s ClusterRequestStatus) IsGranted() bool { return s.Phase == REQUEST_GRANTED }

// IsDenied says that the request gets no cluster.
func (s ClusterRequestStatus) IsDenied() bool { return s.Phase == REQUEST_DENIED }

// IsPending says that the request is neither granted nor denied yet.
func (s AccessRequestStatus) IsPending() bool { return isPending(s.Phase) }

// IsGranted says that the access is there.
func (s AccessRequestStatus) IsGranted() bool { return s.Phase == REQUEST_GRANTED }

// IsDenied says that there will be no access.
func (s AccessRequestStatus) IsDenied() bool { return s.Phase == REQUEST_DENIED }

func isPending(phase string) bool { return phase == "" || phase == REQUEST_PENDING }
