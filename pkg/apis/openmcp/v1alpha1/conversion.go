// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// fieldSelectors are the fields that each kind can be selected by, besides its name and its namespace.
var fieldSelectors = map[string][]string{
	"ClusterProfile": {"spec.providerConfigRef.name", "spec.providerRef.name"},
	"Cluster":        {"spec.profile"},
	"ClusterRequest": {"spec.purpose", "status.phase"},
	"AccessRequest":  {"spec.clusterRef.name", "spec.clusterRef.namespace", "status.phase"},
}

func init() {
	localSchemeBuilder.Register(addFieldLabelConversions)
}

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	for kind, fields := range fieldSelectors {
		known := []string{"metadata.name"}
		if kind != "ClusterProfile" {
			known = append(known, "metadata.namespace")
		}
		known = append(known, fields...)
		err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind(kind), func(label, value string) (string, string, error) {
			if slices.Contains(known, label) {
				return label, value, nil
			}
			return "", "", fmt.Errorf("%q is not a field selector of %ss: use one of %s",
				label, strings.ToLower(kind), strings.Join(known, ", "))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
