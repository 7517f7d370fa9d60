// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacebounds

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
)

// inFlight is the time for which an admitted write counts without an event: it is being written, or was rejected after admission.
const inFlight = 10 * time.Second

// Amount is a number of objects, and their size in etcd in bytes.
type Amount struct{ Objects, Bytes int }

// Usage counts the objects in namespaces, from the events of all their kinds and from the admitted writes without an event yet. The cost of a change
// does not depend on the size of a namespace.
type Usage struct {
	size  objectsize.Sizer
	clock clock.PassiveClock

	lock       sync.Mutex
	namespaces map[string]*namespace
	// counted reports, for each resource that has a store, whether all its objects are counted.
	counted map[schema.GroupResource]bool
	// admitted are the writes without an event yet, the oldest first.
	admitted []write
	// unnamed numbers the objects without a name.
	unnamed int
}

// key identifies an object in its namespace.
type key struct {
	resource schema.GroupResource
	name     string
}

// write is an admitted write.
type write struct {
	namespace string
	key
	at time.Time
}

// namespace has the counts of a namespace. Both maps have sizes.
type namespace struct {
	used   Amount
	stored map[key]int
	// coming has a size for each object that is being written, and when that was last admitted.
	coming map[key]coming
}

type coming struct {
	size int
	at   time.Time
}

// NewUsage returns a Usage that has counted nothing.
func NewUsage(size objectsize.Sizer, c clock.PassiveClock) *Usage {
	return &Usage{size: size, clock: c, namespaces: map[string]*namespace{}, counted: map[schema.GroupResource]bool{}}
}

// of returns what an object counts for: the larger of its stored size and the size that is being written.
func (n *namespace) of(k key) Amount {
	stored, isStored := n.stored[k]
	coming, isComing := n.coming[k]
	if !isStored && !isComing {
		return Amount{}
	}
	return Amount{1, max(stored, coming.size)}
}

// change changes the data of an object, and updates the counts by the difference.
func (u *Usage) change(in string, k key, f func(n *namespace)) {
	n := u.namespaces[in]
	if n == nil {
		n = &namespace{stored: map[key]int{}, coming: map[key]coming{}}
		u.namespaces[in] = n
	}
	before := n.of(k)
	f(n)
	after := n.of(k)
	n.used.Objects += after.Objects - before.Objects
	n.used.Bytes += after.Bytes - before.Bytes
	if len(n.stored)+len(n.coming) == 0 {
		delete(u.namespaces, in)
	}
}

// forget drops the writes that were admitted too long ago.
func (u *Usage) forget(now time.Time) {
	for len(u.admitted) > 0 && now.Sub(u.admitted[0].at) > inFlight {
		w := u.admitted[0]
		u.admitted = u.admitted[1:]
		u.change(w.namespace, w.key, func(n *namespace) {
			if n.coming[w.key].at.Equal(w.at) {
				delete(n.coming, w.key)
			}
		})
	}
}

// Counts reports whether all objects of the resource are counted.
func (u *Usage) Counts(resource schema.GroupResource) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	return u.counted[resource]
}

// ready reports whether all objects of all resources that have a store are counted.
func (u *Usage) ready() bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	for _, counted := range u.counted {
		if !counted {
			return false
		}
	}
	return len(u.counted) > 0
}

// fits reports whether a namespace has room for so many bytes.
func (u *Usage) fits(in string, bytes, most int) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	used := 0
	if n := u.namespaces[in]; n != nil {
		used = n.used.Bytes
	}
	return used+bytes <= most
}

// admit reports whether there is room for an object of a size and, except for a dry run, reserves it. It returns what is used, and what the write
// adds. An object that exists already, or is being written, is not counted twice: storage rejects a second create.
func (u *Usage) admit(in string, k key, size int, isNew bool, most Amount, dryRun bool) (used, more Amount, ok bool) {
	u.lock.Lock()
	defer u.lock.Unlock()
	now := u.clock.Now()
	u.forget(now)
	if k.name == "" {
		u.unnamed++
		k.name = fmt.Sprint("/", u.unnamed) // no name has a slash
	}
	var before Amount
	if n := u.namespaces[in]; n != nil {
		used, before = n.used, n.of(k)
	}
	if isNew && before.Objects == 1 {
		return used, more, true
	}
	more.Bytes = size - before.Bytes
	if isNew {
		more.Objects = 1
	}
	if more.Bytes <= 0 {
		return used, more, true
	}
	if more.Objects > 0 && most.Objects > 0 && used.Objects+more.Objects > most.Objects || most.Bytes > 0 && used.Bytes+more.Bytes > most.Bytes {
		return used, more, false
	}
	if !dryRun {
		u.change(in, k, func(n *namespace) { n.coming[k] = coming{size, now} })
		u.admitted = append(u.admitted, write{in, k, now})
	}
	return used, more, true
}

// Store returns a store for a reflector, which counts the objects of a resource.
func (u *Usage) Store(resource schema.GroupResource) cache.ReflectorStore {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.counted[resource] = false
	return &store{u, resource}
}

type store struct {
	*Usage
	resource schema.GroupResource
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error {
	in, k, size, err := s.measure(object)
	if err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.set(in, k, size)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	k := key{s.resource, accessor.GetName()}
	s.change(accessor.GetNamespace(), k, func(n *namespace) { delete(n.stored, k) })
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(objects []any, _ string) error {
	type sized struct {
		in   string
		key  key
		size int
	}
	all, there := make([]sized, 0, len(objects)), map[string]map[string]bool{}
	for _, object := range objects {
		in, k, size, err := s.measure(object)
		if err != nil {
			return err
		}
		all = append(all, sized{in, k, size})
		if there[in] == nil {
			there[in] = map[string]bool{}
		}
		there[in][k.name] = true
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	for in, n := range s.namespaces {
		for k := range n.stored {
			if k.resource == s.resource && !there[in][k.name] {
				s.change(in, k, func(n *namespace) { delete(n.stored, k) })
			}
		}
	}
	for _, one := range all {
		s.set(one.in, one.key, one.size)
	}
	s.counted[s.resource] = true
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

func (s *store) measure(object any) (in string, k key, size int, err error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", key{}, 0, err
	}
	size, err = s.size(s.resource, object.(runtime.Object))
	return accessor.GetNamespace(), key{s.resource, accessor.GetName()}, size, err
}

// set counts a stored size. An admitted write stays until an event has its size: an earlier event may be of another write.
func (s *store) set(in string, k key, size int) {
	s.change(in, k, func(n *namespace) {
		n.stored[k] = size
		if n.coming[k].size <= size {
			delete(n.coming, k)
		}
	})
}
