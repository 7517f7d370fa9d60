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
	method, contentType string
	path                func(i int) string
	body                func(i int) []byte
	rates               *rates
	// writers is the number of concurrent writers, or 0 for that of the options.
	writers int
}

// writeInTurns does all writes of both kinds, a part of each in each round.
func (e *env) writeInTurns(ctx context.Context, clients []*client, name string, writes []write, all []int) error {
	profiled := e.cpuProfile(ctx, name, min(30, max(5, len(all)/400)))
	defer profiled()
	size := max(len(all)/e.options.rounds, 10*e.options.writers)
	done := 0
	for part := range slices.Chunk(all, size) {
		for _, w := range writes {
			if err := e.writeAll(ctx, clients, w, part); err != nil {
				return err
			}
		}
		slices.Reverse(writes) // the order changes from round to round
		done += len(part)
		e.steps.at(done, len(all))
	}
	return nil
}

// writeAll does the writes of one kind with all writers and waits for them.
func (e *env) writeAll(ctx context.Context, clients []*client, w write, part []int) error {
	bodies := make([][]byte, len(part))
	for n, i := range part {
		bodies[n] = w.body(i)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	latency := make(samples, len(part))
	var next atomic.Int64
	var writers sync.WaitGroup
	cpu := e.cpuNow()
	begun := time.Now()
	for writer := range cmp.Or(w.writers, e.options.writers) {
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
	w.rates.cpu.add(e.cpuNow().since(cpu))
	w.rates.count += len(part)
	w.rates.perSecond = append(w.rates.perSecond, float64(len(part))/took.Seconds())
	w.rates.latency = append(w.rates.latency, latency...)
	return nil
}

// writeEach does one write for each number below n, with all writers.
func (e *env) writeEach(
	ctx context.Context, clients []*client, n int, method, contentType string, path func(int) string, body func(int) []byte,
) error {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return e.writeAll(ctx, clients, write{method: method, contentType: contentType, path: path, body: body, rates: &rates{}}, all)
}

// namespacesPath is the path of namespaces.
const namespacesPath = "/api/v1/namespaces"

// makeNamespaces creates the namespaces that hub-apiserver requires.
func (e *env) makeNamespaces(ctx context.Context, n int, name func(int) string) error {
	front, err := newClients(e.hub.AdminConfig(), connections)
	if err != nil {
		return err
	}
	return e.writeEach(ctx, front, n, http.MethodPost, "application/json", func(int) string { return namespacesPath }, func(i int) []byte {
		return mustJSON(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name(i)}})
	})
}

// writeResult is the result for writes of one kind.
type writeResult struct {
	Name      string             `json:"name"`
	Of        string             `json:"of"`
	Count     int                `json:"count"`
	PerSecond float64            `json:"perSecondMedianOfRounds"`
	PerRound  []float64          `json:"perSecondOfRounds"`
	Median    float64            `json:"medianMilliseconds"`
	P99       float64            `json:"p99Milliseconds"`
	CPU       map[string]float64 `json:"cpuMillisecondsEach"`
	CPUTotal  float64            `json:"cpuMillisecondsEachOfAll"`
	// Factor is the ratio of the rate to the peer's, by rounds.
	Factor float64 `json:"timesFasterThanPeer"`
}

// result returns the result for writes of one kind.
func (r *rates) result(name, of string) writeResult {
	return writeResult{Name: name, Of: of, Count: r.count, PerSecond: round(median(r.perSecond), 0), PerRound: roundAll(r.perSecond),
		Median: milliseconds(r.latency.median()), P99: milliseconds(r.latency.p99()), CPU: r.cpu.per(r.count), CPUTotal: round(r.each(), 3)}
}

// each returns the processor time of all processes for one write, in milliseconds.
func (r *rates) each() float64 { return ratio(milliseconds(r.cpu.total()), float64(r.count)) }

func roundAll(values []float64) []float64 {
	rounded := make([]float64, len(values))
	for i, v := range values {
		rounded[i] = round(v, 0)
	}
	return rounded
}
