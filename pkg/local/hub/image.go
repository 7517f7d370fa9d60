// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"path/filepath"
	"slices"

	"github.com/clusterhub/clusterhub/pkg/local/image"
)

// inImages lists the programs that run in their images, if images are available. A provider of clusters on this machine is not one of them: it starts
// programs of this machine.
var inImages = []string{procHubAPIServer, procHubController, procHubAgent}

// isImaged reports whether a program runs in its image.
func (l *launcher) isImaged(bin string) bool {
	return l.config.ImagesDir != "" && slices.Contains(inImages, bin)
}

// imaged returns the file of a program, in its image if it runs there.
func (l *launcher) imaged(bin string) string {
	if l.isImaged(bin) {
		return image.Program(l.config.ImagesDir, bin)
	}
	return l.bin(bin)
}

func (l *launcher) checkImages() error {
	if l.config.ImagesDir == "" {
		return nil
	}
	for _, bin := range inImages {
		if err := image.Check(l.config.ImagesDir, bin); err != nil {
			return err
		}
	}
	return nil
}

// inImage returns how a process is started in its image, if it must run there: with this program's own command, which becomes it. The environment has
// the variables of a container, and those that tests set for Kubernetes' libraries.
func (l *launcher) inImage(name, bin string, args, env []string) (string, []string, []string) {
	if !l.isImaged(bin) {
		return l.bin(bin), args, env
	}
	in := image.Image{Root: filepath.Join(l.config.ImagesDir, bin), At: l.path(runDir, name+".root"), Dir: l.config.Dir, Tied: !l.config.Detach,
		// As in the manifests: no other may write anything except its volumes.
		Temporary: bin == procHubAPIServer}
	return l.bin(image.Binary), append(in.Args(), args...), env
}
