// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestOptions_FlagsAndDefaults(t *testing.T) {
	opts := NewOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.AddFlags(flags)
	if err := flags.Parse(nil); err != nil {
		t.Fatal(err)
	}
	if want := (Options{DataDir: "/var/lib/hub-apiserver", QuotaBackendBytes: 8 << 30}); *opts != want {
		t.Errorf("defaults are %+v, want %+v", *opts, want)
	}
	err := flags.Parse([]string{"--data-dir=/d", "--embedded-etcd-quota-backend-bytes=16777216", "--embedded-etcd-unsafe-no-fsync"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Options{DataDir: "/d", QuotaBackendBytes: 16 << 20, UnsafeNoFsync: true}); *opts != want {
		t.Errorf("parsed %+v, want %+v", *opts, want)
	}
}

func TestOptions_Validate(t *testing.T) {
	for name, tc := range map[string]struct {
		opts   Options
		errors int
	}{
		"defaults":         {*NewOptions(), 0},
		"empty":            {Options{}, 2},
		"quota in GiB":     {Options{DataDir: "/d", QuotaBackendBytes: 8}, 1},
		"quota turned off": {Options{DataDir: "/d", QuotaBackendBytes: -1}, 1},
	} {
		if got := tc.opts.Validate(); len(got) != tc.errors {
			t.Errorf("%s: %v, want %d errors", name, got, tc.errors)
		}
	}
}
