// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"net/http"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/apiserver/pkg/server/healthz"
)

// HealthCheckName is the name of the check in /readyz.
const HealthCheckName = "embedded-etcd"

// HealthCheck returns the check for readyz: it fails when the server has stopped, when the database is full and writes
// are refused, and when etcd has found it corrupt. The error says what to do.
func (s *Server) HealthCheck() healthz.HealthChecker {
	return healthz.NamedCheck(HealthCheckName, func(*http.Request) error { return s.check() })
}

func (s *Server) check() error {
	select {
	case <-s.stopping:
		return errors.New("the embedded etcd is stopping")
	case <-s.Done():
		return errors.New("the embedded etcd has stopped; restart hub-apiserver, whose log says why it stopped")
	default:
	}
	var problems []error
	for _, alarm := range s.etcd.Server.Alarms() {
		problems = append(problems, s.alarmError(alarm.Alarm))
	}
	return errors.Join(problems...)
}

func (s *Server) alarmError(alarm etcdserverpb.AlarmType) error {
	switch alarm {
	case etcdserverpb.AlarmType_NOSPACE:
		return fmt.Errorf("the embedded etcd is full (NOSPACE) and refuses writes: its database has %d of %d bytes, %d of them in use; "+
			"restart hub-apiserver, which compacts and defragments the database as it starts, with a higher --%s if that is not enough",
			s.etcd.Server.Backend().Size(), s.opts.QuotaBackendBytes, s.etcd.Server.Backend().SizeInUse(), quotaFlag)
	case etcdserverpb.AlarmType_CORRUPT:
		return fmt.Errorf("the data of the embedded etcd is damaged (CORRUPT): stop hub-apiserver and restore %s from a backup",
			s.opts.DataDir)
	default:
		return fmt.Errorf("the embedded etcd raises the alarm %s", alarm)
	}
}
