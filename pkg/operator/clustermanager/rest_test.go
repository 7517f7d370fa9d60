// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// checkQuiet wants a hub not to be asked for as long as several looks could take.
func checkQuiet(t *testing.T, hub *operatortest.Front) {
	t.Helper()
	last, since := -1, time.Now()
	eventually(t, "nothing but watches for five seconds", func() string {
		asked := hub.Requests()
		if len(asked) != last {
			last, since = len(asked), time.Now()
		}
		if time.Since(since) > 5*time.Second {
			return ""
		}
		return fmt.Sprintf("%d requests, the last ones %q", len(asked), asked[max(0, len(asked)-5):])
	})
}
