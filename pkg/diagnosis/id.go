// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import "strings"

// ID identifies a kind of finding, in CamelCase like reasons of conditions. Each ID has a heading in docs/findings.md, and vice versa, as a test
// verifies. The constants are next to the checks that return them.
type ID string

// anchor returns the anchor of the ID's heading.
func (i ID) anchor() string { return strings.ToLower(string(i)) }
