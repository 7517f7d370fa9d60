// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// callers is the number of concurrent calls of the driver by clusteracceptance, and firstRetry to lastRetry its delay after a failure.
const (
	callers    = 32
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// fleet are clusters that do the same concurrently, by callers workers and with clusteracceptance's backoff.
type fleet struct {
	*world
	records map[string]driver.Record
}

func newFleet(t *testing.T, clusters int) *fleet {
	t.Helper()
	f := &fleet{world: newWorld(t, "us-west-2", AccessEntry, nil), records: map[string]driver.Record{}}
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		_, f.records[name] = f.join(name)
	}
	must(f.config.Credentials.Retrieve(t.Context()))(t) // by a network, which does not exist in a bubble
	return f
}

// do runs a function for some of them, and returns the time that it took.
func (f *fleet) do(t *testing.T, clusters int, do func(cluster string, rec driver.Record) error) (took time.Duration) {
	start := time.Now()
	var left, wg sync.WaitGroup
	queue := make(chan string, len(f.records))
	failures := sync.Map{}
	for i := range clusters {
		left.Add(1)
		queue <- fmt.Sprintf("c%d", i)
	}
	for range callers {
		wg.Go(func() {
			for name := range queue {
				if err := do(name, f.records[name]); err == nil || warningOf(err) != "" {
					left.Done()
					continue
				} else if !strings.Contains(err.Error(), "Throttling") && !errors.Is(err, errThrottled) {
					t.Errorf("%s: %v", name, err)
				}
				before, _ := failures.LoadOrStore(name, 0)
				failures.Store(name, before.(int)+1)
				wait := min(lastRetry, firstRetry<<min(16, before.(int)))
				time.AfterFunc(wait+rand.N(wait/2), func() { queue <- name })
			}
		})
	}
	left.Wait()
	took = time.Since(start)
	close(queue)
	wg.Wait()
	return took
}

// throttled returns the number of calls that were throttled: of all clusters, and of the cluster with most.
func (f *fleet) throttled() (all, most int) {
	by := map[any]int{}
	for _, call := range f.Calls() {
		if !strings.HasPrefix(call.Error, "Throttling") {
			continue
		}
		all++
		name := call.Params["RoleName"]
		if arn, ok := call.Params["principalArn"].(string); ok {
			name = arn[strings.LastIndex(arn, "/")+1:]
		}
		by[name]++
		most = max(most, by[name])
	}
	return all, most
}

// A fleet that joins at once does not exceed the limits of AWS: they are learned from its responses, and then respected.
func TestFleet_RespectsAWSLimits(t *testing.T) {
	// A cluster with bad luck may be throttled more than once; all together are throttled less than once for ten.
	const clusters, leaving, maxEach, maxInAll = 1000, 100, 4, 100
	// The limits allow five roles a second.
	const longest = clusters / 5 * time.Second * 5 / 2
	f := newFleet(t, clusters)
	f.SetLimits(fakeaws.AWSLimits())
	synctest.Test(t, func(t *testing.T) {
		for _, step := range []struct {
			name            string
			clusters, calls int
			do              func(string, driver.Record) error
		}{
			{"join", clusters, 4, func(name string, rec driver.Record) error { return f.Grant(t.Context(), name, rec) }},
			{"leave", leaving, 6, func(name string, rec driver.Record) error { return f.Revoke(t.Context(), name, rec) }},
		} {
			f.ResetCalls()
			took := f.do(t, step.clusters, step.do)
			all, most := f.throttled()
			t.Logf("%s: %s, %d calls, %d of them throttled, at most %d of a cluster", step.name, took.Round(time.Second), f.Count(), all, most)
			if took > longest {
				t.Errorf("%s: it takes %s, want %s at most", step.name, took, longest)
			}
			if all > maxInAll || most > maxEach {
				t.Errorf("%s: %d calls are throttled, at most %d of a cluster; want %d and %d", step.name, all, most, maxInAll, maxEach)
			}
			if n := f.Count(); n > step.clusters*step.calls+2*all {
				t.Errorf("%s: %d calls, want %d and %d that are tried again", step.name, n, step.clusters*step.calls, all)
			}
			f.clock.pass(time.Hour)
			f.Age(time.Hour)
		}
	})
	mustEqual(t, "roles and entries that are left", len(f.leaks()), 2*(clusters-leaving))
}
