// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

func someone(name string) user.Info {
	return &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}
}

var admin = &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}}

// state lets ann get the given sets, which are separated by commas, and bob the set z.
func state(sets string) *ruling {
	index := rbac.NewIndex(rbac.Attributes{Verb: "get", Group: "g", Resource: "sets"})
	for name, names := range map[string]string{"ann": sets, "bob": "z"} {
		index.SetClusterRole(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{"g"}, Resources: []string{"sets"}, ResourceNames: strings.Split(names, ","),
		}}})
		index.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: name}}})
	}
	return &ruling{sets: index.Snapshot()}
}

// historyOf has an epoch for each of the states, at the versions 10, 20 and so on. A "?" is a state that is not known here.
func historyOf(states ...string) *history {
	h := newHistory()
	for i, sets := range states {
		digest := "unknown"
		if sets != "?" {
			s := state(sets)
			h.learn(s)
			digest = s.Hash()
		}
		if version := uint64(i+1) * 10; i == 0 {
			h.reset(version, digest)
		} else {
			h.enter(version, digest)
		}
	}
	return h
}

// TestHistory_WatchContinuesWithoutRevocation: a revoked right opens no watch at an earlier version, whatever was granted in between.
func TestHistory_WatchContinuesWithoutRevocation(t *testing.T) {
	for _, c := range []struct {
		states  string
		version uint64
		// want are the sets that are visible at the version, or "410" if the user has to list again.
		want string
	}{
		{"a", 10, "a"},
		{"a", 19, "a"},
		{"a", 9, "410"},
		{"a a,b", 10, "a"},
		{"a a,b", 20, "a,b"},
		{"a,b a", 10, "410"},
		{"a,b a", 19, "410"},
		{"a,b a", 20, "a"},
		{"a a,b a", 10, "410"},
		{"a a,b a", 20, "410"},
		{"a a,b a", 30, "a"},
		{"a b a,b", 10, "a"},
		{"a b", 10, "410"},
		{"? a", 10, "410"},
		{"? a", 20, "a"},
		{"a ? a", 10, "410"},
		{"a ?", 10, "410"},
		{"a ?", 20, "410"},
	} {
		h := historyOf(strings.Fields(c.states)...)
		got := "410"
		names, err := h.resume(c.version, someone("ann"))
		if err == nil {
			got = strings.Join(names.Sorted(), ",")
		} else if !apierrors.IsResourceExpired(err) {
			t.Errorf("%q from %d: %v", c.states, c.version, err)
		}
		if got != c.want {
			t.Errorf("%q from %d: %s, want %s", c.states, c.version, got, c.want)
		}
		if c.version >= 10 && !strings.Contains(c.states, "?") {
			if names, err := h.resume(c.version, someone("bob")); err != nil || !names.Equal(rbac.NamesOf("z")) {
				t.Errorf("%q from %d: what ann loses, bob does: %v, %v", c.states, c.version, names, err)
			}
		}
	}
}

func TestHistory_VisibleAtVersion(t *testing.T) {
	h := historyOf("a", "?", "b")
	for version, want := range map[uint64]string{9: "unknown", 10: "a", 19: "a", 20: "unknown", 29: "unknown", 30: "b", 99: "b"} {
		got := "unknown"
		if names, known := h.at(version, someone("ann")); known {
			got = strings.Join(names.Sorted(), ",")
		}
		if got != want {
			t.Errorf("at %d: %s, want %s", version, got, want)
		}
		if names, known := h.at(version, admin); !known || !names.All {
			t.Errorf("at %d an admin sees %v", version, names)
		}
	}
}

