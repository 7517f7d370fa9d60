// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// ClusterFieldLabel maps the field selectors of clusters, in any version, to the internal form.
func ClusterFieldLabel(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "spec.hubAcceptsClient":
		return label, value, nil
	}
	return "", "", fmt.Errorf("%q is not a field selector of managedclusters: use metadata.name or spec.hubAcceptsClient", label)
}

// SetFieldLabel maps the field selectors of sets, in any version, to the internal form. The key and the value of the label that puts a
// cluster into the set are those of spec.clusterSelector.exclusiveLabel for every exclusive set, whatever its selectorType, so that one
// watch can follow all sets that are exclusive on a key, and one list finds the set that has a label.
func SetFieldLabel(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "spec.clusterSelector.exclusiveLabel.key", "spec.clusterSelector.exclusiveLabel.value":
		return label, value, nil
	case "spec.clusterSelector.selectorType":
		switch value {
		case "", "LegacyClusterSetLabel":
			value = string(ExclusiveClusterSetLabel)
		}
		return label, value, nil
	}
	return "", "", fmt.Errorf("%q is not a field selector of managedclustersets: use metadata.name, spec.clusterSelector.selectorType, "+
		"spec.clusterSelector.exclusiveLabel.key or spec.clusterSelector.exclusiveLabel.value", label)
}

// BindingFieldLabel maps the field selectors of bindings, in any version, to the internal form.
func BindingFieldLabel(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "metadata.namespace", "spec.clusterSet":
		return label, value, nil
	}
	return "", "", fmt.Errorf("%q is not a field selector of managedclustersetbindings: use metadata.name, metadata.namespace or spec.clusterSet", label)
}
