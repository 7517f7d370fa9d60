// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Audited returns the flags of a kube-apiserver that audits the requests of the given users only, and the path of the audit log.
func Audited(t testing.TB, users ...string) (flags []string, file string) {
	t.Helper()
	const policy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
		"rules": [{"level": "Metadata", "users": ["%s"]}, {"level": "None"}]}`
	dir := t.TempDir()
	rules, file := filepath.Join(dir, "audit.json"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(rules, fmt.Appendf(nil, policy, strings.Join(users, `", "`)), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--audit-policy-file=" + rules, "--audit-log-path=" + file, "--audit-log-mode=blocking"}, file
}

// AuditEvents reads an audit log that may be written concurrently.
func AuditEvents(t *testing.T, file string) (all []auditv1.Event) {
	t.Helper()
	for line := range strings.Lines(string(Must(os.ReadFile(file))(t))) {
		if !strings.HasSuffix(line, "\n") {
			continue // the line is incomplete
		}
		var e auditv1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, e)
	}
	return all
}
