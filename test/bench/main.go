// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench compares a hub with the same clusters as custom resources in the same kube-apiserver, the peer. It starts a hub of its own,
// prints a table and writes the same as JSON:
//
//	(a) lists of one set: its members, and its clusters by label, through the front and directly
//	(b) creates with 32 writers, by a user who passes the check of the label
//	(c) memory per cluster
//	(d) the time from a write of a label to the event of the member, with 1,000 open watches
//	(e) the time from the start of hub-apiserver until it is ready
//
// Ours and the peer take turns, so that other load of the machine affects both. What the peer does not have is measured on separate hubs, with
// registration enabled:
//
//	(f) clusters that join at the same time, by certificate and by AWS IAM, each with an agent like hub-agent
//	(g) a fleet of accepted clusters: at rest, when hub-controller-manager restarts, and when all agents stop renewing their leases
//
// and, with a cluster and a provider of clusters in addition to the hub:
//
//	(h) access to one cluster and to many: until it is granted, at rest, a restart of the provider, renewals, deletion
//	(i) short-lived tokens, compared with those that the cluster itself issues
//
// On the hub of (a) to (e), but without the peer:
//
//	(j) clusters by the view, for users who may get one set: compared with their members, and with the list of the stored clusters; and the
//	    memory that the first of these lists costs
//
// The cost of works and placements, each on a separate hub:
//
//	(k) placements: their first scheduling, and one change of a label, a score, a taint, compared with evaluating all on each change
//	(l) works: memory for each, the time from a write to the event at one of many watches, and a status, compared with custom resources
//	(m) one agent with many works on a cluster: how it applies them, what it does at rest, and a drift
//	(n) many detached Klusterlets on one management cluster: until they are applied, one more, at rest, and how tokens are renewed
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/access"
	"github.com/clusterhub/clusterhub/test/bench/clusters"
	"github.com/clusterhub/clusterhub/test/bench/edge"
	"github.com/clusterhub/clusterhub/test/bench/kit"
	"github.com/clusterhub/clusterhub/test/bench/klusterlets"
	"github.com/clusterhub/clusterhub/test/bench/placements"
	"github.com/clusterhub/clusterhub/test/bench/registration"
	"github.com/clusterhub/clusterhub/test/bench/views"
	"github.com/clusterhub/clusterhub/test/bench/works"
)

