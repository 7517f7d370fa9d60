// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// newcomer is a user without a hub, who runs the commands of the README.
type newcomer struct {
	ctx context.Context
	// bin has the binaries, dir becomes the hub's directory, and home stands for all other writable places.
	bin, dir, home string
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	n := &newcomer{ctx: t.Context(), bin: t.TempDir(), dir: filepath.Join(t.TempDir(), "hub"), home: t.TempDir()}
	built := harness.BinDir(t)
	for _, name := range []string{"localhub", "etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kubectl-hub",
		"cluster-provider", "hub-agent", "hub-apiserver", "hub-controller-manager", "hub-operator"} {
		if err := os.Symlink(filepath.Join(built, name), filepath.Join(n.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		n.ctx = context.WithoutCancel(t.Context())
		if out, err := n.localhub(t, "clean"); err != nil {
			t.Errorf("localhub clean: %v\n%s", err, out)
		}
	})
	return n
}

// run runs a command in an environment that detects writes outside of the hub's directory.
func (n *newcomer) run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(n.ctx, name, args...)
	cmd.Dir = n.home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.home, "TMPDIR=" + n.home, "KUBECACHEDIR=" + filepath.Join(n.bin, "cache")}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (n *newcomer) localhub(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := harness.Must(filepath.Abs(harness.Root))(t)
	return n.run(t, filepath.Join(n.bin, "localhub"), append([]string{"--dir", n.dir, "--bin-dir", n.bin, "--root", root}, args...)...)
}

func (n *newcomer) mustLocalhub(t *testing.T, args ...string) string {
	t.Helper()
	out, err := n.localhub(t, args...)
	if err != nil {
		t.Fatalf("localhub %v: %v\n%s", args, err, out)
	}
	return out
}

func (n *newcomer) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := n.run(t, filepath.Join(n.bin, "kubectl"), append([]string{"--kubeconfig", filepath.Join(n.dir, "admin.kubeconfig")}, args...)...)
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return out
}

