// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localhub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/localserver"
	"github.com/clusterhub/clusterhub/pkg/localserver/rootdir"
)

// EnterCommand is the command of localhub that becomes a program of an image, in that image.
const EnterCommand = "enter"

// inImages are the programs that run in their images, where there are any. A provider of clusters on this machine is none of them: it
// starts programs of this machine.
var inImages = []string{procHubAPIServer, procHubController, procHubAgent}

// isImaged is whether a program runs in its image.
func (h *Hub) isImaged(bin string) bool {
	return h.config.ImagesDir != "" && slices.Contains(inImages, bin)
}

// imaged is the file of a program: that of its image, if it runs there.
func (h *Hub) imaged(bin string) string {
	if h.isImaged(bin) {
		return filepath.Join(h.config.ImagesDir, bin, rootdir.Program)
	}
	return h.bin(bin)
}

func (h *Hub) checkImages() error {
	if h.config.ImagesDir == "" {
		return nil
	}
	for _, bin := range inImages {
		if _, err := os.Stat(h.imaged(bin)); err != nil {
			return fmt.Errorf("the image of %s is not in %s: unpack it with `make roots`", bin, h.config.ImagesDir)
		}
	}
	return nil
}

// inImage is how a process is started in its image, if it is to run there: by this program's own command, which becomes it. The environment
// is what a container would have, and what tests say to Kubernetes' libraries.
func (h *Hub) inImage(name, bin string, args, env []string) (string, []string, []string) {
	if !h.isImaged(bin) {
		return h.bin(bin), args, env
	}
	image := Image{Root: filepath.Join(h.config.ImagesDir, bin), At: h.path(runDir, name+".root"), Dir: h.config.Dir, Tied: !h.config.Detach,
		// As the manifests have it: no other may write anything but its volumes.
		Temporary: bin == procHubAPIServer}
	return h.bin(localhubBinary), append(image.flags(), args...), env
}

// Image is what a process gets of the image that it runs in.
type Image struct {
	// Root has the files of the image, and At is an empty folder for its root directory, which is made if it is not there.
	Root, At string
	// Dir is a folder of this machine that the process sees as it is, and can write to.
	Dir string
	// Temporary gives it a folder /tmp that it can write to.
	Temporary bool
	// Tied ends it together with the process that has started it.
	Tied bool
}

func (i Image) flags() []string {
	return []string{EnterCommand, "--image=" + i.Root, "--at=" + i.At, "--share=" + i.Dir,
		fmt.Sprintf("--temporary=%t", i.Temporary), fmt.Sprintf("--tied=%t", i.Tied), "--"}
}

// mounts are what is in the root directory of a process.
func (i Image) mounts(args []string) ([]rootdir.Mount, error) {
	entries, err := os.ReadDir(i.Root)
	if err != nil {
		return nil, err
	}
	mounts := append(rootdir.Devices(), rootdir.Mount{From: "/proc", To: "/proc", Recursive: true})
	for _, entry := range entries {
		mounts = append(mounts, rootdir.Mount{From: filepath.Join(i.Root, entry.Name()), To: "/" + entry.Name()})
	}
	// What a runtime of containers writes.
	for name, content := range map[string]string{"hosts": "127.0.0.1\tlocalhost\n::1\tlocalhost\n", "resolv.conf": "# There is no DNS here.\n"} {
		file := i.At + "." + name
		if err := localserver.WriteFile(file, []byte(content)); err != nil {
			return nil, err
		}
		mounts = append(mounts, rootdir.Mount{From: file, To: "/etc/" + name})
	}
	if i.Temporary { // what else is in /tmp comes after it
		tmp := i.At + ".tmp"
		if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o700)); err != nil {
			return nil, err
		}
		mounts = append(mounts, rootdir.Mount{From: tmp, To: "/tmp", Writable: true})
	}
	if i.Dir != "" {
		mounts = append(mounts, rootdir.Mount{From: i.Dir, To: i.Dir, Writable: true})
	}
	// A pod would have a volume for each of these.
	for _, arg := range args {
		_, file, _ := strings.Cut(arg, "=")
		inside := i.Dir != "" && strings.HasPrefix(file, i.Dir+"/")
		if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && !inside && info.Mode().IsRegular() {
			mounts = append(mounts, rootdir.Mount{From: file, To: filepath.Clean(file)})
		}
	}
	return mounts, nil
}

// containerEnv is what of an environment a container of ours has.
func containerEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"HOME", "KUBECONFIG", "LD_LIBRARY_PATH", "PATH", "PWD", "SHELL", "TMPDIR", "USER"}, name)
	})
}
