// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

const (
	// UndecidedKey replaces the key of a cluster's agent when there were requests for several at once: an admin must decide which is right. That
	// does not change when one of the requests is deleted.
	UndecidedKey = "undecided"
	// NoKey stands for a key that was not named.
	NoKey = "none"
)

// AnnotationRequesters has the names of users, separated by commas. On a ManagedCluster: only these may request its first certificate, and may do
// so after it was accepted. The value at the time of the acceptance counts: it is copied to the hub's record of the cluster.
const AnnotationRequesters = "registration.clusterhub.dev/requesters"

// maxRequesters limits the length of the copy.
const maxRequesters = 1024

// Requesters returns the users that annotations name, or none if all may request certificates. An error comes with a name that no user has, so that
// a caller that ignores the error admits no user.
func Requesters(annotations map[string]string) ([]string, error) {
	return ParseRequesters(annotations[AnnotationRequesters])
}

// ParseRequesters parses the copy.
func ParseRequesters(text string) ([]string, error) {
	switch {
	case text == "":
		return nil, nil
	case len(text) > maxRequesters:
		return []string{""}, fmt.Errorf("the annotation %s has %d bytes, and at most %d are allowed: name fewer users",
			AnnotationRequesters, len(text), maxRequesters)
	}
	return strings.Split(text, ","), nil
}

const (
	// AnnotationMade is on namespaces that the hub has created, and so may delete. Its value is the name of the cluster.
	AnnotationMade = "registration.clusterhub.dev/made-for"
	// InspectorClusterRole allows listing everything. The hub binds itself to it in a cluster's namespace, once the cluster is gone, to check
	// whether anything is left in it.
	InspectorClusterRole = "clusterhub:cluster-namespace-inspector"
	// InspectorRoleBinding is the name of that binding.
	InspectorRoleBinding = "clusterhub:cluster-namespace-inspector"
)

// CheckName refuses the names that no cluster can have. The hub's API refuses them too: this is for clusters that were stored by other means.
func CheckName(name string) error {
	if slices.Contains(cluster.ReservedNames, name) {
		return fmt.Errorf("no cluster can be accepted under the name %q: roles or groups that all clusters share, or a namespace of the hub, have it; "+
			"join it under another name", name)
	}
	return nil
}
