// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

func init() {
	localSchemeBuilder.Register(addFieldLabelConversions)
}

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("ClusterSetMember"),
		func(label, value string) (string, string, error) {
			switch label {
			case "metadata.name", "spec.clusterSet", "spec.cluster":
				return label, value, nil
			}
			return "", "", fmt.Errorf("%q is not a field selector of clustersetmembers: use metadata.name, spec.clusterSet or spec.cluster", label)
		})
}
