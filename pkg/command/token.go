// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import "strings"

// MaxToken is how many bytes a bearer token may have.
const MaxToken = 32 << 10

// IsToken is whether a text can be sent as a bearer token.
func IsToken(text string) bool {
	return text != "" && len(text) <= MaxToken && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
