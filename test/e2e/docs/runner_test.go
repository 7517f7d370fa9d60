// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"testing"
)

// The session is one: what a command leaves, the next one has.
func TestShell_IsOneSession(t *testing.T) {
	s, code := newShell(t, t.TempDir(), "PATH="+os.Getenv("PATH")), 0
	for _, c := range []struct {
		typed, prints string
		code          int
	}{
		{"a=b # a comment", "", 0},
		{"mkdir new && cd new && basename \"$PWD\"", "new\n", 0},
		{"cat - > file <<EOF\nfrom $a\nEOF", "", 0},
		{"cat file; echo wrong >&2; (exit 7)", "from b\nwrong\n", 7},
		{"echo $?", "7\n", 0},
		{"printf 'no end'", "no end", 0},
		{"cat", "", 0},
		{"no-such-command 2>/dev/null", "", 127},
	} {
		var said string
		if said, code = s.run(t, c.typed, code); said != c.prints || code != c.code {
			t.Errorf("%s: %q and %d, want %q and %d", c.typed, said, code, c.prints, c.code)
		}
	}
}

// Only what changes nothing is typed again.
func TestReads_AreCommandsThatChangeNothing(t *testing.T) {
	for typed, want := range map[string]bool{
		"kubectl get csm":                                      true,
		"kubectl -n dev get placementdecisions":                true,
		"kubectl --kubeconfig a/b get nodes":                   true,
		"kubectl --context c1 -n a get secret":                 true,
		"kubectl auth can-i get pods":                          true,
		"kubectl events --for managedcluster/a":                true,
		"kubectl hub get works":                                true,
		"kubectl hub why cluster a":                            true,
		"kubectl hub rollout status a -n b":                    true,
		"kubectl hub work status web":                          true,
		"kubectl hub rollout undo a":                           false,
		"kubectl hub get token":                                false,
		"kubectl hub accept --clusters a":                      false,
		"kubectl create role get":                              false,
		"kubectl label managedcluster a b=c --as agent":        false,
		"kubectl hub create work web -f demo/ --clusters x":    false,
		"kubectl delete cluster red -n teams --wait=false":     false,
		"kubectl --context teams--blue get configmaps":         true,
		"kubectl --context teams--blue create configmap get":   false,
		"kubectl hub access blue -n teams --cluster-role view": false,
	} {
		if got := reads.MatchString(typed); got != want {
			t.Errorf("%s: %v", typed, got)
		}
	}
}
