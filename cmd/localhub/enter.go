// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/clusterhub/clusterhub/pkg/local/image"
)

// newEnterCommand returns the command of a process that becomes the program of an image.
func newEnterCommand() *cobra.Command {
	var in image.Image
	cmd := &cobra.Command{
		Use: image.Command + " -- ARGS", Short: "Execute the program of an image, in its own mount namespace", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error { return in.Enter(args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Root, "image", "", "The directory with the files of the image.")
	flags.StringVar(&in.At, "at", "", "An empty directory for the root directory.")
	flags.StringVar(&in.Dir, "share", "", "A directory that the program sees unchanged.")
	flags.BoolVar(&in.Temporary, "temporary", false, "If true, the program has a writable directory /tmp.")
	flags.BoolVar(&in.Tied, "tied", false, "If true, the program stops when the process that started it exits.")
	return cmd
}
