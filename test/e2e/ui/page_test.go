// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestPage_ShowsWhatUserMaySee(t *testing.T) {
	h := harness.Hub(t)
	seen, unseen := harness.Unique("seen"), harness.Unique("unseen")
	for _, set := range []string{seen, unseen} {
		harness.NewSet(t, set)
		harness.NewManagedCluster(t, "in-"+set, map[string]string{"cluster.open-cluster-management.io/clusterset": set})
	}
	member := harness.User(t, harness.Rule("get", "managedclustersets", seen))

	b := open(t, serve(t, h, member), "/")
	b.waitText(member, "in-"+seen)
	if text := b.shown(); strings.Contains(text, "in-"+unseen) {
		t.Errorf("the page shows a cluster that the user may not see:\n%s", text)
	}
	admin := open(t, serve(t, h, ""), "/")
	admin.waitText("in-"+seen, "in-"+unseen)
}
