// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"sync"
	"time"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// claims holds the works that list an object without owning it: one that is orphaned, or a Namespace that existed before. Other objects have the
// owner references of their works, by which a work detects that another work had the object first.
type claims struct {
	mu     sync.Mutex
	works  map[apply.Target]map[string]time.Time // by the name of the work, its creation time
	claims map[string][]apply.Target             // by the name of the work
}

// set replaces the claims of a work.
func (c *claims) set(work *workv1.ManifestWork, items []*item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(work.Name)
	for _, one := range items {
		t := one.manifest.Target
		if !one.target || one.refused != nil || one.manifest.Strategy.Type == apply.ReadOnly ||
			!one.manifest.Orphaned && t.GroupResource() != apply.Namespaces {
			continue
		}
		t.Version = "" // all versions of a kind are one object
		if c.works == nil {
			c.works, c.claims = map[apply.Target]map[string]time.Time{}, map[string][]apply.Target{}
		}
		if c.works[t] == nil {
			c.works[t] = map[string]time.Time{}
		}
		c.works[t][work.Name] = work.CreationTimestamp.Time
		c.claims[work.Name] = append(c.claims[work.Name], t)
	}
}

// forget removes the claims of a work.
func (c *claims) forget(work string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(work)
}

func (c *claims) remove(work string) {
	for _, t := range c.claims[work] {
		delete(c.works[t], work)
		if len(c.works[t]) == 0 {
			delete(c.works, t)
		}
	}
	delete(c.claims, work)
}

// before returns the oldest work that claims an object, or "" if that is the given one. Works that were created in the same second are ordered by
// name.
func (c *claims) before(work string, t apply.Target) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Version = ""
	first, at := work, c.works[t][work]
	for name, created := range c.works[t] {
		if created.Before(at) || created.Equal(at) && name < first {
			first, at = name, created
		}
	}
	if first == work {
		return ""
	}
	return first
}
