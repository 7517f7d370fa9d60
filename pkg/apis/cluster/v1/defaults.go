// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

func init() {
	localSchemeBuilder.Register(RegisterDefaults)
}
