// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import "strings"

// ID names a kind of finding, in CamelCase, as reasons of conditions are. Each one has a heading of that name in
// docs/findings.md; a test holds that both ways. They stand as constants beside the check that finds them.
type ID string

// anchor is that of the ID's heading.
func (i ID) anchor() string { return strings.ToLower(string(i)) }
