// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Grants are the results for AccessRequests, for one cluster and for many.
type Grants []grantResult

// grantResult is the result for AccessRequests that were created at the same time.
type grantResult struct {
	Requests  int     `json:"requests"`
	Clusters  int     `json:"clusters"`
	Granted   int     `json:"granted"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"grantsPerSecond"`
	// Prepared, Median and P99 are seconds from the creation of a request until it is prepared and granted. GoneMedian and GoneP99 are seconds from
	// its deletion until it is gone.
	Prepared   float64        `json:"preparedMedianSeconds"`
	Median     float64        `json:"medianSeconds"`
	P99        float64        `json:"p99Seconds"`
	Grant      *trafficResult `json:"grant,omitempty"`
	Rest       *trafficResult `json:"rest,omitempty"`
	Restart    *trafficResult `json:"restart,omitempty"`
	Restarting float64        `json:"restartSeconds"`
	Renewals   *renewalResult `json:"renewals,omitempty"`
	Lost       []string       `json:"lostConditions,omitempty"`
	Gone       int            `json:"gone"`
	Deletion   float64        `json:"deletionSeconds"`
	GoneMedian float64        `json:"goneMedianSeconds"`
	GoneP99    float64        `json:"goneP99Seconds"`
	Delete     *trafficResult `json:"delete,omitempty"`
	Left       int            `json:"leftovers"`
	// MemoryEmpty, MemoryFull and MemoryRestarted are the provider's resident memory: before, with all requests granted, and with all granted after
	// a restart.
	MemoryEmpty     int `json:"rssEmptyKiB"`
	MemoryFull      int `json:"rssFullKiB"`
	MemoryRestarted int `json:"rssRestartedKiB"`
}

// trafficResult has numbers of requests by kind: of hub-controller-manager and of the provider to the hub, and of the provider to the clusters.
type trafficResult struct {
	Seconds     float64            `json:"seconds"`
	Controllers map[string]int     `json:"controllers"`
	Provider    map[string]int     `json:"provider"`
	Cluster     map[string]int     `json:"cluster"`
	Refused     map[string]int     `json:"refused,omitempty"`
	CPU         map[string]float64 `json:"cpuMilliseconds"`
	// about is the number of them that are about AccessRequests, and not about clusters and configurations.
	about, writes, tokens int
}

type renewalResult struct {
	Renewed int            `json:"renewed"`
	Early   int            `json:"early"`
	Late    int            `json:"late"`
	Queued  int            `json:"queuedMost"`
	Parts   []int          `json:"renewalsInEqualTimes"`
	Traffic *trafficResult `json:"traffic"`
}

// Tokens are the results for short-lived tokens.
type Tokens []tokenResult

// tokenResult is the result for short-lived tokens that some clients request at the same time.
type tokenResult struct {
	Name      string             `json:"name"`
	Clients   int                `json:"clients"`
	Count     int                `json:"count"`
	PerSecond float64            `json:"perSecondMedianOfRounds"`
	Factor    float64            `json:"rateToPeer"`
	Median    float64            `json:"medianMilliseconds"`
	P99       float64            `json:"p99Milliseconds"`
	CPU       map[string]float64 `json:"cpuMillisecondsEach"`
}

func (t *traffic) result() *trafficResult {
	if t == nil {
		return nil
	}
	all := func(audit.Request) bool { return true }
	r := &trafficResult{Seconds: kit.Seconds(t.took), Controllers: t.controllers.Counts(all), Provider: t.provider.Counts(all),
		Cluster: t.cluster.Counts(all), Refused: map[string]int{}, CPU: t.cpu.Per(1)}
	for _, one := range slices.Concat(t.controllers, t.provider, t.cluster) {
		switch o := one.ObjectRef; {
		case o.Resource == "", o.Resource == "selfsubjectaccessreviews", o.Resource == "clusters", o.Resource == "clusterprofiles",
			o.Namespace == providerNamespace:
		default:
			r.about++
			if one.IsWrite() {
				r.writes++
			}
			if o.Subresource == "token" {
				r.tokens++
			}
		}
	}
	for _, refused := range []map[string]int{t.controllers.Refused(), t.provider.Refused(), t.cluster.Refused()} {
		maps.Copy(r.Refused, refused)
	}
	return r
}

