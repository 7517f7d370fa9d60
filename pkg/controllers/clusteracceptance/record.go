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
	// revoking says that it is to be revoked, whatever is wished by now.
	revoking bool
}

var annotations = []string{
	names.AnnotationDriver, names.AnnotationRecord, names.AnnotationClusterUID, names.AnnotationGranted,
	names.AnnotationRevoking,
}

// recordOf reads the record from a ClusterRole, which may be nil.
func recordOf(role *rbacv1.ClusterRole) record {
	if role == nil {
		return record{}
	}
	a := role.Annotations
	r := record{
		driver: a[names.AnnotationDriver], record: registration.Record(a[names.AnnotationRecord]),
		uid: types.UID(a[names.AnnotationClusterUID]),
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
	if r.driver == "" {
		return
	}
	if role.Annotations == nil {
		role.Annotations = map[string]string{}
	}
	role.Annotations[names.AnnotationDriver] = r.driver
	role.Annotations[names.AnnotationRecord] = string(r.record)
	role.Annotations[names.AnnotationClusterUID] = string(r.uid)
	if !r.granted.IsZero() {
		role.Annotations[names.AnnotationGranted] = r.granted.UTC().Format(time.RFC3339)
	}
	if r.revoking {
		role.Annotations[names.AnnotationRevoking] = "true"
	}
}

// sameIdentity says that both stand for the same identity.
func (r record) sameIdentity(o record) bool { return r.driver == o.driver && r.record == o.record }

// clusterNameOf is the name of the cluster that a ClusterRole is for.
func clusterNameOf(role *rbacv1.ClusterRole) string {
	return strings.TrimPrefix(role.Name, names.ClusterRole(""))
}
