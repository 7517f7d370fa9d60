// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/fuzz"
)

// These environment variables are set for a manual run: the number of requests per seed, or the number of the request to repeat.
const (
	malformedSeed  = "CLUSTERHUB_TEST_MALFORMED_SEED"
	malformedCount = "CLUSTERHUB_TEST_MALFORMED_REQUESTS"
	malformedOnly  = "CLUSTERHUB_TEST_MALFORMED_ONLY"
)

// TestMalformed_IsRejectedWithoutFailures sends requests that violate the OpenAPI documents in some way: half of them are the same in each run, half
// depend on the commit. Half are from an admin, half from a user whose rights the front checks.
func TestMalformed_IsRejectedWithoutFailures(t *testing.T) {
	p := readyProcess(t, t.TempDir())
	user := harness.Unique("malformed")
	harness.Grant(t, harness.Hub(t), user, user, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	byReviews := p.config()
	byReviews.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	target := fuzz.Target{URL: p.config().Host, Parallel: 4, Clients: []*http.Client{
		harness.Must(rest.HTTPClientFor(p.config()))(t), harness.Must(rest.HTTPClientFor(byReviews))(t),
	}}
	front := harness.Must(url.Parse(harness.Hub(t).AdminConfig().Host))(t)
	target.Hidden = []string{front.Host, "dial tcp"}
	samples := documents(t, gitFile(t))
	apis := openAPI(t, p.config())

	seeds := map[uint64]int{1: 1000, commitSeed(): 1000}
	if seed := os.Getenv(malformedSeed); seed != "" {
		n := harness.Must(strconv.Atoi(cmp.Or(os.Getenv(malformedCount), "16000")))(t)
		seeds = map[uint64]int{harness.Must(strconv.ParseUint(seed, 10, 64))(t): n}
	}
	for seed, n := range seeds {
		g := harness.Must(fuzz.New(seed, apis, samples))(t)
		numbers := make([]int, n)
		for i := range numbers {
			numbers[i] = i
		}
		if only := os.Getenv(malformedOnly); only != "" {
			numbers = []int{harness.Must(strconv.Atoi(only))(t)}
		}
		codes, err := g.Run(t.Context(), target, numbers, func(q fuzz.Request, wrong string) {
			t.Errorf("%v\ngot %s\nto repeat it: %s=%d %s=%d", q, wrong, malformedSeed, seed, malformedOnly, q.Number)
		})
		t.Logf("seed %d: answers by code: %v, %v", seed, codes, err)
	}
	if _, err := harness.Get(t, p.config(), "/readyz"); err != nil {
		t.Errorf("afterwards it is not ready: %v", err)
	}
	select {
	case <-p.ended:
		t.Error("hub-apiserver has ended")
	default:
	}
	for line := range strings.Lines(p.out.String()) {
		if strings.Contains(line, "panic") {
			t.Errorf("its log has %s", line)
		}
	}
}

// commitSeed returns a seed that differs between commits.
func commitSeed() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(os.Getenv("CLUSTERHUB_TEST_SEED"))) // a hash never fails
	return h.Sum64()
}

// openAPI returns the documents of our groups, in the order of their names.
func openAPI(t *testing.T, config *rest.Config) (documents [][]byte) {
	t.Helper()
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal([]byte(harness.Must(harness.Get(t, config, "/openapi/v3"))(t)), &index); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for name := range index.Paths {
		if strings.Count(name, "/") == 2 {
			paths = append(paths, name)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		documents = append(documents, []byte(harness.Must(harness.Get(t, config, "/openapi/v3/"+path))(t)))
	}
	return documents
}
