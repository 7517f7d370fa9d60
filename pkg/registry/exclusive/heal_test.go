// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterhub/clusterhub/pkg/registry/backend"
)

// ghost creates a claim that a set has left behind.
func (h *hub) ghost(value, holder string) {
	h.t.Helper()
	_, err := h.etcd.Put(h.t.Context(), h.config.Prefix+"/exclusive-labels/"+region+"/"+value, holder)
	must(h.t, err)
}

func (h *hub) spoil(name string) {
	h.t.Helper()
	_, err := h.etcd.Put(h.t.Context(), h.config.Prefix+"/sets/"+name, "spoilt")
	must(h.t, err)
}

func (r replica) deleteUnsafely(name string) error {
	unsafe := true
	_, _, err := r.Resource.GetCorruptObjDeleter().Delete(r.context(), name, rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &unsafe})
	return err
}

// TestHeal_ClaimOfUnsafelyDeletedSet: an unsafe deletion does not know the claim of the set.
func TestHeal_ClaimOfUnsafelyDeletedSet(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	must(t, r.create(claiming("a", region, "apac")))
	must(t, r.create(claiming("b", region, "emea")))
	h.spoil("a")
	expectConflict(t, r.create(claiming("c", region, "apac")), "a", region+"=apac")
	must(t, r.deleteUnsafely("a"))
	h.expectClaims("region/apac=a", "region/emea=b")
	must(t, r.update("b", claim(region, "apac")))
	h.expectClaims("region/apac=b")
	expectConflict(t, r.create(claiming("a", region, "apac")), "b", region+"=apac")
}

func TestHeal_ClaimOfSameName(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	h.ghost("apac", "a")
	must(t, r.create(claiming("a", region, "apac")))
	h.expectClaims("region/apac=a")
	h.ghost("emea", "a")
	must(t, r.update("a", claim(region, "emea")))
	h.expectClaims("region/emea=a")
	expectConflict(t, r.create(claiming("b", region, "emea")), "a", region+"=emea")
}

func TestHeal_HolderWithOtherLabel(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	h.ghost("apac", "a")
	h.ghost("emea", "a")
	must(t, r.create(claiming("a", region, "emea")))
	must(t, r.create(claiming("b", region, "apac")))
	h.expectClaims("region/apac=b", "region/emea=a")
	expectConflict(t, r.create(claiming("c", region, "emea")), "a", region+"=emea")
}

func TestHeal_IsTransactional(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	must(t, r.create(claiming("b", region, "emea")))
	h.ghost("apac", "ghost")
	must(t, r.update("b", claim(region, "apac")))
	var revisions []int64
	for _, key := range []string{"/sets/b", "/exclusive-labels/" + region + "/apac"} {
		got, err := h.etcd.Get(t.Context(), h.config.Prefix+key)
		must(t, err)
		revisions = append(revisions, got.Kvs[0].ModRevision)
	}
	if revisions[0] != revisions[1] {
		t.Errorf("the set was written at %d, its claim at %d", revisions[0], revisions[1])
	}
}

func TestHeal_RacingSetsOneSucceeds(t *testing.T) {
	h := newHub(t)
	replicas := []replica{h.replica(), h.replica()}
	const racers = 6
	for round := range 10 {
		value := fmt.Sprint("v", round)
		// One of the racers is the holder itself, which is recreated.
		h.ghost(value, fmt.Sprintf("r%d-0", round))
		var functions []func() error
		for i := range racers {
			functions = append(functions, func() error {
				return replicas[i%2].create(claiming(fmt.Sprintf("r%d-%d", round, i), region, value))
			})
		}
		var winners []string
		errs := race(functions...)
		for i, err := range errs {
			if err == nil {
				winners = append(winners, fmt.Sprintf("r%d-%d", round, i))
			}
		}
		if len(winners) != 1 {
			t.Fatalf("the label was given to %v: %v", winners, errs)
		}
		for _, err := range errs {
			if err != nil {
				expectConflict(t, err, winners[0], region+"="+value)
			}
		}
		if got := h.claims()[round]; got != "region/"+value+"="+winners[0] {
			t.Errorf("the claim is %s, the winner %s", got, winners[0])
		}
	}
}

// interrupted calls a function after the first read of a set.
type interrupted struct {
	clientv3.KV
	set  string
	once *sync.Once
	do   func()
}

func (i interrupted) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := i.KV.Get(ctx, key, opts...)
	if strings.HasSuffix(key, "/sets/"+i.set) {
		i.once.Do(i.do)
	}
	return response, err
}

func TestHeal_HolderChangesConcurrently(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(h *hub, other replica) error
		// conflict is the set that gets the label instead.
		conflict string
	}{
		"the holder comes back": {
			func(_ *hub, other replica) error { return other.create(claiming("ghost", region, "apac")) }, "ghost",
		},
		"the holder comes back with another label": {
			func(_ *hub, other replica) error { return other.create(claiming("ghost", region, "emea")) }, "",
		},
		"another set is faster": {
			func(_ *hub, other replica) error { return other.create(claiming("fast", region, "apac")) }, "fast",
		},
		"another set is faster and gone": {
			func(_ *hub, other replica) error {
				if err := other.create(claiming("fast", region, "apac")); err != nil {
					return err
				}
				return other.delete("fast")
			}, "",
		},
		"the holder is restored, which writes no claim": {
			func(h *hub, other replica) error {
				if err := other.create(claiming("model", region, "emea")); err != nil {
					return err
				}
				model, err := h.etcd.Get(h.t.Context(), h.config.Prefix+"/sets/model")
				if err != nil {
					return err
				}
				text := strings.NewReplacer("model", "ghost", "emea", "apac").Replace(string(model.Kvs[0].Value))
				_, err = h.etcd.Put(h.t.Context(), h.config.Prefix+"/sets/ghost", text)
				return err
			}, "ghost",
		},
		"the set itself is created": {
			func(_ *hub, other replica) error { return other.create(claiming("b", region, "emea")) }, "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			other := h.replica()
			h.ghost("apac", "ghost")
			var meanwhile error
			h.connect = func(config storagebackend.TransportConfig) (*kubernetes.Client, error) {
				client, err := backend.Dial(config)
				if err == nil {
					client.KV = interrupted{client.KV, "ghost", &sync.Once{}, func() { meanwhile = c.meanwhile(h, other) }}
				}
				return client, err
			}
			err := h.replica().create(claiming("b", region, "apac"))
			must(t, meanwhile)
			switch c.conflict {
			case "":
				must(t, err)
				if got := h.claims()[0]; got != "region/apac=b" {
					t.Errorf("the claim is %s", got)
				}
			case "b":
				if err == nil || !strings.Contains(err.Error(), "already exists") {
					t.Errorf("got %v", err)
				}
			default:
				expectConflict(t, err, c.conflict, region+"=apac")
			}
		})
	}
}
