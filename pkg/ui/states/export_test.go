// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package states

// Resources returns the resources with states.
func Resources() map[string]func([]byte) (*States, error) { return kinds }
