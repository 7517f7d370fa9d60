// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// Annotations of the ClusterRole of a cluster: what the hub remembers of its acceptance, where the cluster's agent cannot
// write.
const (
	// AnnotationDriver names the driver by which the cluster was accepted, AnnotationRecord has the driver's record, and
	// AnnotationClusterUID the UID of the ManagedCluster. They are written before anything is granted, and removed after all
	// of it has been revoked.
	AnnotationDriver     = "registration.clusterhub.dev/driver"
	AnnotationRecord     = "registration.clusterhub.dev/record"
	AnnotationClusterUID = "registration.clusterhub.dev/cluster-uid"
	// AnnotationGranted has the time (RFC 3339) at which all of it had been granted.
	AnnotationGranted = "registration.clusterhub.dev/granted"
	// AnnotationNote is what the driver has warned of when it was last called.
	AnnotationNote = "registration.clusterhub.dev/note"
	// AnnotationRevoking says that the record is being revoked: it has to be, to the end, whatever is wished meanwhile.
	AnnotationRevoking = "registration.clusterhub.dev/revoking"

	// AnnotationKey pins the key of the cluster's agent: the SHA-256 of the last public key (SubjectPublicKeyInfo, DER) for which
	// a certificate was approved, in hex. Until there is one it is that of AnnotationAgentKey, as it was when the cluster was
	// accepted. It is written before the certificate is approved. UndecidedKey stands for several.
	AnnotationKey = "registration.clusterhub.dev/key-sha256"
	// AnnotationKeySince is when (RFC 3339) the key was pinned.
	AnnotationKeySince = "registration.clusterhub.dev/key-since"
	// AnnotationKeyNamed is what AnnotationAgentKey said when the cluster was accepted, NoKey for nothing. It tells an acceptance
	// that names another key from one that leaves the agent the key that it has.
	AnnotationKeyNamed = "registration.clusterhub.dev/key-named"

	// UndecidedKey is in the place of a key when several were asked for at once: an admin has to say which is right. That does
	// not change when one of the requests vanishes.
	UndecidedKey = "undecided"
	// NoKey is in the place of a key that was not named.
	NoKey = "none"
)

// AnnotationRequesters has the names of users, with commas between them. On a ManagedCluster: only these may ask for its
// first certificate, and may do so after it was accepted. It counts as it was at that moment: then it is copied to the
// cluster's ClusterRole.
const AnnotationRequesters = "registration.clusterhub.dev/requesters"

// maxRequesters bounds the copy.
const maxRequesters = 1024

// Requesters are the users that annotations name, none if they do not restrict who may ask. With an error comes a name that
// no user has, so that a caller that ignores the error lets no user in.
func Requesters(annotations map[string]string) ([]string, error) {
	text := annotations[AnnotationRequesters]
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
		return fmt.Errorf("no cluster can be accepted under the name %q: roles or groups that all clusters share have it; "+
			"join it under another name", name)
	}
	return nil
}
