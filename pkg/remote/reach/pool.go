// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import "sync"

// Pool has an open connection for each name. It may be used by several goroutines.
type Pool[C interface{ Close() }] struct {
	lock sync.Mutex
	all  map[string]pooled[C]
}

type pooled[C any] struct {
	hash       string
	connection C
}

// Get returns the connection of a name. If its hash has changed, such as that of its source, it is closed, and another one is opened.
func (p *Pool[C]) Get(name, hash string, open func() (C, error)) (C, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if have, ok := p.all[name]; ok && have.hash == hash {
		return have.connection, nil
	}
	p.close(name)
	opened, err := open()
	if err != nil {
		return opened, err
	}
	if p.all == nil {
		p.all = map[string]pooled[C]{}
	}
	p.all[name] = pooled[C]{hash, opened}
	return opened, nil
}

// Has reports whether a name has a connection.
func (p *Pool[C]) Has(name string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	_, ok := p.all[name]
	return ok
}

// Close closes the connection of a name, if it has one.
func (p *Pool[C]) Close(name string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.close(name)
}

// CloseAll closes all connections.
func (p *Pool[C]) CloseAll() {
	p.lock.Lock()
	defer p.lock.Unlock()
	for name := range p.all {
		p.close(name)
	}
}

func (p *Pool[C]) close(name string) {
	if have, ok := p.all[name]; ok {
		have.connection.Close()
		delete(p.all, name)
	}
}
