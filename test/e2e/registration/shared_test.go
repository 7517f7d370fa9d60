// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// plains lends plain clusters, each with an issuer of its own.
var plains = harness.NewPool(4, func(c *localhub.Options) {
	c.Plain, c.Issuer = true, fmt.Sprintf("https://oidc.eks.eu-west-1.amazonaws.com/id/PLAIN%d", issuers.Add(1))
})

var issuers atomic.Int32

// issuer returns the issuer of the tokens of a cluster's ServiceAccounts.
func issuer(t *testing.T, h *localhub.Instance) string {
	t.Helper()
	var configuration struct{ Issuer string }
	if err := json.Unmarshal([]byte(harness.Must(harness.Get(t, h.AdminConfig(), "/.well-known/openid-configuration"))(t)), &configuration); err != nil {
		t.Fatal(err)
	}
	return configuration.Issuer
}

// controlled returns a lent hub with a hub-controller-manager that registers clusters.
func controlled(t *testing.T, change ...func(*localhub.Options)) *localhub.Instance {
	t.Helper()
	return control(t, harness.LendHub(t), change...)
}

// control starts the hub-controller-manager of a lent hub, or restarts it with different flags.
func control(t *testing.T, lent *localhub.Instance, change ...func(*localhub.Options)) *localhub.Instance {
	t.Helper()
	return harness.Relaunch(t, lent, func(c *localhub.Options) {
		c.WithoutHubControllerManager, c.HubControllerManagerArgs = false, nil
		for _, do := range change {
			do(c)
		}
	})
}
