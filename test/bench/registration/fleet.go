// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

const (
	// restingLease is a lease duration with which no lease of the fleet expires during the measurement: it has no agents.
	restingLease = 24 * 60 * 60
	// silentLease is the duration with which all leases expire together, after 5 times that many seconds.
	silentLease = 6
	// intervalParts is the number of parts of an interval in which checks are counted, and watchedParts how many of them are watched.
	intervalParts, watchedParts = 12, 11
)

// fleetRun is the result for a fleet of accepted clusters.
type fleetRun struct {
	clusters int
	interval time.Duration
	// accepting is the time from the creation of the first cluster until all are accepted.
	accepting       time.Duration
	acceptRequests  audit.Requests
	acceptCPU       kit.CPUTimes
	rest, restarted *window
	// gap is the shortest time between two checks of one cluster.
	gap  time.Duration
	lost []string

	// silentFirst and silentLast are the times from the expiry of the leases until the first and the last condition reports it, and tainted is the
	// time until the last taint does.
	silentFirst, silentLast, tainted time.Duration
	silent                           int
	silentRequests                   audit.Requests
	silentCPU                        kit.CPUTimes
}

// window is a time without any changes of the fleet.
type window struct {
	took     time.Duration
	requests audit.Requests
	calls    int
	writes   int // to AWS
	// checks are the numbers of clusters that were checked in each part.
	checks []int
	cpu    kit.CPUTimes
	rss    int // of hub-controller-manager, KiB
	each   map[string][]time.Time
}

// MeasureFleet creates a fleet, and measures it without changes.
func MeasureFleet(ctx context.Context, o kit.Options) (result *Fleet, err error) {
	err = withRegistration(ctx, o, func(ctx context.Context, r *env) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // no watch outlives the hub
		f := &fleetRun{clusters: o.SmallFleet(), interval: o.DriftInterval}
		fleet, err := watchFleet(ctx, r.Hub.AdminConfig(), "", func(string) {})
		if err != nil {
			return err
		}
		defer func() { result = f.result() }()
		for _, step := range []func(context.Context, *fleetRun, *fleetWatch) error{r.acceptFleet, r.measureRest, r.expireLeases} {
			if err := step(ctx, f, fleet); err != nil {
				return err
			}
		}
		return nil
	})
	return result, err
}

// writeFleet sends one request for each cluster of the fleet.
func (r *env) writeFleet(ctx context.Context, f *fleetRun, method, contentType, path string, body func(i int) []byte) error {
	clients, err := kit.NewClients(r.Hub.AdminConfig(), kit.Connections)
	if err != nil {
		return err
	}
	all := kit.CreationOrder(0, f.clusters)
	to := func(i int) string { return fmt.Sprintf(path, kit.ClusterName(i)) }
	if method == http.MethodPost {
		to = func(int) string { return path }
	}
	return r.WriteAll(ctx, clients, kit.Write{Method: method, ContentType: contentType, Path: to, Body: body, Rates: &kit.Rates{}}, all)
}

