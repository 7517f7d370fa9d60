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

// MaxClusterLabels is the maximum number of labels that an agent may be configured to set.
const MaxClusterLabels = 16

// DefaultAgentQPS and DefaultAgentBurst are the default number of requests of each client of an agent per second, and at once. They are the
// defaults of a Klusterlet, too.
const (
	DefaultAgentQPS   = 50
	DefaultAgentBurst = 100
)

// CheckClusterAnnotation returns an error if an agent must not set an annotation of this name on its cluster.
func CheckClusterAnnotation(key string) error {
	if !strings.HasPrefix(key, AgentAnnotationPrefix) {
		return fmt.Errorf("%q must begin with %s", key, AgentAnnotationPrefix)
	}
	if why := validation.IsQualifiedName(strings.ToLower(key)); len(why) > 0 {
		return fmt.Errorf("%q is not the name of an annotation: %s", key, strings.Join(why, "; "))
	}
	return nil
}

// CheckClusterLabels returns the errors of the labels that an agent is configured to set on its cluster. The hub decides which of them it may set.
func CheckClusterLabels(labels map[string]string) (errs []error) {
	if len(labels) > MaxClusterLabels {
		errs = append(errs, fmt.Errorf("%d labels, and the limit is %d", len(labels), MaxClusterLabels))
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