// processes returns the process IDs that `make status` lists, by name.
func (n *newcomer) processes(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\S+) +running, process (\d+)\b`).FindAllStringSubmatch(n.mustLocalhub(t, "status"), -1) {
		found[m[1]] = m[2]
	}
	return found
}

// rebuild replaces a binary by a different one, as go build does.
func (n *newcomer) rebuild(t *testing.T, name string) {
	t.Helper()
	built := harness.Must(os.Open(filepath.Join(n.bin, name)))(t)
	defer built.Close()
	changed := harness.Must(os.OpenFile(filepath.Join(n.bin, "changed"), os.O_CREATE|os.O_WRONLY, 0o700))(t)
	harness.Must(io.Copy(changed, io.MultiReader(built, strings.NewReader("changed"))))(t)
	if err := changed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(changed.Name(), built.Name()); err != nil {
		t.Fatal(err)
	}
}

// rows returns the clusters of each set in a table of members.
func rows(out string) map[string][]string {
	found := map[string][]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 6 && (f[2] == "true" || f[2] == "false") {
			found[f[0]] = append(found[f[0]], f[1])
		}
	}
	return found
}

func wantRows(t *testing.T, out, set string, want ...string) {
	t.Helper()
	if got := rows(out)[set]; !slices.Equal(got, want) {
		t.Errorf("the members of %s are %v, want %v:\n%s", set, got, want, out)
	}
}

func TestNewcomer_GetsHub(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	harness.Contains(t, n.mustLocalhub(t, "status"), "is not running")
	harness.Contains(t, n.mustLocalhub(t, "down"), "is not running")

	up := n.mustLocalhub(t, "up")
	if !regexp.MustCompile(`(?m)^The hub is up after \d+\S*: 15 clusters, 8 sets, \d+ memberships, 1 placement, 0 works, 1 access request\.$`).MatchString(up) ||
		strings.Count(up, "\n") > 30 {
		t.Errorf("it is not said in six numbers what there is:\n%s", up)
	}
	members := n.kubectl(t, "get", "clustersetmembers")
	wantRows(t, members, "payments", "frankfurt-1", "tokyo-1", "tokyo-2", "virginia-1")
	wantRows(t, members, "apacset", "seoul-1", "sydney-1", "tokyo-1", "tokyo-2")
	wantRows(t, members, "middlewareenabledset", "frankfurt-1", "paris-1", "seoul-1", "tokyo-1", "virginia-1", "virginia-2")
	wantRows(t, members, "production-emea-amer", "frankfurt-1", "saopaulo-1", "virginia-1")
	wantRows(t, members, "devset", "dublin-1", "oregon-1", "paris-1", "sydney-1")

	// These are the commands at the end of the output: Dana sees the set devset.
	_, next, found := strings.Cut(up, "Next:\n")
	if !found {
		t.Fatalf("nothing is said of what comes next:\n%s", up)
	}
	out, err := n.run(t, "sh", "-ec", next)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantRows(t, out, "devset", "dublin-1", "oregon-1", "paris-1", "sydney-1")
	if len(rows(out)) != 1 {
		t.Errorf("Dana sees more than devset:\n%s", out)
	}
	// One cluster is not just an object: its agent has joined.
	if !regexp.MustCompile(`(?m)^berlin-1 +true +True +default .* v1\.`).MatchString(out) {
		t.Errorf("berlin-1 has not joined:\n%s", out)
	}
	n.wantAccess(t, out)

	before := n.processes(t)
	if len(before) != 12 {
		t.Errorf("these processes run: %v", before)
	}
	n.wantLessMemoryThan(t, 2200)

	n.kubectl(t, "label", "managedcluster", "tokyo-2", "lab-1", "--overwrite", harness.SetLabel+"=devset")
	n.kubectl(t, "delete", "managedcluster", "paris-1")
	wantDevset := func() {
		t.Helper()
		out := n.kubectl(t, "get", "clustersetmembers")
		wantRows(t, out, "devset", "dublin-1", "lab-1", "oregon-1", "sydney-1", "tokyo-2")
		wantRows(t, out, "payments", "frankfurt-1", "tokyo-1", "virginia-1")
	}

	n.rebuild(t, "hub-apiserver")
	n.kill(t, before["supervisor"], before["hub-certificate-approver"])
	n.wantMissing(t, "supervisor", "hub-certificate-approver")
	again := n.mustLocalhub(t, "up")
	wantDevset()
	after := n.processes(t)
	if strings.Count(again, "Restarting hub-apiserver") != 1 || after["hub-apiserver"] == before["hub-apiserver"] {
		t.Errorf("hub-apiserver has been built anew, and the old one runs, process %s:\n%s", after["hub-apiserver"], again)
	}
	for name, pid := range before {
		if isNew := slices.Contains([]string{"hub-apiserver", "supervisor", "hub-certificate-approver"}, name); isNew == (after[name] == pid) {
			t.Errorf("%s is process %s after %s, and only what has changed or was killed is replaced:\n%s", name, after[name], pid, again)
		}
	}
	n.wantStartedAgain(t, "hub-certificate-approver", after["hub-certificate-approver"])

	n.mustLocalhub(t, "down")
	harness.Contains(t, n.mustLocalhub(t, "status"), "is not running")
	if left := n.running(t); len(left) > 0 {
		t.Errorf("after make down these processes run: %v", left)
	}
	n.mustLocalhub(t, "up", "--detached")
	wantDevset()
	n.wantDetached(t)
	out, err = n.run(t, "env", "PATH="+n.bin+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(n.dir, "admin.kubeconfig"),
		"kubectl", "--context", "teams--blue", "get", "namespaces")
	if err != nil || !strings.Contains(out, "web ") {
		t.Errorf("blue cannot be used any more: %v: %s", err, out)
	}
	n.mustLocalhub(t, "clean")
	if _, err := os.Stat(n.dir); !os.IsNotExist(err) {
		t.Errorf("after make clean, %s is still there: %v", n.dir, err)
	}
	if left := n.running(t); len(left) > 0 {
		t.Errorf("after make clean these processes run: %v", left)
	}
	harness.Contains(t, n.mustLocalhub(t, "status"), "is not running")
	for _, left := range harness.Must(os.ReadDir(n.home))(t) {
		t.Errorf("%s was written outside of the hub's directory", left.Name())
	}
}

// kill kills processes as the kernel does when memory is exhausted.
func (n *newcomer) kill(t *testing.T, pids ...string) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(harness.Must(strconv.Atoi(pid))(t), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// wantMissing verifies that the status names processes that do not run, and fails.
func (n *newcomer) wantMissing(t *testing.T, names ...string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprint("the status says that these do not run: ", names), func(context.Context) (bool, error) {
		out, err := n.localhub(t, "status")
		for _, name := range names {
			if !regexp.MustCompile(`(?m)^` + name + ` +does not run`).MatchString(out) {
				return false, nil
			}
		}
		return err != nil && strings.Contains(out, fmt.Sprintf("localhub: %d of 12 processes do not run", len(names))), nil
	})
}

// wantStartedAgain kills a process, and verifies that the status reports the restart and its reason.
func (n *newcomer) wantStartedAgain(t *testing.T, name, pid string) {
	t.Helper()
	n.kill(t, pid)
	harness.Eventually(t, name+" is started again", func(context.Context) (bool, error) {
		out, err := n.localhub(t, "status")
		again := regexp.MustCompile(`(?m)^` + name + ` +running, process (\d+); restarted once, last \d+s ago: signal: killed, last log line: \S`).FindStringSubmatch(out)
		return err == nil && again != nil && again[1] != pid, nil
	})
}

// wantAccess checks the output about the example's cluster, and uses the access to it.
func (n *newcomer) wantAccess(t *testing.T, out string) {
	t.Helper()
	for _, want := range []string{
		`clusterprofile\S+/dev\.local\.default +local +default`, `teams +cluster\S+/blue +\["workload"\] +Ready +1\.\d+\.\d+ +local`,
		`teams +accessrequest\S+/ann +Granted`, `web +Active`,
	} {
		if !regexp.MustCompile("(?m)^" + want).MatchString(out) {
			t.Errorf("there is no line %s:\n%s", want, out)
		}
	}
	n.kubectl(t, "apply", "-f", harness.Must(filepath.Abs(filepath.Join(harness.Root, "artifacts/examples/access/clusterrequest.yaml")))(t))
	n.kubectl(t, "wait", "-n", "teams", "clusterrequests", "--all", "--for=jsonpath={.status.phase}=Granted", "--timeout="+harness.Timeout.String())
	harness.Contains(t, n.kubectl(t, "get", "-n", "teams", "clusterrequest", "shop", "-o", "jsonpath={.status.cluster.name}"), "blue")
	own := n.kubectl(t, "get", "-n", "teams", "clusterrequest", "preview", "-o", "jsonpath={.status.cluster.name}")
	n.kubectl(t, "delete", "-n", "teams", "clusterrequests", "shop", "preview")
	n.kubectl(t, "wait", "-n", "teams", "--for=delete", "cluster/"+own, "--timeout="+harness.Timeout.String())
}

// wantDetached checks the cluster whose agent hub-operator has deployed on the hub, and delivers a work to it.
func (n *newcomer) wantDetached(t *testing.T) {
	t.Helper()
	harness.Contains(t, n.kubectl(t, "get", "managedcluster", "madrid-1", "-o", `jsonpath={.status.conditions[?(@.status=="True")].type}`),
		"HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable")
	agent := n.kubectl(t, "get", "pods", "-A", "--field-selector", "spec.nodeName=this-machine,status.phase=Running")
	for _, name := range []string{"hub-operator-", "madrid-1-registration-agent-", "madrid-1-work-agent-"} {
		harness.Contains(t, agent, name)
	}
	work := filepath.Join(t.TempDir(), "work.yaml")
	if err := os.WriteFile(work, []byte("{apiVersion: v1, kind: Namespace, metadata: {name: hello}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := n.run(t, filepath.Join(n.bin, "kubectl-hub"), "--kubeconfig", filepath.Join(n.dir, "admin.kubeconfig"), "create", "work", "hello", "-f", work,
		"--clusters", "madrid-1", "--wait"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	there := harness.Must(n.run(t, filepath.Join(n.bin, "kubectl"), "--kubeconfig", filepath.Join(n.dir, "madrid-1", "admin.kubeconfig"), "get", "namespaces,nodes", "-o", "name"))(t)
	if !strings.Contains(there, "namespace/hello\n") || strings.Contains(there, "node/") {
		t.Errorf("madrid-1 has\n%s", there)
	}
}

// running returns the processes with the hub's directory in their command lines, by process ID.
func (n *newcomer) running(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range harness.Must(filepath.Glob("/proc/[0-9]*/cmdline"))(t) {
		if line, err := os.ReadFile(file); err == nil && regexp.MustCompile(regexp.QuoteMeta(n.dir)+`[/\x00]`).Match(line) {
			found[filepath.Base(filepath.Dir(file))] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}

// wantLessMemoryThan sums up the resident memory in MB, on systems that report it in /proc.
func (n *newcomer) wantLessMemoryThan(t *testing.T, limit int) {
	t.Helper()
	used := 0
	processes := n.running(t)
	if len(processes) == 0 && runtime.GOOS != "linux" {
		return
	}
	if len(processes) != 15 { // the processes of the hub and of two clusters
		t.Errorf("these processes run: %v", processes)
	}
	for pid, line := range processes {
		status, err := os.ReadFile("/proc/" + pid + "/status")
		resident := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
		if resident == nil {
			t.Fatalf("the memory of process %s, %s: %v: %s", pid, line, err, status)
		}
		kilobytes := harness.Must(strconv.Atoi(string(resident[1])))(t)
		used += kilobytes / 1000
	}
	t.Logf("%d MB are resident", used)
	if used >= limit {
		t.Errorf("the hub takes %d MB of memory, want less than %d", used, limit)
	}
}

func TestNewcomer_ErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	notAHub := t.TempDir()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"upp"}, `unknown command "upp"`},
		{[]string{"up", "there"}, `unknown command "there"`},
		{[]string{"up", "--fast"}, "unknown flag: --fast"},
		{[]string{"up", "--dir"}, "flag needs an argument: --dir"},
		{[]string{"up", "--bin-dir", "nowhere"}, "nowhere/etcd is missing: build it with `make build kube`"},
		{[]string{"clean", "--dir", notAHub}, notAHub + " has no hub"},
	} {
		out, err := n.localhub(t, c.args...)
		if err == nil || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "localhub: ") || !strings.Contains(out, c.says) {
			t.Errorf("localhub %v: %v, want one line that says %q:\n%s", c.args, err, c.says, out)
		}
	}
}
