// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// fieldSelectors are the supported field selectors of each kind, in addition to its name and namespace.
var fieldSelectors = map[string][]string{
	"EdgeNode":          {"spec.nodeType", "spec.pattern", "status.namespace"},
	"EdgeService":       {"spec.arch", "spec.url", "spec.version"},
	"DeploymentPolicy":  {"spec.service.name", "spec.service.org"},
	"DeploymentPattern": nil,
	"EdgePlacement":     {"spec.node", "spec.origin.kind", "spec.origin.name", "status.state"},
}

func init() {
	localSchemeBuilder.Register(RegisterDefaults, addFieldLabelConversions)
}

// addFieldLabelConversions registers the supported field selectors.
func addFieldLabelConversions(scheme *runtime.Scheme) error {
	for kind, fields := range fieldSelectors {
		known := []string{"metadata.name"}
		if kind != "EdgeNode" {
			known = append(known, "metadata.namespace")
		}
		known = append(known, fields...)
		err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind(kind), func(label, value string) (string, string, error) {
			if slices.Contains(known, label) {
				return label, value, nil
			}
			return "", "", fmt.Errorf("%q is not a field selector of %s: use one of %s", label, kind, strings.Join(known, ", "))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