func (g *grantRun) result() grantResult {
	result := grantResult{
		Requests: g.requests, Clusters: g.clusters, Granted: len(g.granted), Seconds: kit.Seconds(g.took),
		Prepared: kit.Seconds(g.prepared.Median()), Median: kit.Seconds(g.granted.Median()), P99: kit.Seconds(g.granted.P99()), Grant: g.grant.result(), Rest: g.rest.result(),
		Restart: g.restart.result(), Restarting: kit.Seconds(g.restarting), Lost: g.lost, Gone: len(g.gone), Deletion: kit.Seconds(g.deletion),
		GoneMedian: kit.Seconds(g.gone.Median()), GoneP99: kit.Seconds(g.gone.P99()), Delete: g.delete.result(), Left: g.left,
		MemoryEmpty: g.empty, MemoryFull: g.full, MemoryRestarted: g.restarted,
	}
	result.PerSecond = kit.Round(kit.Ratio(float64(result.Granted), result.Seconds), 1)
	if w := g.renewing; w != nil {
		result.Renewals = &renewalResult{Renewed: w.renewed, Early: w.early, Late: w.late, Queued: w.queued, Parts: w.parts, Traffic: w.traffic.result()}
	}
	return result
}

// tokensOf returns the results for a number of clients.
func tokensOf(ways []*tokenWay, clients int) (results Tokens) {
	peers := ways[slices.IndexFunc(ways, func(w *tokenWay) bool { return w.name == tokensPeer })].rates[clients].PerSecond
	for _, way := range ways {
		w := way.rates[clients]
		results = append(results, tokenResult{Name: way.name, Clients: clients, Count: w.Count, PerSecond: kit.Round(kit.Median(w.PerSecond), 0),
			Factor: kit.Round(kit.PairedRatio(w.PerSecond, peers), 2), Median: kit.Milliseconds(w.Latency.Median()), P99: kit.Milliseconds(w.Latency.P99()),
			CPU: w.CPU.Per(w.Count)})
	}
	return results
}

// Print prints the results.
func (r Grants) Print(out io.Writer) {
	for _, g := range r {
		g.print(out)
	}
}

// Print prints the results.
func (r Tokens) Print(out io.Writer) {
	var rows [][]string
	for _, t := range r {
		rows = append(rows, []string{t.Name, fmt.Sprint(t.Clients), fmt.Sprintf("%.0f", t.PerSecond), fmt.Sprintf("%.2fx", t.Factor),
			fmt.Sprintf("%.1f", t.Median), fmt.Sprintf("%.1f", t.P99), kit.FormatCPU(t.CPU)})
	}
	kit.PrintTable(out, "(i) short-lived tokens", []string{"", "clients", "per s", "to the peer", "median ms", "p99 ms", "CPU ms each"}, rows)
}

func (g *grantResult) print(out io.Writer) {
	rows := [][]string{{"made at once, until all are granted", fmt.Sprintf("%.1f s, %.1f/s; each prepared median %.2f s, granted median %.2f s, "+
		"p99 %.2f s", g.Seconds, g.PerSecond, g.Prepared, g.Median, g.P99)}}
	rows = append(rows, g.Grant.rows(g.Requests)...)
	if g.Rest != nil {
		rows = append(rows, []string{fmt.Sprintf("at rest, %.0f s: requests about AccessRequests", g.Rest.Seconds),
			fmt.Sprintf("%d, of which %d writes", g.Rest.about, g.Rest.writes)})
		rows = append(rows, g.Rest.rows(1)...)
	}
	if g.Restart != nil {
		rows = append(rows, []string{"the provider starts anew: until it has looked at all", fmt.Sprintf(
			"%.1f s; %d writes, %d tokens", g.Restarting, g.Restart.writes, g.Restart.tokens)})
		rows = append(rows, g.Restart.rows(g.Requests)...)
	}
	if w := g.Renewals; w != nil {
		rows = append(rows, []string{fmt.Sprintf("tokens of one age renewed in %s", renewalTime), fmt.Sprintf(
			"%d; in equal times %s, early %d, late %d; waiting at once %d", w.Renewed, strings.Trim(fmt.Sprint(w.Parts), "[]"), w.Early,
			w.Late, w.Queued)})
		rows = append(rows, w.Traffic.rows(g.Requests)...)
	}
	if g.Delete != nil {
		rows = append(rows, []string{"deleted at once, until all are gone", fmt.Sprintf("%.1f s; each median %.2f s, p99 %.2f s",
			g.Deletion, g.GoneMedian, g.GoneP99)})
		rows = append(rows, g.Delete.rows(g.Requests)...)
	}
	rows = append(rows, []string{"the provider's memory, MiB", fmt.Sprintf("before %d, all granted %d, restarted %d",
		g.MemoryEmpty/1024, g.MemoryFull/1024, g.MemoryRestarted/1024)})
	kit.PrintTable(out, fmt.Sprintf("(h) %d AccessRequests, for %d clusters", g.Requests, g.Clusters), []string{"", ""}, rows)
}

