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
	// UndecidedKey is in the place of the key of a cluster's agent when several were asked for at once: an admin has to say which
	// is right. That does not change when one of the requests vanishes.
	UndecidedKey = "undecided"
	// NoKey is in the place of a key that was not named.
	NoKey = "none"
)

// AnnotationRequesters has the names of users, with commas between them. On a ManagedCluster: only these may ask for its
// first certificate, and may do so after it was accepted. It counts as it was at that moment: then it is copied to what the
// hub remembers of the cluster.
const AnnotationRequesters = "registration.clusterhub.dev/requesters"

// maxRequesters bounds the copy.
const maxRequesters = 1024

// Requesters are the users that annotations name, none if they do not restrict who may ask. With an error comes a name that
// no user has, so that a caller that ignores the error lets no user in.
func Requesters(annotations map[string]string) ([]string, error) {
	return ParseRequesters(annotations[AnnotationRequesters])
}

// ParseRequesters reads the copy.
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
	// AnnotationMade is on namespaces that the hub has made, and so may remove. Its value is the name of the cluster.
	AnnotationMade = "registration.clusterhub.dev/made-for"
	// InspectorClusterRole lists everything. The hub binds itself to it in a cluster's namespace, once the cluster is gone,
	// to see whether anything is left in it.
	InspectorClusterRole = "clusterhub:cluster-namespace-inspector"
	// InspectorRoleBinding names that binding.
	InspectorRoleBinding = "clusterhub:cluster-namespace-inspector"
)

// CheckName refuses the names that no cluster can be registered by. The hub's API refuses them too: this is for clusters
// that were stored by other means.
func CheckName(name string) error {
	if slices.Contains(cluster.ReservedNames, name) {
		return fmt.Errorf("no cluster can be accepted under the name %q: roles or groups that all clusters share, or a namespace of the hub, have it; "+
			"join it under another name", name)
	}
	return nil
}
