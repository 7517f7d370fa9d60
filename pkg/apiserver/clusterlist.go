// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/base64"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// appendCluster appends a cluster of a list as its version v1, after its beginning.
func appendCluster(out []byte, c *cluster.ManagedCluster) ([]byte, error) {
	out, err := appendMeta(out, &c.ObjectMeta)
	if err != nil {
		return nil, err
	}
	out = append(out, `,"spec":{`...)
	if len(c.Spec.ManagedClusterClientConfigs) > 0 {
		out = append(out, `"managedClusterClientConfigs":[`...)
		for i := range c.Spec.ManagedClusterClientConfigs {
			config := &c.Spec.ManagedClusterClientConfigs[i]
			out = append(separate(out), `{"url":`...)
			out = appendString(out, config.URL)
			if len(config.CABundle) > 0 {
				out = append(out, `,"caBundle":"`...)
				out = base64.StdEncoding.AppendEncode(out, config.CABundle)
				out = append(out, '"')
			}
			out = append(out, '}')
		}
		out = append(out, ']')
	}
	out = append(separate(out), `"hubAcceptsClient":`...)
	out = strconv.AppendBool(out, c.Spec.HubAcceptsClient)
	if c.Spec.LeaseDurationSeconds != 0 {
		out = append(out, `,"leaseDurationSeconds":`...)
		out = strconv.AppendInt(out, int64(c.Spec.LeaseDurationSeconds), 10)
	}
	if len(c.Spec.Taints) > 0 {
		out = append(out, `,"taints":[`...)
		for i := range c.Spec.Taints {
			taint := &c.Spec.Taints[i]
			out = append(separate(out), `{"key":`...)
			out = appendString(out, taint.Key)
			out = appendField(out, `"value":`, taint.Value)
			out = append(out, `,"effect":`...)
			out = appendString(out, string(taint.Effect))
			out = append(out, `,"timeAdded":`...)
			out = appendTime(out, &taint.TimeAdded)
			out = append(out, '}')
		}
		out = append(out, ']')
	}
	out = append(out, `},"status":{`...)
	out, err = appendStatus(out, &c.Status)
	if err != nil {
		return nil, err
	}
	return append(out, "}}"...), nil
}

func appendStatus(out []byte, s *cluster.ManagedClusterStatus) ([]byte, error) {
	out = appendConditions(out, s.Conditions)
	var err error
	out, err = appendResources(out, `"capacity":{`, s.Capacity)
	if err != nil {
		return nil, err
	}
	out, err = appendResources(out, `"allocatable":{`, s.Allocatable)
	if err != nil {
		return nil, err
	}
	out = append(separate(out), `"version":{`...)
	out = appendField(out, `"kubernetes":`, s.Version.Kubernetes)
	out = append(out, '}')
	if len(s.ClusterClaims) > 0 {
		out = append(out, `,"clusterClaims":[`...)
		for i := range s.ClusterClaims {
			out = append(separate(out), '{')
			out = appendField(out, `"name":`, s.ClusterClaims[i].Name)
			out = appendField(out, `"value":`, s.ClusterClaims[i].Value)
			out = append(out, '}')
		}
		out = append(out, ']')
	}
	if len(s.ManagedNamespaces) > 0 {
		out = append(out, `,"managedNamespaces":[`...)
		for i := range s.ManagedNamespaces {
			namespace := &s.ManagedNamespaces[i]
			out = append(separate(out), `{"name":`...)
			out = appendString(out, namespace.Name)
			out = append(out, `,"clusterSet":`...)
			out = appendString(out, namespace.ClusterSet)
			out = appendConditions(out, namespace.Conditions)
			out = append(out, '}')
		}
		out = append(out, ']')
	}
	return out, nil
}

func appendConditions(out []byte, conditions []metav1.Condition) []byte {
	if len(conditions) == 0 {
		return out
	}
	out = append(separate(out), `"conditions":[`...)
	for i := range conditions {
		c := &conditions[i]
		out = append(separate(out), `{"type":`...)
		out = appendString(out, c.Type)
		out = append(out, `,"status":`...)
		out = appendString(out, string(c.Status))
		if c.ObservedGeneration != 0 {
			out = append(out, `,"observedGeneration":`...)
			out = strconv.AppendInt(out, c.ObservedGeneration, 10)
		}
		out = append(out, `,"lastTransitionTime":`...)
		out = appendTime(out, &c.LastTransitionTime)
		out = append(out, `,"reason":`...)
		out = appendString(out, c.Reason)
		out = append(out, `,"message":`...)
		out = appendString(out, c.Message)
		out = append(out, '}')
	}
	return append(out, ']')
}

func appendResources(out []byte, name string, resources cluster.ResourceList) ([]byte, error) {
	if len(resources) == 0 {
		return out, nil
	}
	out = append(separate(out), name...)
	for _, key := range sortedKeys(resources, nil) {
		value, err := resources[key].MarshalJSON()
		if err != nil {
			return nil, err
		}
		out = appendString(separate(out), string(key))
		out = append(append(out, ':'), value...)
	}
	return append(out, '}'), nil
}
