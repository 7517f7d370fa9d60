// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// acquireLock locks DataDir/lock for this process. The kernel releases the lock when the process ends, however it ends.
//
// etcd has locks of its own, but waits for them without a limit.
func acquireLock(dataDir string) (*fileutil.LockedFile, error) {
	path := filepath.Join(dataDir, "lock")
	lock, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("the data directory %s is in use by another hub-apiserver%s: "+
			"stop that one, or give this one another --data-dir", dataDir, lockHolder(path))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data directory %s: %w", dataDir, err)
	}
	// The process ID is for the error of the next process; the lock itself does not depend on it.
	if err := lock.Truncate(0); err == nil {
		_, _ = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return lock, nil
}

// lockHolder returns " (process N)", or "" if the lock file has no process ID.
func lockHolder(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

// checkDatabase opens the database file, if it exists, for reading only. etcd opens it in a goroutine of its own and ends the process if that fails,
// and waits without a limit if an etcd that does not use our lock has it open.
func checkDatabase(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil && errors.Is(err, berrors.ErrTimeout) {
		return fmt.Errorf("the database %s is in use by another process: stop that one", path)
	}
	if err != nil {
		return fmt.Errorf("the database %s cannot be opened (%w): restore it from a backup", path, err)
	}
	return db.Close()
}