// rows returns rows with the requests, per each of n.
func (t *trafficResult) rows(n int) (rows [][]string) {
	if t == nil {
		return nil
	}
	for _, to := range []struct {
		name   string
		counts map[string]int
	}{{"hub-controller-manager to the hub", t.Controllers}, {"provider to the hub", t.Provider}, {"provider to the cluster", t.Cluster},
		{"of which refused", t.Refused}} {
		if len(to.counts) > 0 {
			rows = append(rows, []string{"  " + to.name, fmt.Sprintf("%.3g: %s", float64(audit.Sum(to.counts))/float64(n), audit.FormatEach(to.counts, n))})
		}
	}
	cpu := map[string]float64{}
	for name, used := range t.CPU {
		cpu[name] = used / float64(n)
	}
	return append(rows, []string{"  CPU ms", kit.FormatCPU(cpu)})
}

// Judge compares the results with the targets.
func (r Grants) Judge(t *kit.Targets) {
	for _, g := range r {
		of := fmt.Sprintf("%d clusters: ", g.Clusters)
		all := fmt.Sprintf("all %d", g.Requests)
		t.Add("h", of+"requests that are granted", all, fmt.Sprint(g.Granted), g.Granted == g.Requests)
		if g.Rest != nil {
			// A provider that may not watch Secrets checks periodically whether they still exist.
			t.None("h", of+"at rest: writes", g.Rest.writes)
			each := float64(g.Rest.about) / float64(g.Requests) / (g.Rest.Seconds / 60)
			t.AtMost("h", of+"at rest: requests about an AccessRequest", " per minute", 1, each)
		}
		if g.Restart != nil {
			t.None("h", of+"after a restart: writes", g.Restart.writes)
		}
		if w := g.Renewals; w != nil {
			t.Add("h", of+"tokens renewed", all, fmt.Sprint(w.Renewed), w.Renewed == g.Requests)
			t.None("h", of+"tokens renewed too early", w.Early)
			// By chance, a part can have more than the mean, but hardly more than five times its square root.
			mean := float64(g.Requests) / renewalParts
			limit, got := int(math.Ceil(mean+5*math.Sqrt(mean))), slices.Max(w.Parts)
			t.Add("h", of+fmt.Sprintf("tokens renewed in %s, the most", renewalTime/renewalParts), fmt.Sprintf("at most %d", limit),
				fmt.Sprint(got), got <= limit)
			// On a machine that is too slow, renewals that are due at once take longer, and most of them wait.
			t.Add("h", of+"tokens that wait for their renewal at once, the most", fmt.Sprintf("at most %d", limit), fmt.Sprint(w.Queued),
				w.Queued <= limit)
		}
		if g.Delete != nil {
			t.None("h", of+"grants lost", len(g.Lost))
			t.Add("h", of+"requests that are gone after their deletion", all, fmt.Sprint(g.Gone), g.Gone == g.Requests)
			t.None("h", of+"objects left on the hub and in the cluster", g.Left)
		}
	}
}
