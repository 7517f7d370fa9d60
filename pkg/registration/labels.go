// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// MostClusterLabels is how many labels an agent may be told to set.
const MostClusterLabels = 16

// DefaultAgentQPS and DefaultAgentBurst are how many requests each client of an agent may send in a second, and at once, where nothing else
// is said. They are what a Klusterlet has by default, too.
const (
	DefaultAgentQPS   = 50
	DefaultAgentBurst = 100
)

// CheckClusterAnnotation says what is wrong with the name of an annotation that an agent is told to put on its cluster.
func CheckClusterAnnotation(key string) error {
	if !strings.HasPrefix(key, AgentAnnotationPrefix) {
		return fmt.Errorf("%q must begin with %s", key, AgentAnnotationPrefix)
	}
	if why := validation.IsQualifiedName(strings.ToLower(key)); len(why) > 0 {
		return fmt.Errorf("%q is not the name of an annotation: %s", key, strings.Join(why, "; "))
	}
	return nil
}

// CheckClusterLabels says what is wrong with the labels that an agent is told to set on its cluster. Which of them it may set the hub says.
func CheckClusterLabels(labels map[string]string) (errs []error) {
	if len(labels) > MostClusterLabels {
		errs = append(errs, fmt.Errorf("%d labels, and the limit is %d", len(labels), MostClusterLabels))
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if why := validation.IsQualifiedName(key); len(why) > 0 {
			errs = append(errs, fmt.Errorf("%q is not a label key: %s", key, strings.Join(why, "; ")))
		}
		if why := validation.IsValidLabelValue(labels[key]); len(why) > 0 {
			errs = append(errs, fmt.Errorf("the value of %s: %s", key, strings.Join(why, "; ")))
		}
	}
	return errs
}
