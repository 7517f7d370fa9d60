// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// AuditEvents reads an audit log.
func AuditEvents(t *testing.T, file string) (all []auditv1.Event) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(string(Must(os.ReadFile(file))(t))), "\n") {
		var e auditv1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, e)
	}
	return all
}