func main() {
	var o kit.Options
	flag.IntVar(&o.Fleet, "fleet", 10_000, "Number of clusters, a multiple of 100: each set has 100. (k), (l) and (o) take 10,000 at most.")
	flag.IntVar(&o.Rounds, "rounds", 10, "Rounds in which ours and the peer take turns.")
	flag.IntVar(&o.Lists, "lists", 30, "Lists of each kind in a round.")
	flag.IntVar(&o.Writers, "writers", 32, "Writers that create clusters at the same time.")
	flag.IntVar(&o.Watchers, "watchers", 1000, "Watches of one set each that are open at the same time.")
	flag.IntVar(&o.Moves, "moves", 200, "Label writes that are timed until their events.")
	flag.IntVar(&o.Restarts, "restarts", 3, "Restarts of hub-apiserver.")
	flag.IntVar(&o.Joining, "joining", 1000, "Clusters that join at the same time.")
	flag.IntVar(&o.AccessRequests, "access-requests", 1000, "AccessRequests that are made at the same time.")
	flag.IntVar(&o.AccessClusters, "access-clusters", 200, "Clusters that as many AccessRequests are for.")
	flag.DurationVar(&o.DriftInterval, "drift-interval", 2*time.Minute, "--drift-check-interval of the fleet at rest.")
	flag.IntVar(&o.Placements, "placements", 1000, "Placements that choose from the fleet.")
	flag.IntVar(&o.Changes, "changes", 5, "Times that each change is made that placements depend on.")
	flag.IntVar(&o.WorksPerCluster, "works-per-cluster", 10, "Works of each cluster of the fleet, each of which is watched by one watch.")
	flag.IntVar(&o.AgentWorks, "agent-works", 1000, "Works that one agent brings to its cluster.")
	flag.IntVar(&o.AgentManifests, "agent-manifests", 5, "Manifests of each of them.")
	flag.IntVar(&o.AgentWatches, "agent-watches", 10_000, "--max-work-watches of that agent.")
	flag.Float64Var(&o.AgentWrites, "agent-writes", 50, "--agent-writes-per-second of that agent's hub-apiserver.")
	flag.IntVar(&o.Klusterlets, "klusterlets", 200, "Detached Klusterlets that are made at the same time.")
	flag.IntVar(&o.ManagedClusters, "managed-clusters", 4, "Kube-apiservers that are the managed clusters of the Klusterlets, in turns.")
	flag.IntVar(&o.EdgePolicies, "edge-policies", 1000, "Policies that deploy a service to edge nodes, of which there is one for each cluster.")
	flag.DurationVar(&o.TokenLife, "token-life", 11*time.Minute, "Lifetime of the tokens of Klusterlets whose renewal is waited for; 0 leaves that out.")
	flag.DurationVar(&o.Rest, "rest", 30*time.Second, "For how long (m) and (n) watch what is done at rest.")
	flag.StringVar(&o.Only, "only", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o", "What to measure.")
	flag.StringVar(&o.BinDir, "bin-dir", "_output/bin", "Directory of the binaries.")
	flag.StringVar(&o.HubBinDir, "hub-bin-dir", "", "Directory of our binaries, if they are not in --bin-dir.")
	flag.StringVar(&o.Output, "output", "_output/bench", "Directory of the results, and of the hub while it runs.")
	flag.StringVar(&o.ProfileDir, "profile-dir", "", "Directory for profiles of hub-apiserver, which they slow down.")
	flag.StringVar(&o.ResourceVersion, "resource-version", "", `resourceVersion of the lists: "" is the latest, 0 any.`)
	flag.BoolVar(&o.ExternalEtcd, "external-etcd", false, "Give hub-apiserver an etcd outside of its process.")
	flag.BoolVar(&o.NoFsync, "no-fsync", false, "Let no etcd wait for the disk, neither the peer's nor ours.")
	flag.BoolVar(&o.Status, "status", true, "Give each cluster the status that agents report.")
	flag.BoolVar(&o.ServersOnly, "servers-only", false, "Leave out both controller managers.")
	flag.BoolVar(&o.Keep, "keep", false, "Keep the hub's directory, with its logs.")
	flag.DurationVar(&o.Timeout, "timeout", 2*time.Hour, "The longest that everything may take.")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := run(ctx, o); err != nil {
		if ctx.Err() != nil {
			err = errors.New("stopped before the end: " + context.Cause(ctx).Error())
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func validate(o *kit.Options) error {
	if o.Fleet < kit.SetSize || o.Fleet%kit.SetSize != 0 || o.Fleet > 1_000_000 {
		return fmt.Errorf("--fleet=%d has to be a multiple of %d, at most 1,000,000", o.Fleet, kit.SetSize)
	}
	if o.DriftInterval < time.Second {
		return errors.New("--drift-interval has to be at least a second")
	}
	if o.AgentWrites < 0 {
		return fmt.Errorf("--agent-writes=%g has to be at least 0", o.AgentWrites)
	}
	if o.Rest < time.Second {
		return errors.New("--rest has to be at least a second")
	}
	if o.TokenLife != 0 && o.TokenLife < klusterlets.MinTokenLife {
		return fmt.Errorf("--token-life=%s has to be 0 or at least %s: hub-operator takes no shorter one", o.TokenLife, klusterlets.MinTokenLife)
	}
	if o.Wants("d") && o.Fleet < 2*kit.SetSize {
		return fmt.Errorf("(d) moves clusters between sets and needs --fleet=%d or more", 2*kit.SetSize)
	}
	for name, v := range map[string]int{"rounds": o.Rounds, "lists": o.Lists, "writers": o.Writers,
		"watchers": o.Watchers, "moves": o.Moves, "restarts": o.Restarts, "joining": o.Joining,
		"access-requests": o.AccessRequests, "access-clusters": o.AccessClusters, "placements": o.Placements, "changes": o.Changes,
		"works-per-cluster": o.WorksPerCluster, "agent-works": o.AgentWorks, "agent-manifests": o.AgentManifests, "agent-watches": o.AgentWatches,
		"klusterlets": o.Klusterlets, "managed-clusters": o.ManagedClusters, "edge-policies": o.EdgePolicies} {
		if v < 1 {
			return fmt.Errorf("--%s has to be at least 1", name)
		}
	}
	for part := range strings.SplitSeq(o.Only, ",") {
		if len(part) != 1 || !strings.Contains("abcdefghijklmno", part) {
			return fmt.Errorf("--only=%s has to be some of a,b,c,d,e,f,g,h,i,j,k,l,m,n,o", o.Only)
		}
	}
	return nil
}

func run(ctx context.Context, o kit.Options) error {
	if err := validate(&o); err != nil {
		return err
	}
	for _, dir := range []string{o.Output, o.ProfileDir} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	r := newReport(o)
	// Print what was measured before a failure, and the failure.
	failed := r.measure(ctx, o)
	if failed != nil {
		r.Failed = failed.Error()
	}
	r.judge()
	r.print(os.Stdout)
	file := filepath.Join(o.Output, fmt.Sprintf("bench-%d.json", o.Fleet))
	if err := r.write(file); err != nil {
		return err
	}
	fmt.Println("\nThe figures are in", file)
	return failed
}

// measure measures on one hub after the other.
func (r *report) measure(ctx context.Context, o kit.Options) error {
	if o.Wants("abcdej") {
		if err := kit.WithHub(ctx, o, clusters.WithoutRegistration(o), r.measureClusters); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		name    string
		measure func() error
	}{
		{"f", func() (err error) { r.Joins, err = registration.MeasureJoins(ctx, o); return err }},
		{"g", func() (err error) { r.Rest, err = registration.MeasureFleet(ctx, o); return err }},
		{"h", func() (err error) { r.Grants, err = access.MeasureGrants(ctx, o); return err }},
		{"i", func() (err error) { r.Tokens, err = access.MeasureTokens(ctx, o); return err }},
		{"k", func() (err error) { r.Placing, err = placements.Measure(ctx, o); return err }},
		{"l", func() (err error) { r.Works, err = works.Measure(ctx, o); return err }},
		{"m", func() (err error) { r.WorkAgent, err = works.MeasureAgent(ctx, o); return err }},
		{"n", func() (err error) { r.Klusterlets, err = klusterlets.Measure(ctx, o); return err }},
		{"o", func() (err error) { r.Edge, err = edge.Measure(ctx, o); return err }},
	} {
		if !o.Wants(part.name) {
			continue
		}
		if err := part.measure(); err != nil {
			return fmt.Errorf("(%s): %w", part.name, err)
		}
	}
	return nil
}

// measureClusters measures (a) to (e) and (j), which have a hub together.
func (r *report) measureClusters(ctx context.Context, e *kit.Env) error {
	if err := clusters.Measure(ctx, e, &r.Results); err != nil {
		return err
	}
	if !e.Options.Wants("j") {
		return nil
	}
	var err error
	r.View, err = views.Measure(ctx, e)
	return err
}
