// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgeplacements"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/edge"
)

const (
	// failsFor is how long a work has to be failed until that counts: agents apply again what a webhook or a missing namespace has refused.
	failsFor = time.Minute
	// firstRetry and lastRetry bound how long a version that has failed waits until it is tried again.
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
)

// attempts records which versions of a policy were tried on a node.
type attempts struct {
	// of is a hash of the policy and its services. It is empty where there is no other version to try.
	of   string
	list []edgev1alpha1.VersionAttempt
	// versions are those that the policy names.
	versions []edgev1alpha1.ServiceVersion
	// decide returns what the node gets if these versions have failed.
	decide func(failed []string) edge.Decision
}

// newAttempts returns the attempts of a placement that are about the policy and the services as they are now.
func newAttempts(p *edgev1alpha1.EdgePlacement, policy *edgev1alpha1.DeploymentPolicy, services []*edgev1alpha1.EdgeService) *attempts {
	a := &attempts{}
	if policy == nil || len(policy.Spec.Service.ServiceVersions) < 2 {
		return a
	}
	a.versions = policy.Spec.Service.ServiceVersions
	ids := []string{fmt.Sprint(policy.UID, " ", policy.Generation)}
	for _, s := range services {
		if a.priority(s.Spec.Version) != nil {
			ids = append(ids, fmt.Sprint(s.UID, " ", s.Generation))
		}
	}
	slices.Sort(ids[1:])
	text, err := json.Marshal(ids)
	if err != nil {
		return a // Texts have no fault.
	}
	sum := sha256.Sum256(text)
	if a.of = hex.EncodeToString(sum[:16]); a.of == p.Status.AttemptsOf {
		a.list = slices.Clone(p.Status.Attempts)
	}
	return a
}

// priority returns what a policy says about a version, nil if it says nothing.
func (a *attempts) priority(version string) *edgev1alpha1.Priority {
	for i := range a.versions {
		if a.versions[i].Version == version {
			return a.versions[i].Priority
		}
	}
	return nil
}

// observe records what came of the version of a placement, of which t is the state. It returns when to look again, and whether the version is
// due to be tried again: by a new work.
func (a *attempts) observe(p *edgev1alpha1.EdgePlacement, w *workv1.ManifestWork, t *told, now time.Time) (again time.Duration, retry bool) {
	if a.of == "" {
		return 0, false
	}
	version := p.Spec.Services[0].Version
	limits := a.priority(version)
	if limits == nil {
		return 0, false
	}
	since := now
	if s := &p.Status; s.State == t.state && s.ObservedGeneration == p.Generation && s.LastTransitionTime != nil {
		since = s.LastTransitionTime.Time
	}
	i := slices.IndexFunc(a.list, func(one edgev1alpha1.VersionAttempt) bool { return one.Version == version })
	one := edgev1alpha1.VersionAttempt{Version: version}
	if i >= 0 {
		one = a.list[i]
	}
	switch {
	case one.State == edgev1alpha1.AttemptVerified, one.State == edgev1alpha1.AttemptGivenUp:
		return 0, false
	case t.state == edgev1alpha1.PlacementRunning:
		if left := seconds(limits.VerifiedDurations) - now.Sub(since); left > 0 {
			return left, false
		}
		one.State = edgev1alpha1.AttemptVerified
	case t.state != edgev1alpha1.PlacementFailed:
		return 0, false
	case one.Work != w.UID || one.LastFailureTime == nil:
		if left := failsFor - now.Sub(since); left > 0 {
			return left, false
		}
		fail(&one, limits, w.UID, t.message, now)
	}
	if t.state == edgev1alpha1.PlacementFailed {
		switch {
		case one.Failures <= limits.Retries:
			one.State = edgev1alpha1.AttemptRetrying
			again = max(retryDelay(one.Failures)-now.Sub(one.LastFailureTime.Time), 0)
			retry = again == 0
		case a.another(one.Version):
			one.State = edgev1alpha1.AttemptGivenUp
		default:
			one.State = ""
		}
	}
	if i >= 0 {
		a.list[i] = one
	} else {
		a.list = append(a.list, one)
	}
	return again, retry
}

// fail counts a failure. Those before the time that the policy sets do not count any more.
func fail(one *edgev1alpha1.VersionAttempt, limits *edgev1alpha1.Priority, work types.UID, message string, now time.Time) {
	at := metav1.NewTime(now)
	if window := seconds(limits.RetryDurations); one.FirstFailureTime == nil || window > 0 && now.Sub(one.FirstFailureTime.Time) > window {
		one.Failures, one.FirstFailureTime = 0, &at
	}
	one.Failures, one.LastFailureTime, one.Work, one.Message = min(one.Failures, limits.Retries)+1, &at, work, kit.Message(message)
}

// another reports whether the node gets another version that has not failed, if this one has.
func (a *attempts) another(version string) bool {
	failed := append(edgeplacements.GivenUp(a.list), version)
	next := a.decide(failed)
	return next.Compatible && !slices.Contains(failed, next.Version)
}

// givenUp returns what to add to the message of a placement: why it has not the version that comes first.
func (a *attempts) givenUp() (text string) {
	for _, one := range a.list {
		if one.State == edgev1alpha1.AttemptGivenUp {
			text += fmt.Sprintf("; version %s is given up after %d failures: %s", one.Version, one.Failures, one.Message)
		}
	}
	return text
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

func retryDelay(failures int32) time.Duration {
	delay := firstRetry
	for range failures - 1 {
		if delay *= 2; delay >= lastRetry {
			return lastRetry
		}
	}
	return delay
}

// serviceOf returns the key by which placements with attempts are found for a version that is not theirs now.
func serviceOf(obj client.Object) string {
	s := obj.(*edgev1alpha1.EdgeService)
	return serviceKey(s.Namespace, s.Spec.URL, "", "")
}
