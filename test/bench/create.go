// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// connections is the number of HTTP/2 connections that the writers share, like those of several programs.
const connections = 4

// rates are the results for writes of one kind.
type rates struct {
	count int
	// perSecond has a value for each round.
	perSecond []float64
	latency   samples
	cpu       cpuTimes
}

// write is one kind of writes.
type write struct {
	kind                kind
	method, contentType string
	path                func(i int) string
	body                func(i int) []byte
	rates               *rates
	// writers is the number of concurrent writers, or 0 for that of the options.
	writers int
}

// fill creates clusters from (inclusive) to (exclusive), alternating between both kinds, and sets their status.
func (b *bench) fill(ctx context.Context, from, to int) error {
	clients, err := newClients(b.front(), connections)
	if err != nil {
		return err
	}
	for _, c := range clients {
		for _, path := range []string{ourSets, peerClusters} {
			if err := c.get(ctx, path+"?limit=1", &bytes.Buffer{}); err != nil {
				return err
			}
		}
	}
	var creates, statuses []write
	kinds := []kind{ours, peer}
	if !b.options.wants("abcde") {
		kinds = kinds[:1] // without a comparison with the peer
	}
	for i, k := range kinds {
		creates = append(creates, write{k, http.MethodPost, "application/json",
			func(int) string { return k.path }, func(i int) []byte { return clusterBody(k, i) }, b.creates[i], 0})
		statuses = append(statuses, write{k, http.MethodPatch, mergePatch,
			func(i int) string { return k.path + "/" + clusterName(i) + "/status" }, statusBody, b.status[i], 0})
	}
	b.steps.step("Creating %d clusters of %d kinds, %d writers", to-from, len(kinds), b.options.writers)
	if err := b.writeInTurns(ctx, clients, "create", creates, order(from, to)); err != nil {
		return err
	}
	if !b.options.status {
		return nil
	}
	b.steps.step("Writing the status of each")
	return b.writeInTurns(ctx, clients, "status", statuses, order(from, to))
}

// writeInTurns does all writes of both kinds, a part of each in each round.
func (b *bench) writeInTurns(ctx context.Context, clients []*client, name string, writes []write, all []int) error {
	profiled := b.cpuProfile(ctx, name, min(30, max(5, len(all)/400)))
	defer profiled()
	size := max(len(all)/b.options.rounds, 10*b.options.writers)
	done := 0
	for part := range slices.Chunk(all, size) {
		for _, w := range writes {
			if err := b.writeAll(ctx, clients, w, part); err != nil {
				return err
			}
		}
		slices.Reverse(writes) // the order changes from round to round
		done += len(part)
		b.steps.at(done, len(all))
	}
	return nil
}

// writeAll does the writes of one kind with all writers and waits for them.
func (b *bench) writeAll(ctx context.Context, clients []*client, w write, part []int) error {
	bodies := make([][]byte, len(part))
	for n, i := range part {
		bodies[n] = w.body(i)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	latency := make(samples, len(part))
	var next atomic.Int64
	var writers sync.WaitGroup
	cpu := b.cpuNow()
	begun := time.Now()
	for writer := range cmp.Or(w.writers, b.options.writers) {
		writers.Go(func() {
			var answer bytes.Buffer
			for {
				n := int(next.Add(1)) - 1
				if n >= len(part) || ctx.Err() != nil {
					return
				}
				sent := time.Now()
				c := clients[writer%len(clients)]
				if err := c.do(ctx, w.method, w.path(part[n]), w.contentType, bodies[n], &answer); err != nil {
					cancel(err)
					return
				}
				latency[n] = time.Since(sent)
			}
		})
	}
	writers.Wait()
	took := time.Since(begun)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.rates.cpu.add(b.cpuNow().since(cpu))
	w.rates.count += len(part)
	w.rates.perSecond = append(w.rates.perSecond, float64(len(part))/took.Seconds())
	w.rates.latency = append(w.rates.latency, latency...)
	return nil
}

func (b *bench) reportWrites() {
	if !b.options.wants("b") {
		return
	}
	b.report.addWrites("create", b.creates)
	if b.options.status {
		b.report.addWrites("status patch", b.status)
	}
}
