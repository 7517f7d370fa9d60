// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

// These are for the tests, which are in a package of their own since they run the whole command.
const (
	MaxCredentials   = maxCredentials
	UnjoinJob        = unjoinJob
	WorksServiceName = worksServiceName
)

// These are for the tests, too.
var (
	UnjoinJobOf = unjoinJobOf
	WaitsFor    = waitsFor
	WayOf       = configOf
)
