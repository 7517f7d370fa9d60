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

// HealthCheckName is the name of the checks in /readyz and /livez.
const HealthCheckName = "embedded-etcd"

// HealthCheck returns the check for readyz: it fails when the server has stopped, and when etcd has found its database corrupt. The error says what
// to do. A full database does not fail it, since it can still be read, and a server that is not ready would get no reads either: Room, the log and
// the metrics report that it is full.
func (s *Server) HealthCheck() healthz.HealthChecker {
	return healthz.NamedCheck(HealthCheckName, func(*http.Request) error { return s.check() })
}

// AliveCheck returns the check for livez: it fails when the server has stopped, which a restart fixes. Unlike the check of the API server, it does
// not fail while a defragmentation blocks all reads: a restart would start that again.
func (s *Server) AliveCheck() healthz.HealthChecker {
	return healthz.NamedCheck(HealthCheckName, func(*http.Request) error { return s.alive() })
}

func (s *Server) alive() error {
	select {
	case <-s.stopping:
		return errors.New("the embedded etcd is stopping")
	case <-s.Done():
		return errors.New("the embedded etcd has stopped; restart hub-apiserver, whose log says why it stopped")
	default:
		return nil
	}
}

func (s *Server) check() error {
	if err := s.alive(); err != nil {
		return err
	}
	var problems []error
	for _, alarm := range s.etcd.Server.Alarms() {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			problems = append(problems, s.alarmError(alarm.Alarm))
		}
	}
	return errors.Join(problems...)
}

func (s *Server) alarmError(alarm etcdserverpb.AlarmType) error {
	switch alarm {
	case etcdserverpb.AlarmType_CORRUPT:
		return fmt.Errorf("the data of the embedded etcd is damaged (CORRUPT): stop hub-apiserver and restore %s from a backup",
			s.opts.DataDir)
	default:
		return fmt.Errorf("the embedded etcd raises the alarm %s", alarm)
	}
}
