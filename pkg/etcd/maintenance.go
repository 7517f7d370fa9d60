// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"
)

// reclaimSpace ends the NOSPACE alarm of an earlier run where it can: etcd keeps the alarm until it is told, also
// after the quota was raised. It compacts and defragments, which no client is there yet to be disturbed by, and disarms
// the alarm when the database is then below 95 % of the quota. Watches from before the restart get "410 Gone" and list
// again.
func (s *Server) reclaimSpace(ctx context.Context) error {
	var alarm *etcdserverpb.AlarmMember
	for _, a := range s.etcd.Server.Alarms() {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			alarm = a
		}
	}
	if alarm == nil {
		return nil
	}
	revision := s.etcd.Server.KV().Rev()
	if _, err := s.client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact: %w", err)
	}
	if err := s.etcd.Server.Backend().Defrag(); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	size := s.etcd.Server.Backend().Size()
	if size >= s.opts.QuotaBackendBytes/100*95 {
		return fmt.Errorf("the database still has %d bytes of the quota of %d: raise --%s", size, s.opts.QuotaBackendBytes, quotaFlag)
	}
	if _, err := s.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
		return fmt.Errorf("disarm: %w", err)
	}
	klog.FromContext(ctx).Info("The embedded etcd was full; it accepts writes again", "bytes", size, "quotaBytes", s.opts.QuotaBackendBytes)
	return nil
}
