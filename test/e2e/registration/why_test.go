// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

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

	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// asker runs kubectl hub why, and executes the commands that it prints, as a user with one kubeconfig for the hub and the cluster does.
type asker struct {
	*testing.T
	env []string
}

func (a *asker) sh(line string) (string, error) {
	cmd := exec.CommandContext(a.Context(), "sh", "-c", line)
	cmd.Env = a.env
	out, err := cmd.Output()
	if end := (&exec.ExitError{}); errors.As(err, &end) {
		err = fmt.Errorf("%w: %s", err, end.Stderr)
	}
	return string(out), err
}

// why runs the command, and checks that the exit code agrees with the answer.
func (a *asker) why(question string) (answer diagnosis.Answer, err error) {
	a.Helper()
	out, err := a.sh("kubectl hub why " + question + " --context hub -o json")
	code := 0
	if end := (&exec.ExitError{}); errors.As(err, &end) {
		code = end.ExitCode()
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return answer, fmt.Errorf("%w: %s", err, out)
	}
	if want := map[bool]int{true: 2, false: 0}[answer.Finding != nil]; code != want {
		return answer, fmt.Errorf("it ends with %d: %v: %s", code, err, out)
	}
	return answer, nil
}

// finds waits until the answer has a finding, or no finding for "".
func (a *asker) finds(question string, id diagnosis.ID) (found diagnosis.Finding) {
	a.Helper()
	harness.Eventually(a.T, "why "+question+" finds "+string(id), func(context.Context) (bool, error) {
		answer, err := a.why(question)
		if err != nil {
			return false, err
		}
		if answer.Finding != nil {
			found = *answer.Finding
		} else {
			found = diagnosis.Finding{}
		}
		return harness.Holds(found.ID == id, fmt.Sprintf("%+v", answer))
	})
	return found
}

// paste runs a command as it was printed.
func (a *asker) paste(line string) {
	a.Helper()
	line = strings.ReplaceAll(line, "<CONTEXT OF THE CLUSTER>", "cluster")
	if out, err := a.sh(line); err != nil {
		a.Fatalf("%s: %v: %s", line, err, out)
	}
}

// tells waits for an event of the hub about the work, as kubectl describe shows it.
func (a *asker) tells(event string) {
	a.Helper()
	harness.Eventually(a.T, event, func(context.Context) (bool, error) {
		out, err := a.sh(`kubectl get events -A --context hub --field-selector involvedObject.kind=ManifestWork,involvedObject.name=nowhere -o jsonpath='{range .items[*]}{.type} {.reason} {.message}{"\n"}{end}'`)
		return harness.Holds(strings.Contains(out, event+"\n"), fmt.Sprint(out, err))
	})
}

// TestWhy_FindsFaultsAndFixesWork breaks a cluster that joins, step by step, and runs the commands that kubectl hub why prints.
func TestWhy_FindsFaultsAndFixesWork(t *testing.T) {
	m := newManaged(t, harness.Hub(t))
	m.worker(t)
	kubeconfig := harness.WithContexts(t, map[string]*localhub.Instance{"hub": m.hub, "cluster": m.Instance})
	a := &asker{t, append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PATH=") }),
		"KUBECONFIG="+kubeconfig, "HOME="+t.TempDir(), "PATH="+harness.BinDir(t)+string(filepath.ListSeparator)+os.Getenv("PATH"))}
	c := "cluster " + m.name

	a.finds(c, diagnosis.ClusterMissing)
	agent := func() (stop func()) { return m.agent(t, "--works", "--lease-duration-seconds=1") }
	stop := agent()
	harness.Eventually(t, "the cluster asks for a certificate", func(context.Context) (bool, error) { return len(m.requests(t)) == 1, nil })
	found := a.finds(c, diagnosis.ClusterNotAccepted)
	harness.Contains(t, found.Turn, "group system:masters")
	a.paste(found.Fix[0])
	a.finds(c, "")

	// A user may get the cluster and the set, but may not write the label that decides.
	harness.MustKubectlOf(t, m.hub, payments, "apply", "-f", "-")
	harness.Grant(t, m.hub, "dana", "dana", harness.Rule("get,list,update,patch", "managedclusters"), harness.Rule("get,list", "managedclustersets"))
	member := "member " + m.name + " --set payments"
	found = a.finds(member+" --as dana", diagnosis.LabelDiffers)
	harness.Contains(t, found.Turn, "you may not")
	harness.Contains(t, found.Cause, "into the set default")
	label := found.Fix[0]
	if out, err := a.sh(label + " --as dana"); err == nil {
		t.Fatalf("dana writes the label: %s", out)
	}
	access := "access dana write " + harness.SetLabel + "="
	for _, fix := range a.finds(access+"payments", diagnosis.AccessMissing).Fix {
		a.paste(fix)
	}
	for _, value := range []string{"payments", "default"} { // leaving or falling back to default requires no additional right
		a.finds(access+value, "")
	}
	harness.Eventually(t, "dana may write the label", func(context.Context) (bool, error) {
		out, err := a.sh(label + " --as dana")
		return harness.Holds(err == nil, fmt.Sprint(out, err))
	})
	a.finds(member, "")

	// The cluster lacks a namespace of a work.
	harness.MustKubectlOf(t, m.hub, fmt.Sprintf(workOfNowhere, m.name), "apply", "-f", "-")
	work := "work nowhere --cluster " + m.name
	found = a.finds(work, diagnosis.ManifestNotApplied)
	harness.Contains(t, found.Cause, "ConfigMap nowhere/nowhere is not applied", `namespaces "nowhere" not found`)
	a.tells("Warning AppliedManifestWorkFailed Failed to apply manifest work")
	a.paste(found.Fix[0])
	a.finds(work, "")
	a.tells("Normal AppliedManifestWorkComplete Apply manifest work complete")

	// An agent that does not respond is the cause of the unknown status of its works.
	stop()
	found = a.finds(c, diagnosis.AgentNotHeard)
	if found.Since == nil {
		t.Error("it does not say since when")
	}
	a.finds(work, diagnosis.AgentNotHeard)
	stop = agent()
	a.finds(c, "")
	stop()

	// A user without rights gets an error, and not the answer that all is well.
	if out, err := a.sh("kubectl hub why " + c + " --as nobody --context hub"); err == nil || !strings.Contains(out, "NOT SEEN") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("a user without rights: %v: %s", err, out)
	}
}

const payments = `
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: payments}
`

const workOfNowhere = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: nowhere, namespace: %s}
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: nowhere, namespace: nowhere}, data: {text: hello}}
`
