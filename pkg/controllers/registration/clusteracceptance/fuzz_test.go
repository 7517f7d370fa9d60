// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"maps"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// FuzzRecord: a record that is read and written says the same, for good, and annotations of others stay.
func FuzzRecord(f *testing.F) {
	f.Add("csr", "{}", "uid-1", "2026-01-02T03:04:05Z", "note", "abc", "ann,bob", true)
	f.Add("awsirsa", `{"roleName":"x"}`, "uid-1", "2026-01-02T03:04:05.678+02:00", "", "", "", false)
	f.Add("", "{}", "uid-1", "2026-01-02T03:04:05Z", "note", "abc", "ann", true)
	f.Add("csr", "", "", "yesterday", "", registration.UndecidedKey, ",", false)
	f.Add("csr", "", "", "10000-01-01T00:00:00Z", "", "", "", false)
	f.Add("csr", "", "", "0001-01-01T00:00:00Z", "", "", "", false)
	f.Fuzz(func(t *testing.T, driver, record, uid, granted, note, key, requesters string, revoking bool) {
		role := &rbacv1.ClusterRole{}
		role.Annotations = map[string]string{
			registration.AnnotationDriver: driver, registration.AnnotationRecord: record, registration.AnnotationClusterUID: uid, registration.AnnotationGranted: granted,
			registration.AnnotationNote: note, registration.AnnotationKey: key, registration.AnnotationRequesters: requesters, "example.com/a": "b",
		}
		if revoking {
			role.Annotations[registration.AnnotationRevoking] = "true"
		}
		before := recordOf(role)
		if year := before.granted.UTC().Year(); year < 1 || year > 9999 {
			return // the hub writes no such time
		}
		before.write(role)
		once, first := recordOf(role), maps.Clone(role.Annotations)
		once.write(role)
		if !maps.Equal(first, role.Annotations) || role.Annotations["example.com/a"] != "b" {
			t.Errorf("%q became %q", first, role.Annotations)
		}
		if once.uid != before.uid || once.key != before.key || once.requesters != before.requesters {
			t.Errorf("%+v became %+v", before, once)
		}
		// Without a driver nothing is granted.
		if driver != "" && (!once.sameIdentity(before) || once.revoking != revoking || once.note != note || once.granted.IsZero() != before.granted.IsZero()) ||
			driver == "" && (once.driver != "" || once.record != "" || !once.granted.IsZero() || once.revoking) {
			t.Errorf("%+v became %+v", before, once)
		}
		once.revoked().write(role)
		for _, annotation := range []string{registration.AnnotationDriver, registration.AnnotationRecord, registration.AnnotationGranted, registration.AnnotationRequesters, registration.AnnotationRevoking} {
			if _, left := role.Annotations[annotation]; left {
				t.Errorf("%s is left of %+v", annotation, once)
			}
		}
		if !slices.Contains([]string{"", key}, role.Annotations[registration.AnnotationKey]) {
			t.Errorf("the key %q became %q", key, role.Annotations[registration.AnnotationKey])
		}
	})
}
