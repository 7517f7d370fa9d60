// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// epoch is a state of the rules and the version of the members from which on it holds. rules is nil while this replica
// does not know the state: then nobody but system:masters is shown anything.
type epoch struct {
	version uint64
	digest  string
	rules   *rbac.Snapshot
}

// names are the sets that a user may get.
func (e epoch) names(who user.Info) (rbac.Names, bool) {
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return rbac.Names{All: true}, true
	}
	if e.rules == nil {
		return rbac.Names{}, false
	}
	return e.rules.NamesFor(who), true
}

// errRulesNotKept makes clients list anew, by the rules of now.
var errRulesNotKept = apierrors.NewResourceExpired("what you may see has changed since this version: list the members anew")

var errUnknownRules = errors.New("which sets you may see is not known yet, because RBAC rules have just changed: try again")

// now returns the epoch that counts, and waits a moment when this replica does not know its rules.
func (a *access) now(ctx context.Context, who user.Info) (epoch, rbac.Names, error) {
	timeout := time.NewTimer(10 * catchUp)
	defer timeout.Stop()
	for {
		a.mu.Lock()
		var current epoch
		if n := len(a.epochs); n > 0 {
			current = a.epochs[n-1]
		}
		changed := a.changed
		a.mu.Unlock()
		if names, known := current.names(who); known {
			return current, names, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return epoch{}, rbac.Names{}, ctx.Err()
		case <-timeout.C:
			return epoch{}, rbac.Names{}, unavailable(errUnknownRules)
		}
	}
}

// unavailable is a 503 that asks the client to try again in a second.
func unavailable(reason error) error {
	err := apierrors.NewServiceUnavailable(reason.Error())
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// at returns the epoch that holds at a version, or false when it is not kept or not known.
func (a *access) at(version uint64) (epoch, bool) {
	if epochs := a.since(version); len(epochs) > 0 {
		return epochs[0], true
	}
	return epoch{}, false
}

// since returns the epoch that holds at a version and all after it, or none when it is not kept or not known.
func (a *access) since(version uint64) []epoch {
	a.mu.Lock()
	epochs := a.epochs
	a.mu.Unlock()
	i := len(epochs) - 1
	for i >= 0 && epochs[i].version > version {
		i--
	}
	if i < 0 {
		return nil
	}
	return epochs[i:]
}
