// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration"
	names "github.com/clusterhub/clusterhub/pkg/registration"
)

// record is what a cluster was accepted with, as its ClusterRole remembers it.
type record struct {
	// driver is empty when there is no record.
	driver string
	record registration.Record
	// uid is that of the ManagedCluster that was accepted. Another one of the same name is another cluster.
	uid types.UID
	// granted is when all of it had been granted, zero before.
	granted time.Time
	// note is what the driver has warned of.
	note string
	// revoking says that it is to be revoked, whatever is wished by now.
	revoking bool
	// key, since and requesters say whose certificate request is approved. They are for pkg/controllers/clustercertificates,
	// which also writes the first two.
	key, since, requesters string
	// named is the key that the acceptance named. A record of an earlier version does not have it.
	named string
}

var annotations = []string{
	names.AnnotationDriver, names.AnnotationRecord, names.AnnotationClusterUID, names.AnnotationGranted,
	names.AnnotationNote, names.AnnotationRevoking, names.AnnotationKey, names.AnnotationKeySince, names.AnnotationRequesters,
	names.AnnotationKeyNamed,
}

// recordOf reads the record from a ClusterRole, which may be nil.
func recordOf(role *rbacv1.ClusterRole) record {
	if role == nil {
		return record{}
	}
	a := role.Annotations
	r := record{
		driver: a[names.AnnotationDriver], record: registration.Record(a[names.AnnotationRecord]),
		uid: types.UID(a[names.AnnotationClusterUID]), note: a[names.AnnotationNote],
		key: a[names.AnnotationKey], since: a[names.AnnotationKeySince], requesters: a[names.AnnotationRequesters],
		named: a[names.AnnotationKeyNamed],
	}
	_, r.revoking = a[names.AnnotationRevoking]
	// A time that cannot be read is no proof that anything was granted.
	r.granted, _ = time.Parse(time.RFC3339, a[names.AnnotationGranted])
	return r
}

// write makes the annotations of a ClusterRole say what the record says.
func (r record) write(role *rbacv1.ClusterRole) {
	for _, annotation := range annotations {
		delete(role.Annotations, annotation)
	}
	if role.Annotations == nil {
		role.Annotations = map[string]string{}
	}
	for annotation, value := range map[string]string{
		names.AnnotationClusterUID: string(r.uid), names.AnnotationKey: r.key, names.AnnotationKeySince: r.since,
		names.AnnotationRequesters: r.requesters, names.AnnotationKeyNamed: r.named,
	} {
		if value != "" {
			role.Annotations[annotation] = value
		}
	}
	if r.driver == "" {
		return
	}
	role.Annotations[names.AnnotationDriver] = r.driver
	role.Annotations[names.AnnotationRecord] = string(r.record)
	if !r.granted.IsZero() {
		role.Annotations[names.AnnotationGranted] = r.granted.UTC().Format(time.RFC3339)
	}
	if r.note != "" {
		role.Annotations[names.AnnotationNote] = r.note
	}
	if r.revoking {
		role.Annotations[names.AnnotationRevoking] = "true"
	}
}

// revoked is what stays of a record when all of it has been revoked: whose key the cluster's agent has. Else who asks first
// when the cluster is accepted again would take its place.
func (r record) revoked() record {
	if r.key == "" || r.key == names.UndecidedKey {
		return record{}
	}
	return record{uid: r.uid, key: r.key, since: r.since, named: r.named}
}

// sameIdentity says that both stand for the same identity.
func (r record) sameIdentity(o record) bool { return r.driver == o.driver && r.record == o.record }

// clusterNameOf is the name of the cluster that a ClusterRole is for.
func clusterNameOf(role *rbacv1.ClusterRole) string {
	return strings.TrimPrefix(role.Name, names.ClusterRole(""))
}
