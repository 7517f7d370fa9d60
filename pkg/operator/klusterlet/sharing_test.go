// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// counter records the requests of hub-operator to its own cluster.
type counter struct {
	lock  sync.Mutex
	asked []string
}

type counting struct {
	*counter
	next http.RoundTripper
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	// Events for users are written with some delay.
	if !strings.Contains(r.URL.Path, "/leases/") && !strings.Contains(r.URL.Path, "/events") && r.URL.Query().Get("watch") == "" {
		c.lock.Lock()
		c.asked = append(c.asked, r.Method+" "+r.URL.Path)
		c.lock.Unlock()
	}
	return c.next.RoundTrip(r)
}

// requests returns the requests for a Klusterlet: all names of its objects on that cluster contain its own.
func (c *counter) requests(name string) (asked []string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, one := range c.asked {
		if strings.Contains(one, name) {
			asked = append(asked, one)
		}
	}
	return asked
}

// served is a Klusterlet with its own address of the managed cluster, which it shares with others.
type served struct {
	*operatorv1.Klusterlet
	there *operatortest.Front
}

// sharing is one managed cluster with several Klusterlets.
type sharing struct {
	*testing.T
	here    client.Client
	counter *counter
	all     []*served
}

func newSharing(t *testing.T) *sharing {
	s := &sharing{T: t, counter: &counter{}}
	s.here = asOperatorThrough(t, func(next http.RoundTripper) http.RoundTripper { return counting{s.counter, next} })
	return s
}

// more creates Klusterlets, and waits until they are applied.
func (s *sharing) more(mode operatorv1.InstallMode, n int) (more []*served) {
	s.Helper()
	for range n {
		one := &served{there: &operatortest.Front{}}
		one.Klusterlet = made(s.T, s.here, mode, one.there.Start(s.T, operatortest.Shared.Config(s.T, "managed")))
		more = append(more, one)
	}
	for _, one := range more {
		waits(s.T, s.here, one.Klusterlet, operatorv1.ConditionKlusterletApplied, metav1.ConditionTrue)
	}
	s.all = append(s.all, more...)
	return more
}

// asked returns all requests for a Klusterlet, to both clusters.
func (s *sharing) asked(one *served) [2][]string {
	return [2][]string{s.counter.requests(one.Name), one.there.Requests()}
}

// rests waits until no request was sent for two seconds.
func (s *sharing) rests() {
	s.Helper()
	last, since := -1, time.Now()
	operatortest.Eventually(s.T, "hub-operator rests", func() bool {
		now := 0
		for _, one := range s.all {
			asked := s.asked(one)
			now += len(asked[0]) + len(asked[1])
		}
		if now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
}

// costs returns the requests of each Klusterlet until all are at rest again.
func (s *sharing) costs(do func()) map[string][]string {
	s.Helper()
	s.rests()
	before := map[*served][2][]string{}
	for _, one := range s.all {
		before[one] = s.asked(one)
	}
	do()
	s.rests()
	costs := map[string][]string{}
	for one, before := range before {
		for side, asked := range s.asked(one) {
			if more := asked[len(before[side]):]; len(more) > 0 {
				costs[one.Name] = append(costs[one.Name], more...)
			}
		}
	}
	return costs
}

func (s *sharing) leave() {
	for _, one := range s.all {
		if err := s.here.Delete(s.Context(), one.Klusterlet); err != nil {
			s.Error(err)
		}
	}
	for _, one := range s.all {
		operatortest.Eventually(s.T, "it is gone", func() bool {
			return apierrors.IsNotFound(s.here.Get(s.Context(), client.ObjectKeyFromObject(one.Klusterlet), one.Klusterlet))
		})
	}
}

// TestSharing_AddingKlusterletCostsOthersNothing: requests are sent only where something changed: adding a Klusterlet to a managed cluster, or deleting
// one, causes no requests for the others on that cluster, however many there are.
func TestSharing_AddingKlusterletCostsOthersNothing(t *testing.T) {
	for mode, numbers := range map[operatorv1.InstallMode][]int{operatorv1.InstallModeHosted: {3, 6}, operatorv1.InstallModeSingleton: {3}} {
		t.Run(string(mode), func(t *testing.T) {
			s := newSharing(t)
			for _, n := range numbers {
				s.more(mode, n-len(s.all))
				if costs := s.costs(func() { s.more(mode, 1) }); len(costs) > 0 {
					t.Errorf("one more after %d costs the others %q", n, costs)
				}
				asked := s.asked(s.all[n])
				t.Logf("one more after %d costs %d requests on the management cluster, and %d on the other", n, len(asked[0]), len(asked[1]))
			}
			last := s.all[len(s.all)-1]
			s.all = s.all[:len(s.all)-1]
			if costs := s.costs(func() { gone(t, s.here, last.Klusterlet) }); len(costs) > 0 {
				t.Errorf("one less after %d costs the others %q", len(s.all)+1, costs)
			}
			s.leave()
		})
	}
}

// TestSharing_IgnoresLabelsOfOthers: users who may label objects of a managed cluster may set the labels of Klusterlets. Only desired objects are
// read, and of those the labels of others are ignored.
func TestSharing_IgnoresLabelsOfOthers(t *testing.T) {
	s := newSharing(t)
	one := s.more(operatorv1.InstallModeHosted, 1)[0]
	there, err := client.New(operatortest.Shared.Config(t, "managed"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	own := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: one.ManagedNamespace(), Name: one.WorkServiceAccount()}
	if err := there.Get(t.Context(), key, own); err != nil {
		t.Fatal(err)
	}
	definition := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	definition.Name = "clusterclaims.cluster.open-cluster-management.io"
	mark := func(o client.Object, label, value string) {
		t.Helper()
		err := there.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label, value)))
		if err != nil {
			t.Fatal(err)
		}
	}
	costs := s.costs(func() {
		foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x" + rand.String(6), Labels: own.Labels}}
		if err := there.Create(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
		for i := range 20 { // more than the burst of reconciles
			mark(foreign, "x", fmt.Sprintf(`"%d"`, i))
			mark(definition, "klusterlet.operator.clusterhub.dev/other.01234567", fmt.Sprintf(`"%d"`, i))
		}
		mark(definition, "klusterlet.operator.clusterhub.dev/other.01234567", "null")
		if err := there.Delete(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
	})
	if len(costs) > 0 {
		t.Errorf("what is others' costs %q", costs)
	}
	// Its own labels are restored.
	var label string
	for name := range definition.Labels {
		if strings.HasPrefix(name, "klusterlet.operator.clusterhub.dev/"+one.Name+".") {
			label = name
		}
	}
	value := definition.Labels[label]
	mark(definition, label, "null")
	mark(own, "app.kubernetes.io/managed-by", `"x"`)
	mark(own, "app.kubernetes.io/managed-by", `"hub-operator"`)
	operatortest.Eventually(t, "the label is there again", func() bool {
		return there.Get(t.Context(), client.ObjectKeyFromObject(definition), definition) == nil && value != "" && definition.Labels[label] == value
	})
	s.leave()
}
