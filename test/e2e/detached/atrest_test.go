// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// audited is an audit log with all requests of hub-operator to a cluster, by any client.
type audited struct {
	file string
	// agent distinguishes hub-operator from other users of its name, which send no requests at rest. It is empty if there are no others.
	agent string
}

// managedAudit returns the audit log of the managed cluster that the tests share.
func managedAudit() string {
	_, file := sharedManagedAudit()
	return file
}

// since returns the requests after a time that are not watches. It excludes the Lease for leader election of hub-operators, which is renewed all the
// time.
func (a audited) since(t *testing.T, start time.Time) (all []auditv1.Event) {
	t.Helper()
	for _, e := range harness.AuditEvents(t, a.file) {
		of := e.ObjectRef
		lease := of != nil && of.Resource == "leases" && of.Namespace == "clusterhub-operator" && of.Name == "hub-operator"
		if e.Verb != "watch" && !lease && e.StageTimestamp.After(start) {
			all = append(all, e)
		}
	}
	return all
}

// counts returns the number of watches of hub-operator, and of other requests.
func (a audited) counts(t *testing.T) (watches, requests int) {
	t.Helper()
	for _, e := range harness.AuditEvents(t, a.file) {
		switch {
		case a.agent != "" && e.UserAgent != a.agent:
		case e.Verb == "watch":
			watches++
		default:
			requests++
		}
	}
	return watches, requests
}

// quiet is the time in which no requests are expected.
const quiet = 30 * time.Second

// atRest waits until hub-operator has sent no requests to some clusters for a while. Its watches stay open.
func atRest(t *testing.T, clusters map[string]audited) {
	t.Helper()
	for cluster, a := range clusters {
		if watches, requests := a.counts(t); watches == 0 || requests == 0 {
			t.Errorf("the audit log of %s has %d watches of hub-operator and %d other requests: it does not show what it should", cluster, watches, requests)
		}
	}
	var last error
	if wait.PollUntilContextTimeout(t.Context(), time.Second, harness.Timeout, true, func(context.Context) (bool, error) {
		last = nil
		for cluster, a := range clusters {
			if asked := a.since(t, time.Now().Add(-quiet)); len(asked) > 0 {
				e := asked[len(asked)-1]
				last = fmt.Errorf("%s was asked %d times, the last time by %s %q for %s %s at %s", cluster, len(asked), e.User.Username, e.UserAgent,
					e.Verb, e.RequestURI, e.StageTimestamp.Format(time.RFC3339))
			}
		}
		return last == nil, nil
	}) != nil {
		t.Errorf("hub-operator is not at rest for %s after %s: %v", quiet, harness.Timeout, last)
	}
}
