// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

const (
	// keptEpochs and keptStates limit how far back a watch can be resumed across changes of the rules.
	keptEpochs = 256
	keptStates = 256
)

// history has the rules that are in effect at each version of the members, and so what a user may see at it.
type history struct {
	mu sync.Mutex
	// epochs are ordered by version. The slice is replaced, never modified, so that readers may hold it.
	epochs []epoch
	// states are the latest states that this replica went through, the newest last.
	states []*ruling
	// changed is closed and replaced when a state or an epoch is added.
	changed chan struct{}
}

// epoch is a state of the rules and the version of the members from which on it is in effect. rules is nil while this replica does not know the
// state: then only system:masters is shown anything.
type epoch struct {
	version uint64
	digest  string
	rules   *ruling
}

func newHistory() *history { return &history{changed: make(chan struct{})} }

// isPrivileged reports whether no rule affects what the user sees.
func isPrivileged(who user.Info) bool {
	return slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup)
}

// names returns what a user may see.
func (e epoch) names(who user.Info) (visibleObjects, bool) {
	if isPrivileged(who) {
		return visibleObjects{Names: rbac.Names{All: true}, byName: rbac.Names{All: true}}, true
	}
	if e.rules == nil {
		return visibleObjects{}, false
	}
	return e.rules.seenBy(who), true
}

// learn adds a state that this replica has reached.
func (h *history) learn(state *ruling) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.states); n > 0 && h.states[n-1].Hash() == state.Hash() {
		return
	}
	h.states = append(slices.Clip(h.states[max(0, len(h.states)+1-keptStates):]), state)
	if n := len(h.epochs); n > 0 && h.epochs[n-1].rules == nil && h.epochs[n-1].digest == state.Hash() {
		h.epochs = slices.Clone(h.epochs)
		h.epochs[n-1].rules = state
	}
	h.broadcast()
}

// latest returns the newest state that this replica has reached, or nil before the first.
func (h *history) latest() *ruling {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.states) == 0 {
		return nil
	}
	return h.states[len(h.states)-1]
}

// reset removes what was before a version. Later epochs come from another derived resource, whose watch is ahead: what they revoked stays revoked.
func (h *history) reset(version uint64, digest string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	epochs := []epoch{{version, digest, h.find(digest)}}
	for _, later := range h.epochs {
		if later.version > version {
			epochs = append(epochs, later)
		}
	}
	h.epochs = epochs
	h.broadcast()
}

// lookup returns the state with a digest, if this replica has reached it. changed is closed when that may have changed.
func (h *history) lookup(digest string) (state *ruling, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.find(digest), h.changed
}

// enter starts an epoch, and returns its rules if they are known here. Each derived resource reaches it with its own watch, and so maybe after
// another one has reached a later one.
func (h *history) enter(version uint64, digest string) *ruling {
	h.mu.Lock()
	defer h.mu.Unlock()
	entered := epoch{version, digest, h.find(digest)}
	at, found := slices.BinarySearchFunc(h.epochs, version, func(e epoch, version uint64) int { return cmp.Compare(e.version, version) })
	switch {
	case !found:
		epochs := slices.Insert(slices.Clone(h.epochs), at, entered)
		h.epochs = epochs[max(0, len(epochs)-keptEpochs):]
	case h.epochs[at].rules != nil:
		return h.epochs[at].rules
	default:
		h.epochs = slices.Clone(h.epochs)
		h.epochs[at] = entered
	}
	h.broadcast()
	return entered.rules
}

func (h *history) broadcast() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// find must be called with the lock held.
func (h *history) find(digest string) *ruling {
	for _, s := range slices.Backward(h.states) {
		if s.Hash() == digest {
			return s
		}
	}
	return nil
}

// errRulesNotKept makes clients list again, by the current rules.
var errRulesNotKept = apierrors.NewResourceExpired("your visibility has changed since this version: list again")

var errUnknownRules = errors.New("your visibility is not known yet, because RBAC rules have just changed: try again")

// now returns what a user may see, and from which version on. It waits for a moment if this replica does not know the rules.
func (h *history) now(ctx context.Context, who user.Info) (names visibleObjects, since uint64, err error) {
	timeout := time.NewTimer(10 * catchUp)
	defer timeout.Stop()
	for {
		h.mu.Lock()
		var current epoch
		if n := len(h.epochs); n > 0 {
			current = h.epochs[n-1]
		}
		changed := h.changed
		h.mu.Unlock()
		if names, known := current.names(who); known {
			return names, current.version, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return visibleObjects{}, 0, ctx.Err()
		case <-timeout.C:
			return visibleObjects{}, 0, generic.Unavailable(errUnknownRules)
		}
	}
}

// at returns what a user may see at a version, or false if its rules are not retained or not known.
func (h *history) at(version uint64, who user.Info) (visibleObjects, bool) {
	var then epoch
	if epochs := h.since(version); len(epochs) > 0 {
		then = epochs[0]
	}
	return then.names(who)
}

// resume returns what a user may see at a version from which a watch continues. Later events are filtered by the rules of their time. None of them
// may be about what was revoked since: a client that reconnects after that must list what is left.
func (h *history) resume(version uint64, who user.Info) (visibleObjects, error) {
	epochs := h.since(version)
	if len(epochs) == 0 {
		return visibleObjects{}, errRulesNotKept
	}
	now, known := epochs[len(epochs)-1].names(who)
	if !known {
		return visibleObjects{}, errRulesNotKept
	}
	for _, epoch := range epochs {
		if then, known := epoch.names(who); !known || !now.covers(then) {
			return visibleObjects{}, errRulesNotKept
		}
	}
	then, _ := epochs[0].names(who)
	return then, nil
}

// since returns the epoch that is in effect at a version and all later ones, or none if it is not retained.
func (h *history) since(version uint64) []epoch {
	h.mu.Lock()
	epochs := h.epochs
	h.mu.Unlock()
	i := len(epochs) - 1
	for i >= 0 && epochs[i].version > version {
		i--
	}
	if i < 0 {
		return nil
	}
	return epochs[i:]
}
