// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

// These are for the tests, which are in a package of their own since they run the whole command.
const (
	RoleAnnotation = roleAnnotation
	Upstreams      = upstreams
)

// These are for the tests, too.
type (
	Joining = joining
)
