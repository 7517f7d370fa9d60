// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }
