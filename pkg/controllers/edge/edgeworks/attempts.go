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

	edgeapi "github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgeplacements"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// failsFor is the time for which a service must fail until that counts: agents retry what a webhook or a missing namespace has refused.
	failsFor = time.Minute
	// firstRetry and lastRetry are the shortest and the longest delay until a failed version is tried again.
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
)

// attempts records which versions of the services of a policy or pattern were tried on a node.
type attempts struct {
	// of is a hash of the policy or pattern and its services. It is empty where there is no other version to try.
	of   string
	list []edgev1alpha1.VersionAttempt
	// versions are the versions that the policy or pattern names, for each of its services.
	versions [][]edgev1alpha1.ServiceVersion
	// origins are the indexes of the services of the placement among those of the policy or pattern.
	origins []int
	// decide returns what the node gets of each service of the policy or pattern if these versions have failed.
	decide func(failed []edge.Failed) []edge.Decision
}

// newAttempts returns the attempts of a placement that are about the policy or pattern and the services as they are now.
func newAttempts(p *edgev1alpha1.EdgePlacement, origin client.Object, specs []engine.Spec, services []*edgev1alpha1.EdgeService) *attempts {
	a := &attempts{versions: versionsOf(origin)}
	if !slices.ContainsFunc(a.versions, func(versions []edgev1alpha1.ServiceVersion) bool { return len(versions) > 1 }) {
		return a
	}
	ids := []string{fmt.Sprint(origin.GetUID(), " ", origin.GetGeneration())}
	for _, s := range services {
		if slices.ContainsFunc(specs, func(d engine.Spec) bool {
			return d.Org == s.Namespace && d.Service == s.Spec.URL &&
				slices.ContainsFunc(d.Choices, func(c edge.Choice) bool { return c.Version == s.Spec.Version })
		}) {
			ids = append(ids, fmt.Sprint(s.UID, " ", s.Generation))
		}
	}
	slices.Sort(ids[1:])
	text, err := json.Marshal(slices.Compact(ids))
	if err != nil {
		return a // Texts can always be marshalled.
	}
	sum := sha256.Sum256(text)
	a.of = hex.EncodeToString(sum[:16])
	if a.of == p.Status.AttemptsOf {
		a.list = slices.Clone(p.Status.Attempts)
	}
	return a
}

func versionsOf(origin client.Object) (versions [][]edgev1alpha1.ServiceVersion) {
	switch o := origin.(type) {
	case *edgev1alpha1.DeploymentPolicy:
		return [][]edgev1alpha1.ServiceVersion{o.Spec.Service.ServiceVersions}
	case *edgev1alpha1.DeploymentPattern:
		for i := range o.Spec.Services {
			versions = append(versions, o.Spec.Services[i].ServiceVersions)
		}
	}
	return versions
}

// priority returns the priority of the version of a service of the placement, or nil if the policy or pattern sets none or names no other version.
func (a *attempts) priority(p *edgev1alpha1.EdgePlacement, service int) *edgev1alpha1.Priority {
	if a.of == "" {
		return nil
	}
	versions := a.versions[a.origins[service]]
	for i := range versions {
		if versions[i].Version == p.Spec.Services[service].Version && len(versions) > 1 {
			return versions[i].Priority
		}
	}
	return nil
}

// attempt returns the recorded attempt of the version of a service of the placement, and a function that records it.
func (a *attempts) attempt(p *edgev1alpha1.EdgePlacement, service int) (one edgev1alpha1.VersionAttempt, record func(edgev1alpha1.VersionAttempt)) {
	s := &p.Spec.Services[service]
	i := slices.IndexFunc(a.list, func(one edgev1alpha1.VersionAttempt) bool {
		return one.Org == s.Org && one.Name == s.Name && one.Version == s.Version
	})
	if i >= 0 {
		return a.list[i], func(one edgev1alpha1.VersionAttempt) { a.list[i] = one }
	}
	return edgev1alpha1.VersionAttempt{Org: s.Org, Name: s.Name, Version: s.Version}, func(one edgev1alpha1.VersionAttempt) {
		if len(a.list) < edgeapi.MaxAttempts { // Otherwise the version stays.
			a.list = append(a.list, one)
		}
	}
}

// removing returns the index of the service of the placement whose objects are being removed from the node, or -1.
func (a *attempts) removing(p *edgev1alpha1.EdgePlacement) int {
	return slices.IndexFunc(p.Spec.Services, func(s edgev1alpha1.PlacedService) bool {
		return slices.ContainsFunc(a.list, func(one edgev1alpha1.VersionAttempt) bool {
			return one.State == edgev1alpha1.AttemptRemoving && one.Org == s.Org && one.Name == s.Name && one.Version == s.Version
		})
	})
}

// removed records that the objects of this service have been removed from the node. The next failure counts.
func (a *attempts) removed(p *edgev1alpha1.EdgePlacement, service int) {
	one, record := a.attempt(p, service)
	one.State, one.Work, one.FailingSince = edgev1alpha1.AttemptRetrying, "", nil
	record(one)
}

// observe records the results of the versions of a placement. It returns the time until the next check, and whether versions must be tried again:
// the only service of a placement by a new work, one of several by a work without its objects.
func (a *attempts) observe(p *edgev1alpha1.EdgePlacement, work types.UID, t *reported, failures map[int]string, now time.Time,
) (again time.Duration, retry bool) {
	for i := range p.Spec.Services {
		later, due := a.observeOne(p, i, work, t.state, failures[i], now)
		if later > 0 && (again == 0 || later < again) {
			again = later
		}
		if due && !retry {
			retry = true
			if len(p.Spec.Services) > 1 {
				one, record := a.attempt(p, i)
				one.State = edgev1alpha1.AttemptRemoving
				record(one)
			}
		}
	}
	return again, retry
}

// observeOne records the result of the version of one service. failure is empty if it has not failed.
func (a *attempts) observeOne(p *edgev1alpha1.EdgePlacement, service int, work types.UID, state edgev1alpha1.PlacementState, failure string, now time.Time,
) (again time.Duration, retry bool) {
	limits := a.priority(p, service)
	if limits == nil {
		return 0, false
	}
	one, record := a.attempt(p, service)
	if one.State == edgev1alpha1.AttemptVerified || one.State == edgev1alpha1.AttemptGivenUp {
		return 0, false
	}
	at, since := metav1.NewTime(now), now
	s := &p.Status
	same := s.State == state && s.LastTransitionTime != nil
	if same && s.ObservedGeneration == p.Generation {
		since = s.LastTransitionTime.Time
	}
	switch {
	case failure == "":
		known := one.FailingSince != nil
		one.FailingSince = nil
		if state == edgev1alpha1.PlacementRunning {
			again = max(seconds(limits.VerifiedDurations)-now.Sub(since), 0)
			if again == 0 {
				one.State, known = edgev1alpha1.AttemptVerified, true
			}
		}
		if known {
			record(one)
		}
		return again, false
	case !same || one.FailingSince == nil:
		one.FailingSince = &at
	}
	if one.Work != work || one.LastFailureTime == nil {
		if left := failsFor - now.Sub(one.FailingSince.Time); left > 0 {
			record(one)
			return left, false
		}
		fail(&one, limits, work, failure, now)
	}
	switch {
	case one.Failures <= limits.Retries:
		one.State = edgev1alpha1.AttemptRetrying
		again = max(retryDelay(one.Failures)-now.Sub(one.LastFailureTime.Time), 0)
		retry = again == 0
	case a.another(p, service):
		one.State = edgev1alpha1.AttemptGivenUp
	default:
		one.State = ""
	}
	record(one)
	return again, retry
}

// refuse records that the hub can make no work of the version of a service. It is given up at once: another try would have the same result.
func (a *attempts) refuse(p *edgev1alpha1.EdgePlacement, service int, message string, now time.Time) {
	limits := a.priority(p, service)
	if limits == nil {
		return
	}
	one, record := a.attempt(p, service)
	if one.State == edgev1alpha1.AttemptVerified || one.State == edgev1alpha1.AttemptGivenUp {
		return
	}
	message = kit.Message(message)
	if one.Message != message || one.LastFailureTime == nil {
		fail(&one, limits, "", message, now)
	}
	one.State, one.FailingSince = "", nil
	if a.another(p, service) {
		one.State = edgev1alpha1.AttemptGivenUp
	}
	record(one)
}

// fail counts a failure. Failures before the time window of the policy do not count any more.
func fail(one *edgev1alpha1.VersionAttempt, limits *edgev1alpha1.Priority, work types.UID, message string, now time.Time) {
	at := metav1.NewTime(now)
	if window := seconds(limits.RetryDurations); one.FirstFailureTime == nil || window > 0 && now.Sub(one.FirstFailureTime.Time) > window {
		one.Failures, one.FirstFailureTime = 0, &at
	}
	one.Failures, one.LastFailureTime, one.Work, one.Message = min(one.Failures, limits.Retries)+1, &at, work, kit.Message(message)
}

// another reports whether the node gets a different version of a service, which has not failed, if this one has.
func (a *attempts) another(p *edgev1alpha1.EdgePlacement, service int) bool {
	s := &p.Spec.Services[service]
	failed := append(edgeplacements.FailedVersions(a.list), edge.Failed{Org: s.Org, Service: s.Name, Version: s.Version})
	next := a.decide(failed)
	if len(next) <= a.origins[service] {
		return false
	}
	one := &next[a.origins[service]]
	return one.Compatible && !slices.Contains(failed, edge.Failed{Org: s.Org, Service: s.Name, Version: one.Version})
}

// failedSuffix returns a suffix for the message of a placement: why it does not have the version that comes first.
func (a *attempts) failedSuffix() (text string) {
	for _, one := range a.list {
		if one.State != edgev1alpha1.AttemptGivenUp {
			continue
		}
		of := ""
		if len(a.versions) > 1 {
			of = " of service " + one.Name
		}
		text += fmt.Sprintf("; version %s%s is not retried after %d failures: %s", one.Version, of, one.Failures, one.Message)
	}
	return text
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

func retryDelay(failures int32) time.Duration {
	delay := firstRetry
	for range failures - 1 {
		delay *= 2
		if delay >= lastRetry {
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
