// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("ManagedCluster"),
		func(label, value string) (string, string, error) {
			switch label {
			case "metadata.name", "spec.hubAcceptsClient":
				return label, value, nil
			}
			return "", "", fmt.Errorf("%q is no field selector of managedclusters: use metadata.name or spec.hubAcceptsClient", label)
		})
}
