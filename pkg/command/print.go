// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strconv"
	"strings"
)

// ErrorLine returns an error as a program prints it when it exits: on one line, for a person or for the log of a script. Servers may have written
// parts of it.
func ErrorLine(err error) string { return Printable(strings.Join(strings.Fields(err.Error()), " ")) }

// Printable formats untrusted text for a terminal: on one line, and without characters that move the cursor or change the direction of the text.
func Printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}
