// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/clusterhub/clusterhub/pkg/localhub"
)

// newEnterCommand is a process that becomes the program of an image.
func newEnterCommand() *cobra.Command {
	var image localhub.Image
	cmd := &cobra.Command{
		Use: localhub.EnterCommand + " -- ARGS", Short: "Become the program of an image, in mounts of its own", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error { return image.Enter(args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&image.Root, "image", "", "Directory of the files of the image.")
	flags.StringVar(&image.At, "at", "", "Empty directory for the root directory.")
	flags.StringVar(&image.Dir, "share", "", "Directory that the program sees as it is.")
	flags.BoolVar(&image.Temporary, "temporary", false, "Whether there is a directory /tmp that can be written to.")
	flags.BoolVar(&image.Tied, "tied", false, "Whether the program ends with the process that has started it.")
	return cmd
}
