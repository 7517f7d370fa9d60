// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterhub/clusterhub/pkg/local/image"
	"github.com/clusterhub/clusterhub/pkg/local/server/rootdir"
)

// These are the same as in images of hack/release/image.
const (
	entrypoint = rootdir.Program
	imageUser  = rootdir.User
)

// sandbox has everything that a container gets. It is passed to the process that becomes the container.
type sandbox struct {
	// Root is an empty directory for its root directory, which is read-only.
	Root            string
	Mounts          []rootdir.Mount
	Hostname        string
	Args, Env       []string
	User, Group     int
	Groups          []int
	NoNewPrivileges bool
}

// noImage is an error for an image that does not exist.
type noImage struct{ error }

// image returns the mounts of an image, or an error if it does not exist.
func (k *Kubelet) image(name string) ([]rootdir.Mount, error) {
	repository, tag, _ := strings.Cut(name, ":")
	program, ours := strings.CutPrefix(repository, "clusterhub/")
	if !ours || strings.ContainsAny(program, "/@") || program == "" {
		return nil, noImage{fmt.Errorf("the image %q is not there: the node has images clusterhub/NAME:TAG only", name)}
	}
	folder, other := k.config.Versions[tag]
	if k.config.ImagesDir != "" && !other {
		mounts, err := image.Mounts(filepath.Join(k.config.ImagesDir, program))
		if !errors.Is(err, fs.ErrNotExist) {
			return mounts, err
		}
	}
	if !other {
		folder = k.config.BinDir
	} else if folder == "" {
		return nil, noImage{fmt.Errorf("the image %q is not there", name)}
	}
	file, err := filepath.EvalSymlinks(filepath.Join(folder, program))
	if err != nil {
		return nil, noImage{fmt.Errorf("the image %q is not there: %w. Build it with `make build`", name, err)}
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	mounts := []rootdir.Mount{{From: file, To: rootdir.Program}}
	libraries, err := libraries(file)
	for _, library := range libraries {
		mounts = append(mounts, rootdir.Mount{From: library, To: library})
	}
	return mounts, err
}

// userOf returns the user and the group of a container.
func userOf(pod *corev1.Pod, c *corev1.Container) (user, group int) {
	user, group = imageUser, imageUser
	if s := pod.Spec.SecurityContext; s != nil {
		user, group = orElse(s.RunAsUser, user), orElse(s.RunAsGroup, group)
	}
	if s := c.SecurityContext; s != nil {
		user, group = orElse(s.RunAsUser, user), orElse(s.RunAsGroup, group)
	}
	return user, group
}

func orElse(value *int64, other int) int {
	if value != nil {
		return int(*value)
	}
	return other
}

// sandbox returns the sandbox of a container. Its volumes must exist.
func (w *worker) sandbox(c *corev1.Container) (*sandbox, error) {
	files, err := w.k.image(c.Image)
	if err != nil {
		return nil, err
	}
	env, values, err := w.environment(c)
	if err != nil {
		return nil, err
	}
	s := &sandbox{Root: filepath.Join(w.dir, "containers", c.Name), Hostname: w.name, Args: w.args(c, values), Env: env}
	s.User, s.Group = userOf(w.pod, c)
	switch {
	case s.User != 0: // images belong to root, so it can only write to volumes
	case nonRoot(w.pod, c):
		return nil, fmt.Errorf("container %s has to run as another user than root, and its user is root", c.Name)
	default:
		return nil, refusal("container %s runs as root, which no container of ours does", c.Name)
	}
	if pod := w.pod.Spec.SecurityContext; pod != nil {
		for _, group := range pod.SupplementalGroups {
			s.Groups = append(s.Groups, int(group))
		}
	}
	if group := w.fsGroup(); group >= 0 {
		s.Groups = append(s.Groups, group)
	}
	if of := c.SecurityContext; of != nil {
		s.NoNewPrivileges = of.AllowPrivilegeEscalation != nil && !*of.AllowPrivilegeEscalation
	}
	s.Mounts, err = w.mounts(files, c)
	if err != nil {
		return nil, err
	}
	return s, os.MkdirAll(s.Root, 0o700)
}

func nonRoot(pod *corev1.Pod, c *corev1.Container) bool {
	if s := c.SecurityContext; s != nil && s.RunAsNonRoot != nil {
		return *s.RunAsNonRoot
	}
	s := pod.Spec.SecurityContext
	return s != nil && s.RunAsNonRoot != nil && *s.RunAsNonRoot
}

// args returns the command and the arguments of a container.
func (w *worker) args(c *corev1.Container, values map[string]string) []string {
	all := c.Command
	if len(all) == 0 {
		all = []string{entrypoint}
	}
	all = append(slices.Clone(all), c.Args...)
	for i := range all {
		all[i] = expand(all[i], values)
	}
	return slices.Concat(all, w.k.config.Args, w.k.config.ArgsOf[c.Name])
}

// mounts returns the mounts of a container's root directory.
func (w *worker) mounts(files []rootdir.Mount, c *corev1.Container) ([]rootdir.Mount, error) {
	mounts := append(rootdir.Devices(), files...)
	for name, content := range map[string]string{"hosts": w.hosts(), "hostname": w.name + "\n", "resolv.conf": "# No DNS servers are available.\n"} {
		file := filepath.Join(w.dir, "etc", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return nil, err
		}
		mounts = append(mounts, rootdir.Mount{From: file, To: "/etc/" + name})
	}
	for _, m := range c.VolumeMounts {
		v := w.volumes[m.Name]
		if v == nil {
			return nil, fmt.Errorf("container %s mounts the volume %q, which the pod does not have", c.Name, m.Name)
		}
		mounts = append(mounts, rootdir.Mount{From: v.dir, To: filepath.Clean(m.MountPath), Writable: !v.readOnly && !m.ReadOnly})
	}
	// A mount inside of another one comes after it.
	slices.SortStableFunc(mounts, func(a, b rootdir.Mount) int { return strings.Compare(a.To, b.To) })
	return mounts, nil
}

func (w *worker) hosts() string {
	hosts := "127.0.0.1\tlocalhost " + w.name + "\n::1\tlocalhost\n"
	for _, alias := range w.pod.Spec.HostAliases {
		hosts += alias.IP + "\t" + strings.Join(alias.Hostnames, " ") + "\n"
	}
	return hosts
}

var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// libraries returns the shared libraries of a program. Programs in images have none; those of make build may have some.
func libraries(program string) ([]string, error) {
	binary, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer binary.Close()
	if !slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, nil
	}
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w: %s", program, err, out)
	}
	var all []string
	for _, found := range library.FindAllStringSubmatch(string(out), -1) {
		all = append(all, found[1])
	}
	return all, nil
}