// acceptFleet creates accepted clusters, and writes what their agents would report.
func (r *env) acceptFleet(ctx context.Context, f *fleetRun, fleet *fleetWatch) error {
	bodies := make([][]byte, f.clusters)
	for i := range bodies {
		arn, err := r.addEKS(kit.ClusterName(i))
		if err != nil {
			return err
		}
		bodies[i] = kit.MustJSON(map[string]any{
			"apiVersion": kit.Ours.APIVersion, "kind": "ManagedCluster",
			"metadata": map[string]any{"name": kit.ClusterName(i), "annotations": map[string]string{registration.AnnotationManagedClusterARN: arn}},
			"spec":     map[string]any{"hubAcceptsClient": true, "leaseDurationSeconds": restingLease},
		})
	}
	r.Steps.Step("Making %d accepted clusters, and waiting until the hub has given them all that they need", f.clusters)
	defer r.CPUProfile(ctx, "accept", 20)()
	begun, cpu := time.Now(), r.cpuAll()
	if err := r.writeFleet(ctx, f, http.MethodPost, "application/json", kit.Ours.Path, func(i int) []byte { return bodies[i] }); err != nil {
		return err
	}
	if err := fleet.Await(ctx, &r.Steps, f.clusters, factAccepted); err != nil {
		return err
	}
	f.accepting, f.acceptCPU = time.Since(begun), r.cpuAll().Since(cpu)
	var err error
	f.acceptRequests, err = r.audit.Since(begun)
	if err != nil {
		return err
	}
	r.Steps.Step("Saying what their agents would")
	condition := func(kind, reason, message string) map[string]any {
		return map[string]any{"op": "add", "path": "/status/conditions/-", "value": map[string]any{"type": kind, "status": "True",
			"reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}
	}
	body := kit.MustJSON([]any{
		condition(registration.ConditionJoined, registration.ReasonJoined, registration.MessageJoined),
		condition(registration.ConditionAvailable, registration.ReasonAvailable, registration.MessageAvailable),
	})
	const jsonPatch = "application/json-patch+json"
	if err := r.writeFleet(ctx, f, http.MethodPatch, jsonPatch, kit.Ours.Path+"/%s/status", func(int) []byte { return body }); err != nil {
		return err
	}
	return fleet.Await(ctx, &r.Steps, f.clusters, factAccepted, factJoined, factAvailable)
}

// measureRest watches the fleet when the checks of its identities have become regular, and again while hub-controller-manager restarts.
func (r *env) measureRest(ctx context.Context, f *fleetRun, fleet *fleetWatch) error {
	r.Steps.Step("Waiting until all has come to rest, and the first checks are over")
	accepted := time.Now() // after the last grant
	if _, err := r.audit.AwaitSilence(ctx, 5*time.Second); err != nil {
		return err
	}
	if n := fleet.Count(factUnreachable); n > 0 {
		return fmt.Errorf("%d clusters still have the taint %s", n, factUnreachable)
	}
	if err := kit.Sleep(ctx, time.Until(accepted.Add(2*f.interval))); err != nil {
		return err
	}
	length := f.interval * watchedParts / intervalParts
	r.Steps.Step("Watching the fleet at rest for %s", length)
	var err error
	f.rest, err = r.watch(ctx, f, length, func() error { return nil })
	if err != nil {
		return err
	}
	r.Steps.Step("Restarting hub-controller-manager, and watching for as long")
	f.restarted, err = r.watch(ctx, f, length, func() error {
		r.Hub.StopHubControllerManager()
		return r.Hub.StartHubControllerManager(ctx)
	})
	f.gap, f.lost = minGap(f.rest, f.restarted), fleet.TakeLost()
	return err
}

// watch calls do, and records what hub-controller-manager does until the time is over.
func (r *env) watch(ctx context.Context, f *fleetRun, length time.Duration, do func() error) (*window, error) {
	r.aws.ResetCalls()
	begun, cpu, before := time.Now(), r.cpuAll(), r.Hub.PIDs()
	if err := do(); err != nil {
		return nil, err
	}
	for name, pid := range r.Hub.PIDs() {
		if before[name] != pid {
			delete(cpu, name) // it is a different process
		}
	}
	if err := kit.Sleep(ctx, time.Until(begun.Add(length))); err != nil {
		return nil, err
	}
	w := &window{took: time.Since(begun), cpu: r.cpuAll().Since(cpu)}
	calls := r.callsByRole()
	_, w.calls = calls.most()
	w.writes, w.each = calls.writes(), calls.checks()
	part := f.interval / intervalParts
	w.checks = make([]int, watchedParts)
	for _, times := range w.each {
		for _, at := range times {
			w.checks[min(int(at.Sub(begun)/part), watchedParts-1)]++
		}
	}
	var err error
	w.requests, err = r.audit.Since(begun)
	if err != nil {
		return nil, err
	}
	if pid, ok := r.Hub.PIDs()["hub-controller-manager"]; ok {
		w.rss, err = kit.RSS(pid)
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// minGap returns the shortest time between two checks of one cluster, or 0 if none was checked twice.
func minGap(windows ...*window) (gap time.Duration) {
	each := map[string][]time.Time{}
	for _, w := range windows {
		if w != nil {
			for role, times := range w.each {
				each[role] = append(each[role], times...)
			}
		}
	}
	for _, times := range each {
		slices.SortFunc(times, time.Time.Compare)
		for i := 1; i < len(times); i++ {
			if d := times[i].Sub(times[i-1]); gap == 0 || d < gap {
				gap = d
			}
		}
	}
	return gap
}

// expireLeases makes all leases expire at the same time: a process that has just started gives all of them the same time.
func (r *env) expireLeases(ctx context.Context, f *fleetRun, fleet *fleetWatch) error {
	r.Steps.Step("Giving all clusters a lease of %d s while hub-controller-manager is away", silentLease)
	r.Hub.StopHubControllerManager()
	body := kit.MustJSON(map[string]any{"spec": map[string]any{"leaseDurationSeconds": silentLease}})
	if err := r.writeFleet(ctx, f, http.MethodPatch, kit.MergePatch, kit.Ours.Path+"/%s", func(int) []byte { return body }); err != nil {
		return err
	}
	if err := r.Hub.StartHubControllerManager(ctx); err != nil {
		return err
	}
	begun, cpu := time.Now(), r.cpuAll()
	r.Steps.Step("Waiting until the hub has noticed that all agents are silent")
	defer r.CPUProfile(ctx, "silent", 20+5*silentLease)()
	err := fleet.Await(ctx, &r.Steps, f.clusters, factSilent, factUnreachable)
	f.silent, f.silentCPU = fleet.Count(factSilent, factUnreachable, factAccepted, factJoined), r.cpuAll().Since(cpu)
	if times := fleet.Times(factSilent); len(times) > 0 {
		expired := begun.Add(5 * silentLease * time.Second)
		f.silentFirst, f.silentLast = times[0].Sub(expired), times[len(times)-1].Sub(expired)
		if times := fleet.Times(factUnreachable); len(times) > 0 {
			f.tainted = times[len(times)-1].Sub(expired)
		}
	}
	if err != nil {
		return err
	}
	if _, err := r.audit.AwaitSilence(ctx, 5*time.Second); err != nil {
		return err
	}
	f.silentRequests, err = r.audit.Since(begun)
	return err
}
