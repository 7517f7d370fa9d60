// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager_test

import (
	"os"
	"testing"

	"github.com/spf13/cobra"

	"github.com/clusterhub/clusterhub/pkg/apiserver/options"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/controllers/manager"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/clustermanager"
)

// TestMain runs a server if the process was started by a test as one. It is outside of the package, because hub-controller-manager may import the
// controller under test.
func TestMain(m *testing.M) {
	servers := map[string]func() *cobra.Command{deploy.APIServer: options.NewCommand, deploy.Manager: manager.NewCommand}
	if server, ok := servers[os.Getenv(clustermanager.ServerEnv)]; ok {
		os.Exit(command.Main(server()))
	}
	os.Exit(m.Run())
}
