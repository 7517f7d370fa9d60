// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registration tests how clusters join a hub, authenticate, and leave: by certificates and by AWS IAM.
package registration

import (
	"os"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, func(c *localhub.Options) {
		c.HubControllerManagerArgs = nil      // with the controllers of registration
		c.ExternalEtcd, c.Replicas = false, 1 // no test here needs several replicas
	}))
}
