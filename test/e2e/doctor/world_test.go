// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// world is a hub, and a cluster beside it.
type world struct {
	plugin     harness.Plugin
	hub, spoke *localhub.Instance
	// path has programs that take precedence over those of this machine, if it is set.
	path string
}

const onHub, onSpoke = "hub", "c1"

func newWorld(t *testing.T) *world {
	t.Helper()
	hub := harness.OwnHub(t, func(c *localhub.Options) {
		c.HubControllerManagerArgs = nil
		c.HubAPIServerArgs = append(c.HubAPIServerArgs, fmt.Sprintf("--embedded-etcd-quota-backend-bytes=%d", smallEtcd))
		c.FrontArgs = []string{"--enable-bootstrap-token-auth"}
		c.Clusters = 1
	})
	spoke := harness.Must(hub.Clusters())(t)[0]
	return &world{hub: hub, spoke: spoke, plugin: harness.Plugin{Kubeconfig: harness.WithContexts(t, map[string]*localhub.Instance{onHub: hub, onSpoke: spoke})}}
}

type finding struct {
	ID, Severity, Object, Cause, Turn, Link string
	Fix                                     []string
}

type report struct {
	Findings        []finding
	Checked, Unseen []string
	// code is the exit code of the program.
	code int
}

func (r report) String() string {
	data, _ := json.MarshalIndent(r, "", " ")
	return string(data)
}

// has returns the finding about an object.
func (r report) has(id, object string) *finding {
	for i := range r.Findings {
		if r.Findings[i].ID == id && strings.HasPrefix(r.Findings[i].Object, object) {
			return &r.Findings[i]
		}
	}
	return nil
}

func (w *world) doctor(t *testing.T, where string, args ...string) (r report) {
	t.Helper()
	stdout, stderr, err := w.plugin.Run(t, append([]string{"doctor", "-o", "json", "--context", where}, args...)...)
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		r.code = exit.ExitCode()
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("doctor %v: %v: %s%s", args, err, stdout, stderr)
	}
	worst := slices.ContainsFunc(r.Findings, func(f finding) bool { return f.Severity == "Error" })
	if worst != (r.code == 2) || !worst && r.code != 0 {
		t.Errorf("it ends with %d:\n%s", r.code, r)
	}
	return r
}

// healthy waits until there are no findings.
func (w *world) healthy(t *testing.T, where string, args ...string) {
	t.Helper()
	harness.Eventually(t, "there is no finding", func(context.Context) (bool, error) {
		r := w.doctor(t, where, args...)
		return harness.Holds(len(r.Findings) == 0, r)
	})
}

// found waits for a finding, and checks that it contains the words.
func (w *world) found(t *testing.T, where, id, object string, words []string, args ...string) (f finding) {
	t.Helper()
	harness.Eventually(t, "doctor finds "+id+" of "+object, func(context.Context) (bool, error) {
		r := w.doctor(t, where, args...)
		got := r.has(id, object)
		if got != nil {
			f = *got
		}
		return harness.Holds(got != nil, r)
	})
	harness.Contains(t, f.Cause, words...)
	if f.Turn == "" || !strings.HasSuffix(f.Link, "findings.md#"+strings.ToLower(id)) || len(f.Fix) == 0 {
		t.Errorf("%s does not say whose turn it is, what to do, or where to read on: %+v", id, f)
	}
	return f
}

// paste runs the printed commands in a shell, with kubectl and its plugin. replace has the replacements of <WORDS LIKE THESE>. It returns the output
// of the commands.
func (w *world) paste(t *testing.T, f finding, replace ...string) (out string) {
	t.Helper()
	for _, line := range f.Fix {
		line = strings.NewReplacer(replace...).Replace(line)
		if strings.Contains(line, "kubectl") && !strings.HasPrefix(line, "#") && !strings.Contains(line, "--context") {
			t.Errorf("%s: %q does not say on which cluster, and the user has", f.ID, line)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", line)
		cmd.Env = append(w.plugin.Command(t).Env, "PATH="+w.path+":"+filepath.Dir(harness.Binary(t, "kubectl-hub"))+":"+os.Getenv("PATH"))
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %s: %v\n%s", f.ID, line, err, said)
		}
		out += string(said)
	}
	return out
}

func (w *world) kubectl(t *testing.T, where, stdin string, args ...string) string {
	t.Helper()
	h := w.hub
	if where == onSpoke {
		h = w.spoke
	}
	return harness.MustKubectlOf(t, h, stdin, args...)
}
