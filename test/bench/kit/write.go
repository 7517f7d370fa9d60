// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

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

// Connections is the number of HTTP/2 connections that the writers share, like those of several programs.
const Connections = 4

// Rates are the results for writes of one kind.
type Rates struct {
	Count int
	// PerSecond has a value for each round.
	PerSecond []float64
	Latency   Samples
	CPU       CPUTimes
}

// Write is one kind of writes.
type Write struct {
	Method, ContentType string
	Path                func(i int) string
	Body                func(i int) []byte
	Rates               *Rates
	// Writers is the number of concurrent writers, or 0 for that of the options.
	Writers int
}

// WriteInTurns does all writes of both kinds, a part of each in each round.
func (e *Env) WriteInTurns(ctx context.Context, clients []*Client, name string, writes []Write, all []int) error {
	profiled := e.CPUProfile(ctx, name, min(30, max(5, len(all)/400)))
	defer profiled()
	size := max(len(all)/e.Options.Rounds, 10*e.Options.Writers)
	done := 0
	for part := range slices.Chunk(all, size) {
		for _, w := range writes {
			if err := e.WriteAll(ctx, clients, w, part); err != nil {
				return err
			}
		}
		slices.Reverse(writes) // the order changes from round to round
		done += len(part)
		e.Steps.At(done, len(all))
	}
	return nil
}

// WriteAll does the writes of one kind with all writers and waits for them.
func (e *Env) WriteAll(ctx context.Context, clients []*Client, w Write, part []int) error {
	bodies := make([][]byte, len(part))
	for n, i := range part {
		bodies[n] = w.Body(i)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	latency := make(Samples, len(part))
	var next atomic.Int64
	var writers sync.WaitGroup
	cpu := e.CPUNow()
	begun := time.Now()
	for writer := range cmp.Or(w.Writers, e.Options.Writers) {
		writers.Go(func() {
			var answer bytes.Buffer
			for {
				n := int(next.Add(1)) - 1
				if n >= len(part) || ctx.Err() != nil {
					return
				}
				sent := time.Now()
				c := clients[writer%len(clients)]
				if err := c.Do(ctx, w.Method, w.Path(part[n]), w.ContentType, bodies[n], &answer); err != nil {
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
	w.Rates.CPU.Add(e.CPUNow().Since(cpu))
	w.Rates.Count += len(part)
	w.Rates.PerSecond = append(w.Rates.PerSecond, float64(len(part))/took.Seconds())
	w.Rates.Latency = append(w.Rates.Latency, latency...)
	return nil
}

// WriteEach does one write for each number below n, with all writers.
func (e *Env) WriteEach(
	ctx context.Context, clients []*Client, n int, method, contentType string, path func(int) string, body func(int) []byte,
) error {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return e.WriteAll(ctx, clients, Write{Method: method, ContentType: contentType, Path: path, Body: body, Rates: &Rates{}}, all)
}

// NamespacesPath is the path of namespaces.
const NamespacesPath = "/api/v1/namespaces"

// CreateNamespaces creates the namespaces that hub-apiserver requires.
func (e *Env) CreateNamespaces(ctx context.Context, n int, name func(int) string) error {
	front, err := NewClients(e.Hub.AdminConfig(), Connections)
	if err != nil {
		return err
	}
	return e.WriteEach(ctx, front, n, http.MethodPost, "application/json", func(int) string { return NamespacesPath }, func(i int) []byte {
		return MustJSON(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name(i)}})
	})
}

// WriteResult is the result for writes of one kind.
type WriteResult struct {
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

// Result returns the result for writes of one kind.
func (r *Rates) Result(name, of string) WriteResult {
	return WriteResult{Name: name, Of: of, Count: r.Count, PerSecond: Round(Median(r.PerSecond), 0), PerRound: roundAll(r.PerSecond),
		Median: Milliseconds(r.Latency.Median()), P99: Milliseconds(r.Latency.P99()), CPU: r.CPU.Per(r.Count), CPUTotal: Round(r.CPUEach(), 3)}
}

// CPUEach returns the processor time of all processes for one write, in milliseconds.
func (r *Rates) CPUEach() float64 { return Ratio(Milliseconds(r.CPU.total()), float64(r.Count)) }

func roundAll(values []float64) []float64 {
	rounded := make([]float64, len(values))
	for i, v := range values {
		rounded[i] = Round(v, 0)
	}
	return rounded
}
