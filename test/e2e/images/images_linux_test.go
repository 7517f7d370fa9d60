// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package images runs our images, as hack/release/image builds them, without a container runtime: each in a root directory that has only the files of
// the image, as the user of the image. hack/test.sh runs the tests of other folders in them, too.
package images

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/local/image"
	"github.com/clusterhub/clusterhub/pkg/local/server/rootdir"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// probe makes this test binary act as the program of an image: see TestMain.
const probe = "CLUSTERHUB_TEST_IMAGE"

func TestMain(m *testing.M) {
	if root := os.Getenv(probe); root != "" {
		err := image.Image{Root: root, At: os.Getenv("AT"), Tied: true}.Enter(os.Args[1:])
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(128)
	}
	os.Exit(harness.Run(m))
}

// inImage returns a command for a program of an image.
func inImage(t *testing.T, root string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = []string{probe + "=" + root, "AT=" + filepath.Join(t.TempDir(), "root")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	rootdir.Own(cmd.SysProcAttr, rootdir.User, rootdir.User)
	return cmd
}

func roots(t *testing.T) []string {
	t.Helper()
	dir := harness.ImagesDir()
	if dir == "" {
		t.Skip("there are no unpacked images: run `make roots`, and IMAGES=1 hack/test.sh e2e")
	}
	all := harness.Must(filepath.Glob(filepath.Join(dir, "*")))(t)
	if len(all) < 5 {
		t.Fatalf("%s has the images %q only", dir, all)
	}
	return all
}

// TestImages_PrintVersion runs each image. The version is the tag of the image.
func TestImages_PrintVersion(t *testing.T) {
	t.Parallel()
	for _, root := range roots(t) {
		name := filepath.Base(root)
		version := tag(t, filepath.Join(root, "..", "..", "images", name, "index.json"))
		out, err := inImage(t, root, "--version").CombinedOutput()
		if said := strings.TrimSpace(string(out)); err != nil || !strings.HasSuffix(said, " "+version) {
			t.Errorf("%s --version says %q (%v), expected %s at its end", name, said, err, version)
		}
	}
}

// tag returns the tag of the images in a layout.
func tag(t *testing.T, layout string) string {
	t.Helper()
	var index struct {
		Manifests []struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(harness.Must(os.ReadFile(layout))(t), &index); err != nil {
		t.Fatal(err)
	}
	tag := index.Manifests[0].Annotations["org.opencontainers.image.ref.name"]
	if tag == "" {
		t.Fatalf("%s has no tag", layout)
	}
	return tag
}

// TestImages_RunHub checks the privileges of the processes of a hub that runs in its images, and of the pods of its node.
func TestImages_RunHub(t *testing.T) {
	roots(t)
	hub := harness.Hub(t)
	pids := hub.PIDs()
	for _, name := range []string{"hub-apiserver", "hub-apiserver-1", "hub-controller-manager"} {
		checkProcess(t, name, pids[name])
	}
	if err := hub.StartNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.MustKubectl(t, "", "apply", "--server-side", "-k", harness.Overlay("operator"))
	harness.MustKubectl(t, "", "-n", "clusterhub-operator", "rollout", "status", "deployment/hub-operator", "--timeout="+harness.Timeout.String())
	files := harness.Must(filepath.Glob(filepath.Join(hub.Dir(), "pods", "*", "hub-operator.pid")))(t)
	if len(files) == 0 {
		t.Fatal("hub-operator has no process")
	}
	for _, file := range files {
		checkProcess(t, "hub-operator", harness.Must(strconv.Atoi(strings.TrimSpace(string(harness.Must(os.ReadFile(file))(t)))))(t))
	}
}

// checkProcess fails the test if a process has more privileges than a container of ours.
func checkProcess(t *testing.T, name string, pid int) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", pid)
	if program, err := os.Readlink(proc + "exe"); err != nil || !strings.HasSuffix(program, rootdir.Program) {
		t.Errorf("%s runs %s (%v)", name, program, err)
	}
	status := string(harness.Must(os.ReadFile(proc + "status"))(t))
	for _, want := range []string{"CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n", "CapAmb:\t0000000000000000\n", "NoNewPrivs:\t1\n"} {
		if !strings.Contains(status, want) {
			t.Errorf("%s has more rights than a container of ours, expected %q:\n%s", name, want, status)
		}
	}
	users := strings.Fields(string(harness.Must(os.ReadFile(proc + "uid_map"))(t)))
	if len(users) != 3 || users[0] != fmt.Sprint(rootdir.User) || users[2] != "1" {
		t.Errorf("%s has the users %q, expected one, %d", name, users, rootdir.User)
	}
	checkRoot(t, name, proc+"root")
}

// checkRoot fails the test if a root directory has more than the image, the files of every container, and the folders on the path to the hub's
// folder.
func checkRoot(t *testing.T, name, root string) {
	t.Helper()
	allowed := []string{"dev", "etc", "licenses", "proc", "usr"}
	if strings.HasPrefix(name, "hub-apiserver") {
		allowed = append(allowed, "tmp")
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(harness.Hub(t).Dir(), "/"), "/")
	for _, entry := range harness.Must(os.ReadDir(root))(t) {
		if !slices.Contains(append(allowed, top), entry.Name()) {
			t.Errorf("%s sees /%s, which no container of it would", name, entry.Name())
		}
	}
	for folder, want := range map[string]string{"/usr": "local", "/usr/local": "bin", "/usr/local/bin": "component", "/etc": "hosts resolv.conf"} {
		var found []string
		for _, entry := range harness.Must(os.ReadDir(root + folder))(t) {
			found = append(found, entry.Name())
		}
		if strings.Join(found, " ") != want {
			t.Errorf("%s sees %q in %s, expected %q", name, found, folder, want)
		}
	}
	for _, folder := range []string{"/", "/usr", "/usr/local/bin", "/licenses", "/etc"} {
		var of syscall.Statfs_t
		if err := syscall.Statfs(root+folder, &of); err != nil || of.Flags&syscall.MS_RDONLY == 0 {
			t.Errorf("%s can write to %s (%v)", name, folder, err)
		}
	}
}
