// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// FuzzRecord verifies that reading and writing a record does not change it, also one of an older hub.
func FuzzRecord(f *testing.F) {
	f.Add("csr", "{}", "uid-1", "2026-01-02T03:04:05Z", "note", "abc", "ann,bob", true)
	f.Add("awsirsa", `{"roleName":"x"}`, "uid-1", "2026-01-02T03:04:05.678+02:00", "", "", "", false)
	f.Add("", "{}", "uid-1", "2026-01-02T03:04:05Z", "note", "abc", "ann", true)
	f.Add("csr", "", "", "yesterday", "", registration.UndecidedKey, ",", false)
	f.Add("csr", "", "", "10000-01-01T00:00:00Z", "", "", "", false)
	f.Add("csr", "", "", "0001-01-01T00:00:00Z", "", "", "", false)
	f.Fuzz(func(t *testing.T, driver, identity, uid, granted, note, key, requesters string, revoking bool) {
		kept, role := &corev1.ConfigMap{}, &rbacv1.ClusterRole{}
		kept.Data = map[string]string{
			"driver": driver, "record": identity, "cluster-uid": uid, "granted": granted, "note": note, "key-sha256": key,
			"requesters": requesters, "what": "else",
		}
		if revoking {
			kept.Data["revoking"] = "true"
		}
		role.Annotations = map[string]string{"example.com/a": "b"}
		for key, value := range kept.Data {
			if key != "what" {
				role.Annotations["registration.clusterhub.dev/"+key] = value
			}
		}
		before := Of(kept)
		if year := before.Granted.UTC().Year(); year < 1 || year > 9999 {
			return // the hub writes no such time
		}
		if !HasLegacy(role) || !reflect.DeepEqual(On(role), before) {
			t.Errorf("on a ClusterRole it is %+v, want %+v", On(role), before)
		}
		RemoveLegacy(role)
		if HasLegacy(role) || !maps.Equal(role.Annotations, map[string]string{"example.com/a": "b"}) {
			t.Errorf("on the ClusterRole is left %q", role.Annotations)
		}
		before.Write(kept)
		once, first := Of(kept), maps.Clone(kept.Data)
		once.Write(kept)
		if !maps.Equal(first, kept.Data) || kept.Data["what"] != "" {
			t.Errorf("%q became %q", first, kept.Data)
		}
		if once.UID != before.UID || once.Key != before.Key || once.Requesters != before.Requesters {
			t.Errorf("%+v became %+v", before, once)
		}
		// Without a driver nothing is granted.
		if driver != "" && (!once.SameIdentity(before) || once.Revoking != revoking || once.Note != note || once.Granted.IsZero() != before.Granted.IsZero()) ||
			driver == "" && (once.Driver != "" || once.Identity != "" || !once.Granted.IsZero() || once.Revoking) {
			t.Errorf("%+v became %+v", before, once)
		}
		once.Revoked().Write(kept)
		for _, gone := range []string{"driver", "record", "granted", "requesters", "revoking"} {
			if _, left := kept.Data[gone]; left {
				t.Errorf("%s is left of %+v", gone, once)
			}
		}
		if !slices.Contains([]string{"", key}, kept.Data["key-sha256"]) {
			t.Errorf("the key %q became %q", key, kept.Data["key-sha256"])
		}
	})
}
