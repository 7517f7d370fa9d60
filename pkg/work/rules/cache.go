// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/sha256"
	"encoding/json"

	"k8s.io/utils/lru"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// Cache caches compiled rules: equal rules are compiled once, whichever works have them. It can be used from several goroutines.
type Cache struct{ sets *lru.Cache }

// NewCache returns a cache of the given number of sets of rules, which evicts the least recently used ones.
func NewCache(size int) *Cache { return &Cache{lru.New(size)} }

// Set returns rules as Compile does.
func (c *Cache) Set(from []workv1.ConditionRule) *Set {
	if len(from) == 0 {
		return &Set{}
	}
	text, err := json.Marshal(from)
	if err != nil {
		return Compile(from)
	}
	key := sha256.Sum256(text)
	if found, ok := c.sets.Get(key); ok {
		return found.(*Set)
	}
	set := Compile(from)
	c.sets.Add(key, set)
	return set
}
