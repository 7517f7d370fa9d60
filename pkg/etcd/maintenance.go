// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

const (
	// checkInterval is the interval of the checks whether the database is full.
	checkInterval = time.Second
	// reclaimInterval is the minimum time between two attempts to reclaim space.
	reclaimInterval = 10 * time.Second
	// reclaimShare limits attempts to reclaim space, since a defragmentation blocks reads and writes: the pause after an attempt is at least this
	// many times its duration.
	reclaimShare = 10
	// maxReserveBytes bounds the space that is reserved for deletions, which must be written, too.
	maxReserveBytes = 256 << 20
)

var (
	fullGauge = metrics.NewGauge(&metrics.GaugeOpts{Namespace: "hub_apiserver", Subsystem: "embedded_etcd", Name: "full",
		Help: "1 while the embedded etcd is full: writes are refused, reads and deletions go on.", StabilityLevel: metrics.ALPHA})
	reclaimsTotal = metrics.NewCounterVec(&metrics.CounterOpts{Namespace: "hub_apiserver", Subsystem: "embedded_etcd", Name: "reclaims_total",
		Help:           "Attempts to make room in a full embedded etcd by compaction and defragmentation, by whether writes were accepted then.",
		StabilityLevel: metrics.ALPHA}, []string{"accepted"})
)

var (
	sizeGauge = metrics.NewGauge(&metrics.GaugeOpts{Name: "clusterhub_embedded_etcd_size_bytes",
		Help: "Size of the database of the embedded etcd, which counts against its quota.", StabilityLevel: metrics.ALPHA})
	quotaGauge = metrics.NewGauge(&metrics.GaugeOpts{Name: "clusterhub_embedded_etcd_quota_bytes",
		Help: "Size at which the embedded etcd refuses writes, without what is kept for deletions.", StabilityLevel: metrics.ALPHA})
)

func init() { legacyregistry.MustRegister(fullGauge, reclaimsTotal, sizeGauge, quotaGauge) }

// limit returns the size in bytes at which the server counts as full: the quota without the reserve for deletions. An object with finalizers is
// written several times before it is gone.
func (o Options) limit() int64 { return o.QuotaBackendBytes - o.reserve() }

func (o Options) reserve() int64 { return min(o.QuotaBackendBytes/8, maxReserveBytes) }

// reopen returns the size in bytes below which a server that was full accepts writes again.
func (o Options) reopen() int64 { return o.limit() / 100 * 95 }

// CheckSpace returns why there is no room for writes, and what to do; nil if there is room. Callers that check it before a write leave the rest of the
// quota to deletions.
func (s *Server) CheckSpace() error {
	backend := s.etcd.Server.Backend()
	size := backend.Size()
	if size < s.opts.limit() && size >= s.opts.limit()-s.opts.reserve() {
		// The size was measured at the last commit, up to a tenth of a second ago: long enough to use up the whole reserve for deletions.
		backend.ForceCommit()
		size = backend.Size()
	}
	if size < s.opts.limit() && !s.full.Load() {
		return nil
	}
	return fmt.Errorf("the embedded etcd of hub-apiserver is full: its database has %d of %d bytes (%d are kept for deletions). "+
		"It compacts and defragments itself, and accepts writes again below %d bytes. Where that does not help, delete what is not needed, "+
		"or start hub-apiserver with a higher --%s",
		size, s.opts.QuotaBackendBytes, s.opts.QuotaBackendBytes-s.opts.limit(), s.opts.reopen(), quotaFlag)
}

// reclaimWhenFull checks until the server stops whether the database is full, and makes room if it is.
func (s *Server) reclaimWhenFull(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	var next time.Time
	quotaGauge.Set(float64(s.opts.limit()))
	for {
		sizeGauge.Set(float64(s.etcd.Server.Backend().Size()))
		select {
		case <-ctx.Done():
			return
		case <-s.Done():
			return
		case now := <-ticker.C:
			if now.Before(next) || !s.isFull() {
				continue
			}
			s.tryReclaim(ctx)
			next = time.Now().Add(max(s.pause(), reclaimShare*time.Since(now)))
		}
	}
}

// pause returns the delay before the next attempt: short, while deletions use up their reserve.
func (s *Server) pause() time.Duration {
	if s.etcd.Server.Backend().Size() >= s.reserveLow() {
		return checkInterval
	}
	return reclaimInterval
}

// reserveLow returns the size in bytes at which half of the reserve for deletions is used up.
func (s *Server) reserveLow() int64 { return s.opts.limit() + s.opts.reserve()/2 }

// isFull reports whether there is space to reclaim, or an alarm to disarm: etcd keeps the alarm until it is disarmed, even after the quota was
// raised.
func (s *Server) isFull() bool {
	return s.full.Load() || s.etcd.Server.Backend().Size() >= s.opts.limit() || s.noSpaceAlarm() != nil
}

// noteFull rejects writes from now on, and reports whether they were accepted before, which it then logs.
func (s *Server) noteFull(ctx context.Context) bool {
	first := !s.full.Swap(true)
	fullGauge.Set(1)
	if first {
		klog.FromContext(ctx).Info("The embedded etcd is full; writes are refused until there is room",
			"bytes", s.etcd.Server.Backend().Size(), "quotaBytes", s.opts.QuotaBackendBytes)
	}
	return first
}

// tryReclaim reclaims space, and reports the outcome in the log and in the metrics.
func (s *Server) tryReclaim(ctx context.Context) {
	logger := klog.FromContext(ctx)
	first := s.noteFull(ctx) || s.reclaimed == 0 // a server that was full at startup has not tried yet
	err := s.reclaim(ctx, first)
	reclaimsTotal.WithLabelValues(fmt.Sprint(err == nil)).Inc()
	switch {
	case err == nil:
		s.full.Store(false)
		fullGauge.Set(0)
		logger.Info("The embedded etcd was full; it accepts writes again",
			"bytes", s.etcd.Server.Backend().Size(), "quotaBytes", s.opts.QuotaBackendBytes)
	case first && ctx.Err() == nil:
		logger.Error(err, "The embedded etcd is full and its space could not be reclaimed; it is tried again")
	}
}

// reclaim compacts and defragments, and returns an error if the database is then not small enough for writes other than deletions. Existing watches
// get "410 Gone" and list again. If nothing was written or deleted since the previous attempt, it does not compact again.
func (s *Server) reclaim(ctx context.Context, first bool) error {
	backend, revision := s.etcd.Server.Backend(), s.etcd.Server.KV().Rev()
	if first || revision != s.reclaimed {
		if _, err := s.client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			return fmt.Errorf("compact: %w", err)
		}
		if backend.Size() >= s.opts.reopen() {
			if err := backend.Defrag(); err != nil {
				return fmt.Errorf("defragment: %w", err)
			}
		}
		s.reclaimed = revision
	}
	size := backend.Size()
	if alarm := s.noSpaceAlarm(); alarm != nil && size < s.reserveLow() {
		if _, err := s.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("disarm: %w", err)
		}
	}
	if size >= s.opts.reopen() {
		return fmt.Errorf("the database still has %d bytes, and accepts writes below %d: delete what is not needed, or raise --%s",
			size, s.opts.reopen(), quotaFlag)
	}
	return nil
}

func (s *Server) noSpaceAlarm() *etcdserverpb.AlarmMember {
	for _, alarm := range s.etcd.Server.Alarms() {
		if alarm.Alarm == etcdserverpb.AlarmType_NOSPACE {
			return alarm
		}
	}
	return nil
}
