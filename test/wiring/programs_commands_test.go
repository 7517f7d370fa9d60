// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent"
	"github.com/clusterhub/clusterhub/pkg/apiserver/options"
	"github.com/clusterhub/clusterhub/pkg/controllers/manager"
	"github.com/clusterhub/clusterhub/pkg/operator"
)

// TestWiring_Commands runs each command with a flag that it refuses: before it does, it has limited what is logged.
func TestWiring_Commands(t *testing.T) {
	for name, test := range map[string]struct {
		command *cobra.Command
		refused string
	}{
		"hub-apiserver":          {options.NewCommand(), "--max-manifests-bytes=1"},
		"hub-controller-manager": {manager.NewCommand(), "--controllers=none"},
		"hub-operator":           {operator.NewCommand(), "--controllers=none"},
		"hub-agent":              {agent.NewCommand(), "--cluster-name=-"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := logsapi.ResetForTest(nil); err != nil {
				t.Fatal(err)
			}
			klog.ClearLogger()
			defer klog.ClearLogger()
			test.command.SetArgs([]string{test.refused})
			test.command.SetOut(io.Discard)
			test.command.SetErr(io.Discard)
			flag, _, _ := strings.Cut(test.refused, "=")
			if err := test.command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), flag) {
				t.Errorf("%s: %v, want an error that says so", test.refused, err)
			}
			if sink := typeName(reflect.ValueOf(klog.Background().GetSink())); sink != "pkg/logging.limited" {
				t.Errorf("the log is written by %s, without a limit", sink)
			}
		})
	}
}
