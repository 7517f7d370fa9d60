// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// record is what a cluster was accepted with, as its ClusterRole remembers it.
type record struct {
	// driver is empty when there is no record.
	driver string
	record driver.Record
	// uid is that of the ManagedCluster that was accepted. Another one of the same name is another cluster.
	uid types.UID
	// granted is when all of it had been granted, zero before.
	granted time.Time
	// note is what the driver has warned of.
	note string
	// revoking says that it is to be revoked, whatever is wished by now.
	revoking bool
	// key, since and requesters say whose certificate request is approved. They are for pkg/controllers/registration/clustercertificates,
	// which also writes the first two.
	key, since, requesters string
	// named is the key that the acceptance named. A record of an earlier version does not have it.
	named string
}

var annotations = []string{
	registration.AnnotationDriver, registration.AnnotationRecord, registration.AnnotationClusterUID, registration.AnnotationGranted,
	registration.AnnotationNote, registration.AnnotationRevoking, registration.AnnotationKey, registration.AnnotationKeySince, registration.AnnotationRequesters,
	registration.AnnotationKeyNamed,
}

// recordOf reads the record from a ClusterRole, which may be nil.
func recordOf(role *rbacv1.ClusterRole) record {
	if role == nil {
		return record{}
	}
	a := role.Annotations
	r := record{
		driver: a[registration.AnnotationDriver], record: driver.Record(a[registration.AnnotationRecord]),
		uid: types.UID(a[registration.AnnotationClusterUID]), note: a[registration.AnnotationNote],
		key: a[registration.AnnotationKey], since: a[registration.AnnotationKeySince], requesters: a[registration.AnnotationRequesters],
		named: a[registration.AnnotationKeyNamed],
	}
	_, r.revoking = a[registration.AnnotationRevoking]
	// A time that cannot be read is no proof that anything was granted.
	r.granted, _ = time.Parse(time.RFC3339, a[registration.AnnotationGranted])
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
		registration.AnnotationClusterUID: string(r.uid), registration.AnnotationKey: r.key, registration.AnnotationKeySince: r.since,
		registration.AnnotationRequesters: r.requesters, registration.AnnotationKeyNamed: r.named,
	} {
		if value != "" {
			role.Annotations[annotation] = value
		}
	}
	if r.driver == "" {
		return
	}
	role.Annotations[registration.AnnotationDriver] = r.driver
	role.Annotations[registration.AnnotationRecord] = string(r.record)
	if !r.granted.IsZero() {
		role.Annotations[registration.AnnotationGranted] = r.granted.UTC().Format(time.RFC3339)
	}
	if r.note != "" {
		role.Annotations[registration.AnnotationNote] = r.note
	}
	if r.revoking {
		role.Annotations[registration.AnnotationRevoking] = "true"
	}
}

// revoked is what stays of a record when all of it has been revoked: whose key the cluster's agent has. Else who asks first
// when the cluster is accepted again would take its place.
func (r record) revoked() record {
	if r.key == "" || r.key == registration.UndecidedKey {
		return record{}
	}
	return record{uid: r.uid, key: r.key, since: r.since, named: r.named}
}

// sameIdentity says that both stand for the same identity.
func (r record) sameIdentity(o record) bool { return r.driver == o.driver && r.record == o.record }

// clusterNameOf is the name of the cluster that a ClusterRole is for.
func clusterNameOf(role *rbacv1.ClusterRole) string {
	return strings.TrimPrefix(role.Name, registration.ClusterRole(""))
}
