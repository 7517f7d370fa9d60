// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Result is the result for detached Klusterlets on one management cluster.
type Result struct {
	Klusterlets     int `json:"klusterlets"`
	ManagedClusters int `json:"managedClusters"`
	// All are the Klusterlets that were created at the same time. Single are others, one after the other, when there were few and when there were
	// all.
	All    *batch   `json:"all,omitempty"`
	Single []*batch `json:"single,omitempty"`
	// Before and After are hub-operator's resident memory in KiB, without a Klusterlet and with InAll.
	Before           int                `json:"beforeKiB"`
	After            int                `json:"afterKiB,omitempty"`
	InAll            int                `json:"inAll,omitempty"`
	RestSeconds      float64            `json:"restSeconds,omitempty"`
	RestOnManagement map[string]int     `json:"restRequestsToManagement,omitempty"`
	RestOnManaged    map[string]int     `json:"restRequestsToManaged,omitempty"`
	RestCores        map[string]float64 `json:"restCores,omitempty"`
	Renewals         *renewalSpread     `json:"renewals,omitempty"`
	Lost             []string           `json:"lostConditions,omitempty"`
}

// batch is the cost of some Klusterlets.
type batch struct {
	Count int `json:"count"`
	// Before is the number before.
	Before int `json:"before"`
	// Seconds is the time from the creation of the first one until all are applied, and Applied the number that are.
	Applied int     `json:"applied"`
	Seconds float64 `json:"seconds"`
	// OnManagement and OnManaged are hub-operator's requests, and Refused are those that were rejected.
	OnManagement map[string]int     `json:"requestsToManagement,omitempty"`
	OnManaged    map[string]int     `json:"requestsToManaged,omitempty"`
	Refused      map[string]int     `json:"refused,omitempty"`
	CPU          map[string]float64 `json:"cpuMillisecondsEach,omitempty"`
}

// add adds one that was created after the others. CPU and Seconds are sums until each is called.
func (b *batch) add(one *batch) {
	b.Count, b.Applied, b.Seconds = b.Count+one.Count, b.Applied+one.Applied, b.Seconds+one.Seconds
	b.OnManagement, b.OnManaged = plus(b.OnManagement, one.OnManagement), plus(b.OnManaged, one.OnManaged)
	b.Refused, b.CPU = plus(b.Refused, one.Refused), plus(b.CPU, one.CPU)
}

// each divides the sums of time and CPU by the number that was added.
func (b *batch) each() *batch {
	b.Seconds = kit.Round(b.Seconds/float64(b.Count), 3)
	for name := range b.CPU {
		b.CPU[name] = kit.Round(b.CPU[name]/float64(b.Count), 3)
	}
	return b
}

func plus[N int | float64](all, more map[string]N) map[string]N {
	if all == nil {
		all = map[string]N{}
	}
	for name, n := range more {
		all[name] += n
	}
	return all
}

// requestsEach returns hub-operator's requests per Klusterlet.
func (b *batch) requestsEach() float64 {
	return float64(audit.Sum(b.OnManagement)+audit.Sum(b.OnManaged)) / float64(b.Count)
}

// grantedToken is a token that was granted to a ServiceAccount.
type grantedToken struct {
	account string
	at      time.Time
}

// spreadParts is the number of parts of the time of renewals in which they are counted.
const spreadParts = 12

// renewalSpread is the distribution over time of renewals of tokens that were minted together.
type renewalSpread struct {
	Tokens      int     `json:"tokens"`
	LifeSeconds float64 `json:"lifeSeconds"`
	MintedIn    float64 `json:"mintedInSeconds"`
	Renewed     int     `json:"renewed"`
	// Early and Late are the numbers outside of the part of the lifetime in which tokens are renewed, with a tolerance of some seconds.
	Early int `json:"early"`
	Late  int `json:"late"`
	// Parts are the numbers in each part of that time, and MaxInSecond the largest number in one second.
	Parts       []int `json:"parts"`
	MaxInSecond int   `json:"mostInSecond"`
}

// ends returns the times of the first and the last token.
func ends(asked []grantedToken) (first, last time.Time) {
	for _, one := range asked {
		if first.IsZero() || one.at.Before(first) {
			first = one.at
		}
		if one.at.After(last) {
			last = one.at
		}
	}
	return first, last
}

// spreadOf compares the times of renewals with those of the minting. For several tokens of one account it uses the last that was minted, and the
// first renewal.
func spreadOf(minted, renewed []grantedToken, life time.Duration) *renewalSpread {
	const moment = 5 * time.Second
	part := func(p float64) time.Duration { return time.Duration(p * float64(life)) }
	s := &renewalSpread{LifeSeconds: life.Seconds(), Parts: make([]int, spreadParts)}
	at := map[string]time.Time{}
	for _, one := range minted {
		if one.at.After(at[one.account]) {
			at[one.account] = one.at
		}
	}
	s.Tokens = len(at)
	first, last := ends(minted)
	begin, end := first.Add(part(mint.RenewFrom)), last.Add(part(mint.RenewAt))
	inSecond := map[int64]int{}
	renewed = slices.Clone(renewed)
	slices.SortFunc(renewed, func(a, b grantedToken) int { return a.at.Compare(b.at) })
	for _, one := range renewed {
		born, ok := at[one.account]
		if !ok {
			continue
		}
		delete(at, one.account)
		s.Renewed++
		if age := one.at.Sub(born); age < part(mint.RenewFrom)-moment {
			s.Early++
		} else if age > part(mint.RenewAt)+moment {
			s.Late++
		}
		n := int(float64(one.at.Sub(begin)) / float64(end.Sub(begin)) * spreadParts)
		s.Parts[min(max(n, 0), spreadParts-1)]++
		second := one.at.Unix()
		inSecond[second]++
		s.MaxInSecond = max(s.MaxInSecond, inSecond[second])
	}
	return s
}

