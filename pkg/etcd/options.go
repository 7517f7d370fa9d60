// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd runs the etcd server in which hub-apiserver stores its objects if --etcd-servers is not set: one member inside the process, reachable
// over mutual TLS on loopback only.
package etcd

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

const (
	// DefaultDataDir is the default of --data-dir.
	DefaultDataDir = "/var/lib/hub-apiserver"
	// DefaultQuotaBackendBytes is the default of --embedded-etcd-quota-backend-bytes: 8 GiB, the most that etcd recommends.
	DefaultQuotaBackendBytes int64 = 8 << 30
	// minQuotaBackendBytes catches a number meant as GiB or MiB. An empty database already needs tens of KiB.
	minQuotaBackendBytes int64 = 1 << 20

	quotaFlag = "embedded-etcd-quota-backend-bytes"
)

// Options configure where the embedded etcd stores its data and how much of it.
type Options struct {
	// DataDir is the directory of everything that must survive a restart. The database is in DataDir/etcd, the certificates of this run in
	// DataDir/pki, and DataDir/lock prevents a second process.
	DataDir string
	// QuotaBackendBytes is the size in bytes that the database may reach before etcd rejects writes. The last eighth of it, 256 MiB at most, is
	// reserved for deletions, see Server.Room.
	QuotaBackendBytes int64
	// UnsafeNoFsync lets etcd acknowledge writes that a crash of the machine would lose. For tests only.
	UnsafeNoFsync bool
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{DataDir: DefaultDataDir, QuotaBackendBytes: DefaultQuotaBackendBytes}
}

// AddFlags adds the flags of the embedded etcd to fs, with the current values as their defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir,
		"The directory of the embedded etcd, which is used if --etcd-servers is not set. Only one process can use it at a time.")
	fs.Int64Var(&o.QuotaBackendBytes, quotaFlag, o.QuotaBackendBytes,
		"The maximum size of the embedded etcd's database, in bytes. The last eighth of it, at most 256 MiB, is reserved for deletions: other "+
			"writes are rejected until compaction and defragmentation have freed space. Above 8 GiB, etcd becomes slower.")
	fs.BoolVar(&o.UnsafeNoFsync, "embedded-etcd-unsafe-no-fsync", o.UnsafeNoFsync,
		"If true, the embedded etcd does not wait for the disk, so that a crash of the machine loses acknowledged writes. For tests only.")
}

// Validate returns one error for each option that Start cannot work with.
func (o *Options) Validate() []error {
	var errs []error
	if o.DataDir == "" {
		errs = append(errs, errors.New("--data-dir must name a directory when --etcd-servers is not set"))
	}
	if o.QuotaBackendBytes < minQuotaBackendBytes {
		errs = append(errs, fmt.Errorf("--%s is %d, but must be at least %d: it counts bytes",
			quotaFlag, o.QuotaBackendBytes, minQuotaBackendBytes))
	}
	return errs
}
