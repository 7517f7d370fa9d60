// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/ui"
)

// aboutOf returns what the page shows about a connection.
func aboutOf(opts *kit.Options, config *rest.Config) (ui.About, error) {
	return (&page{Options: opts}).about(config)
}
