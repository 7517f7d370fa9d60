// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import "strings"

// MaxToken is the maximum length of a bearer token, in bytes.
const MaxToken = 32 << 10

// IsToken reports whether a text can be sent as a bearer token.
func IsToken(text string) bool {
	return text != "" && len(text) <= MaxToken && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
