// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// whoSet returns which program wrote a field last, and when, according to managedFields: such as "by kubectl-hub, 5m ago". It returns "" if they do
// not have it. Only the audit log of the hub has the user who ran the program.
func whoSet(object *metav1.ObjectMeta, now time.Time, path ...string) string {
	var last *metav1.ManagedFieldsEntry
	for i := range object.ManagedFields {
		entry := &object.ManagedFields[i]
		if entry.FieldsV1 == nil || !hasField(entry.FieldsV1.GetRawBytes(), path) {
			continue
		}
		if last == nil || entry.Time != nil && (last.Time == nil || last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	switch {
	case last == nil:
		return ""
	case last.Time == nil:
		return "by " + last.Manager
	}
	return "by " + last.Manager + ", " + ago(now, last.Time.Time)
}

func hasField(fields []byte, path []string) bool {
	for _, name := range path {
		level := map[string]json.RawMessage{}
		if json.Unmarshal(fields, &level) != nil {
			return false
		}
		next, ok := level["f:"+name]
		if !ok {
			return false
		}
		fields = next
	}
	return true
}
