// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package image

import "errors"

// Enter is supported on Linux only.
func (Image) Enter([]string) error { return errors.New("images run on Linux only") }