// burst returns the ratio of the busiest part to the mean.
func (s *renewalSpread) burst() float64 {
	return kit.Round(kit.Ratio(float64(slices.Max(s.Parts)*len(s.Parts)), float64(s.Renewed)), 2)
}

// Print prints the result, unless it is nil.
func (k *Result) Print(out io.Writer) {
	if k == nil {
		return
	}
	var rows [][]string
	show := func(what string, b *batch) {
		per := func(requests map[string]int) string {
			return fmt.Sprintf("%.3g: %s", float64(audit.Sum(requests))/float64(b.Count), audit.FormatEach(requests, b.Count))
		}
		rows = append(rows, []string{what, fmt.Sprintf("%d applied, %.1f s", b.Applied, b.Seconds)},
			[]string{"  requests to the management cluster for each", per(b.OnManagement)},
			[]string{"  requests to the managed cluster for each", per(b.OnManaged)},
			[]string{"  of which were not done", per(b.Refused)},
			[]string{"  CPU ms for each", kit.FormatCPU(b.CPU)})
	}
	if k.All != nil {
		show(fmt.Sprintf("%d at once", k.All.Count), k.All)
	}
	for _, b := range k.Single {
		show(fmt.Sprintf("one more after %d, mean of %d", b.Before, b.Count), b)
	}
	if k.InAll > 0 {
		rows = append(rows, []string{"memory of hub-operator before, and with " + fmt.Sprint(k.InAll), fmt.Sprintf("%d, %d MiB", k.Before/1024, k.After/1024)})
	}
	if k.RestCores != nil {
		rows = append(rows, []string{fmt.Sprintf("at rest, %.0f s: requests to the management cluster", k.RestSeconds), audit.FormatEach(k.RestOnManagement, 1)},
			[]string{"  requests to the managed clusters", audit.FormatEach(k.RestOnManaged, 1)},
			[]string{"  cores", fmt.Sprintf("hub-operator %.3f", k.RestCores[procHubOperator])})
	}
	if s := k.Renewals; s != nil {
		rows = append(rows, []string{fmt.Sprintf("%d tokens of %.0f s, minted in %.1f s", s.Tokens, s.LifeSeconds, s.MintedIn),
			fmt.Sprintf("%d renewed, %d early, %d late", s.Renewed, s.Early, s.Late)},
			[]string{fmt.Sprintf("  in %d parts of the time", spreadParts), fmt.Sprint(s.Parts)},
			[]string{"  the most in one second", fmt.Sprint(s.MaxInSecond)})
	}
	kit.PrintTable(out, fmt.Sprintf("(n) %d detached Klusterlets, %d managed clusters", k.Klusterlets, k.ManagedClusters), []string{"", ""}, rows)
}

// enoughTokens is the number from which on chance does not cause a burst.
const enoughTokens = 200

// Judge compares the result with the targets.
func (k *Result) Judge(t *kit.Targets) {
	if k == nil {
		return
	}
	if k.All != nil {
		t.Add("n", "Klusterlets applied", fmt.Sprint(k.All.Count), fmt.Sprint(k.All.Applied), k.All.Applied == k.All.Count)
	}
	if len(k.Single) == 2 {
		few, many := k.Single[0], k.Single[1]
		what := fmt.Sprintf("one more after %d, to one more after %d: ", many.Before, few.Before)
		t.AtMost("n", what+"requests", "x", 1.1, kit.Ratio(many.requestsEach(), few.requestsEach()))
		t.AtMost("n", what+"hub-operator's CPU", "x", 1.5, kit.Ratio(many.CPU[procHubOperator], few.CPU[procHubOperator]))
	}
	if k.RestCores != nil {
		left := plus(plus(nil, audit.WithoutWatches(k.RestOnManagement)), audit.WithoutWatches(k.RestOnManaged))
		t.Add("n", "requests at rest, besides watches and the lease", "none", fmt.Sprint(audit.Sum(left)), len(left) == 0)
	}
	if s := k.Renewals; s != nil {
		t.Add("n", "tokens renewed in their time", fmt.Sprint(s.Tokens), fmt.Sprint(s.Renewed-s.Early-s.Late), s.Renewed-s.Early-s.Late == s.Tokens)
		if s.Tokens >= enoughTokens {
			t.AtMost("n", "renewals in the busiest twelfth of the time, to an even one", "x", 2, s.burst())
		}
	}
	if len(k.Lost) > 0 {
		t.Add("n", "conditions lost", "none", fmt.Sprint(len(k.Lost)), false)
	}
}
