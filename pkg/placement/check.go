// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

// CheckExpression returns why a CEL expression of a predicate cannot be evaluated for any cluster, or nil.
func CheckExpression(text string) error {
	_, err := compileExpression(text, func(string) {})
	return err
}
