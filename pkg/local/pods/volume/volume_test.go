// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestWrite_IsAtomic reads two files through the folder that was current, as programs do that need a consistent set.
func TestWrite_IsAtomic(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	own := func(string, File) error { return nil }
	write := func(n int) {
		t.Helper()
		text := fmt.Sprint(n)
		if err := Write(dir, map[string]File{"a": {Data: text}, "b/c": {Data: text}, "n" + text: {}}, own); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	var reading sync.WaitGroup
	done := make(chan struct{})
	reads := 0
	reading.Go(func() {
		for {
			folder, err := os.Readlink(filepath.Join(dir, Current))
			if err != nil {
				t.Error(err)
				return
			}
			a, errA := os.ReadFile(filepath.Join(dir, folder, "a"))
			c, errC := os.ReadFile(filepath.Join(dir, folder, "b", "c"))
			if errA == nil && errC == nil && string(a) != string(c) {
				t.Errorf("a is %s and c is %s", a, c)
			}
			// A reader that was interrupted for two changes must try again.
			if _, err := os.ReadFile(filepath.Join(dir, "a")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			reads++
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for n := range 200 {
		write(n)
	}
	close(done)
	reading.Wait()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 6 { // its folder, the previous one, ..data, a, b, n199
		t.Errorf("there are %v, %v", entries, err)
	}
	t.Logf("%d reads", reads)
}

func TestToken_RenewalIsDue(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		age, lifetime time.Duration
		want          bool
	}{{0, time.Hour, false}, {47 * time.Minute, time.Hour, false}, {49 * time.Minute, time.Hour, true}, {23 * time.Hour, 8760 * time.Hour, false},
		{25 * time.Hour, 8760 * time.Hour, true}} {
		of := &Token{Issued: now.Add(-test.age), Expires: now.Add(test.lifetime - test.age)}
		if got := of.Due(now); got != test.want {
			t.Errorf("after %s of %s: %t", test.age, test.lifetime, got)
		}
	}
}

// TestWrite_RetainsPreviousFiles to a program that has just followed the link to them.
func TestWrite_RetainsPreviousFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	folders := []string{}
	for n := range 3 {
		if err := Write(dir, map[string]File{"a": {Data: fmt.Sprint(n)}}, func(string, File) error { return nil }); err != nil {
			t.Fatal(err)
		}
		folder, err := os.Readlink(filepath.Join(dir, Current))
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, filepath.Join(dir, folder, "a"))
	}
	_, first := os.ReadFile(folders[0])
	former, err := os.ReadFile(folders[1])
	if !errors.Is(first, fs.ErrNotExist) || err != nil || string(former) != "1" {
		t.Errorf("the first file is there: %v; the former one says %q, %v", first, former, err)
	}
}