// TestHistory_RetainsLatestEpochs: older versions than the retained ones behave as if they had never existed.
func TestHistory_RetainsLatestEpochs(t *testing.T) {
	h := historyOf("a", "b")
	digest := state("b").Hash()
	for i := range keptEpochs {
		if _, known := h.at(20, someone("ann")); !known {
			t.Fatalf("after %d more epochs, one of %d is not kept", i, keptEpochs)
		}
		h.enter(uint64(100+i), digest)
	}
	if _, known := h.at(20, someone("ann")); known {
		t.Errorf("keeps more than %d epochs", keptEpochs)
	}
	if len(h.epochs) != keptEpochs {
		t.Errorf("keeps %d epochs, want %d", len(h.epochs), keptEpochs)
	}
	for i := range keptStates + 1 {
		h.learn(state(fmt.Sprint("s", i)))
	}
	if len(h.states) != keptStates || h.latest().Hash() != state(fmt.Sprint("s", keptStates)).Hash() {
		t.Errorf("keeps %d states, want %d with the latest", len(h.states), keptStates)
	}
}

func TestHistory_WaitsForRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := historyOf("a")
		b := state("b")
		h.enter(20, b.Hash())
		if names, since, err := h.now(t.Context(), admin); err != nil || !names.All || since != 20 {
			t.Errorf("an admin waits: %v, %d, %v", names, since, err)
		}
		if _, _, err := h.now(t.Context(), someone("ann")); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("of rules that never come: %v, want 503", err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			names, since, err := h.now(t.Context(), someone("ann"))
			if err != nil || !names.Equal(rbac.NamesOf("b")) || since != 20 {
				t.Errorf("when they have come: %v, %d, %v", names, since, err)
			}
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("did not wait")
		default:
		}
		h.learn(b)
		<-done
		if _, known := h.at(10, someone("ann")); !known {
			t.Error("has forgotten the epoch before")
		}
	})
}

// TestHistory_EachResourceReportsEpoch: each derived resource reaches a change of the rules with its own watch, one before the other.
func TestHistory_EachResourceReportsEpoch(t *testing.T) {
	h := historyOf("a", "b", "c") // by a resource that is ahead
	h.learn(state("a,b"))
	h.enter(20, state("b").Hash())
	h.enter(15, state("a,b").Hash())
	h.enter(20, state("b").Hash())
	for version, want := range map[uint64]string{10: "a", 15: "a,b", 20: "b", 29: "b", 30: "c"} {
		if names, known := h.at(version, someone("ann")); !known || strings.Join(names.Sorted(), ",") != want {
			t.Errorf("at %d: %v, want %s", version, names.Sorted(), want)
		}
	}
	if len(h.epochs) != 4 {
		t.Errorf("%d epochs, want 4: the same one counts once", len(h.epochs))
	}
}

// TestHistory_RestartRetainsLaterEpochs: a resource that starts late, with an older list, restores nothing that was revoked since.
func TestHistory_RestartRetainsLaterEpochs(t *testing.T) {
	h := historyOf("a", "a,b", "c")
	h.reset(20, state("a,b").Hash())
	if names, _, err := h.now(t.Context(), someone("ann")); err != nil || !names.Equal(rbac.NamesOf("c")) {
		t.Errorf("now: %v, %v, want c", names.Sorted(), err)
	}
	if _, known := h.at(19, someone("ann")); known {
		t.Error("what was before is still known")
	}
	if names, known := h.at(20, someone("ann")); !known || !names.Equal(rbac.NamesOf("a", "b")) {
		t.Errorf("at 20: %v", names.Sorted())
	}
}

// TestHistory_NextResourceReportsEpoch: rules for which another resource's watch waited in vain may have arrived since.
func TestHistory_NextResourceReportsEpoch(t *testing.T) {
	h := historyOf("a")
	b := state("b")
	h.enter(20, b.Hash())
	h.enter(30, state("a").Hash())
	h.learn(b)
	if _, known := h.at(20, someone("ann")); known {
		t.Fatal("an epoch of the past is known without anybody looking")
	}
	h.enter(20, b.Hash())
	if names, known := h.at(20, someone("ann")); !known || !names.Equal(rbac.NamesOf("b")) {
		t.Errorf("at 20: %v, %t", names.Sorted(), known)
	}
}
