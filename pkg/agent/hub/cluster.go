// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// ClusterConfig is the configuration of the ManagedCluster of an agent.
type ClusterConfig struct {
	// Name may be empty: then the name in the secret is used, or one that is derived from the cluster's ID.
	Name string
	// ServerURL is the https URL of the cluster's API server, for users of the hub, and ServerCA its CA certificates, PEM. Both may be empty.
	ServerURL string
	ServerCA  []byte
	// Addresses are additional addresses.
	Addresses []clusterv1.ClientConfig
	// Annotations are the annotations of the flags.
	Annotations map[string]string
	// LeaseSeconds is the lease duration of a new cluster. Afterwards the hub's value is used.
	LeaseSeconds int32
}

// New returns a new ManagedCluster. identity are the annotations that tell the hub about the agent's identity.
func (c *ClusterConfig) New(name string, identity map[string]string) *clusterv1.ManagedCluster {
	annotations := maps.Clone(identity)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, c.Annotations)
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: clusterv1.ManagedClusterSpec{
			ManagedClusterClientConfigs: c.clientConfigs(nil),
			LeaseDurationSeconds:        c.LeaseSeconds,
		},
	}
}

// Update returns the ManagedCluster with the values of the flags, which may have changed, and whether that changes it. The agent may not change the
// annotations about its identity any more: they stay as they were created.
func (c *ClusterConfig) Update(have *clusterv1.ManagedCluster) (next *clusterv1.ManagedCluster, changed bool) {
	next = have.DeepCopy()
	for key, value := range c.Annotations {
		if !registration.IsHubAnnotation(key) {
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, key, value)
		}
	}
	next.Spec.ManagedClusterClientConfigs = c.clientConfigs(next.Spec.ManagedClusterClientConfigs)
	return next, !maps.Equal(next.Annotations, have.Annotations) ||
		!sameConfigs(next.Spec.ManagedClusterClientConfigs, have.Spec.ManagedClusterClientConfigs)
}

// clientConfigs merges the addresses of the cluster's API server into those on the hub, which other clients may have added.
func (c *ClusterConfig) clientConfigs(have []clusterv1.ClientConfig) []clusterv1.ClientConfig {
	var own []clusterv1.ClientConfig
	if c.ServerURL != "" {
		own = append(own, clusterv1.ClientConfig{URL: c.ServerURL, CABundle: c.ServerCA})
	}
	own = append(own, c.Addresses...)
	if len(own) == 0 {
		return have
	}
	configs := slices.Clone(have)
	for _, address := range own {
		same := func(config clusterv1.ClientConfig) bool { return config.URL == address.URL }
		if i := slices.IndexFunc(configs, same); i >= 0 {
			configs[i] = address
		} else {
			configs = append(configs, address)
		}
	}
	return configs
}

func sameConfigs(a, b []clusterv1.ClientConfig) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].URL != b[i].URL || !bytes.Equal(a[i].CABundle, b[i].CABundle) {
			return false
		}
	}
	return true
}
