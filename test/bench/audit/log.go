// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit reads the audit logs of kube-apiservers, to count the requests of single components.
package audit

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// ControllersPolicy logs the requests of hub-controller-manager.
//
//go:embed policy.yaml
var ControllersPolicy []byte

// Log is a kube-apiserver's audit log of what its policy selects.
type Log struct {
	file string
	// read is the number of bytes of the file that have been read.
	read int64
	all  []Request
}

// Request is one request.
type Request struct {
	Verb string    `json:"verb"`
	At   time.Time `json:"stageTimestamp"`
	User struct {
		Username string
	} `json:"user"`
	ObjectRef struct {
		Namespace, Name, Resource, Subresource string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// IsWrite reports whether the request is a write or a watch.
func (a Request) IsWrite() bool { return a.Verb != "get" && a.Verb != "list" }

// what returns a text such as "patch managedclusters/status".
func (a Request) what() string {
	if a.ObjectRef.Resource == "" {
		return "discovery"
	}
	what := a.Verb + " " + a.ObjectRef.Resource
	if a.ObjectRef.Subresource != "" {
		what += "/" + a.ObjectRef.Subresource
	}
	return what
}

// New makes the front of a hub write the log.
func New(c *localhub.Options, policy []byte) (*Log, error) {
	policyFile, err := filepath.Abs(filepath.Join(c.Dir, "audit-policy.yaml"))
	if err != nil {
		return nil, err
	}
	a := &Log{file: filepath.Join(filepath.Dir(policyFile), "audit.log")}
	// It is read while it grows, so it must not be rotated.
	c.FrontArgs = append(c.FrontArgs, "--audit-policy-file="+policyFile, "--audit-log-path="+a.file, "--audit-log-maxsize=100000")
	return a, os.WriteFile(policyFile, policy, 0o600)
}

// Since returns the requests that were responded to since a time.
func (a *Log) Since(since time.Time) (Requests, error) {
	file, err := os.Open(a.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if end, err := file.Seek(0, io.SeekEnd); err != nil || end < a.read {
		return nil, fmt.Errorf("%s has %d bytes, and has had %d: %w", a.file, end, a.read, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	if _, err := file.Seek(a.read, io.SeekStart); err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if _, err := data.ReadFrom(file); err != nil {
		return nil, err
	}
	for {
		line, err := data.ReadBytes('\n')
		if err != nil {
			break // it is still being written
		}
		a.read += int64(len(line))
		var one Request
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", a.file, err)
		}
		a.all = append(a.all, one)
	}
	first := len(a.all)
	for first > 0 && a.all[first-1].At.After(since.Add(-time.Minute)) {
		first-- // in the order of time only approximately
	}
	var found Requests
	for _, one := range a.all[first:] {
		if !one.At.Before(since) {
			found = append(found, one)
		}
	}
	return found, nil
}

// Requests are requests in the order of the log.
type Requests []Request

// Filter returns the requests that keep accepts.
func (r Requests) Filter(keep func(Request) bool) Requests {
	return slices.DeleteFunc(slices.Clone(r), func(a Request) bool { return !keep(a) })
}

// Counts returns the number of requests of each kind.
func (r Requests) Counts(keep func(Request) bool) map[string]int {
	counts := map[string]int{}
	for _, one := range r {
		if keep(one) {
			counts[one.what()]++
		}
	}
	return counts
}

// Writes returns the number of writes and watches of each kind.
func (r Requests) Writes() map[string]int { return r.Counts(Request.IsWrite) }

// Reads returns the number of gets and lists of each kind.
func (r Requests) Reads() map[string]int {
	return r.Counts(func(a Request) bool { return !a.IsWrite() })
}

// Refused returns the number of requests that the hub rejected.
func (r Requests) Refused() map[string]int {
	refused := map[string]int{}
	for _, one := range r {
		if one.ResponseStatus.Code >= 400 {
			refused[fmt.Sprintf("%d %s", one.ResponseStatus.Code, one.what())]++
		}
	}
	return refused
}

// AwaitSilence waits until there were no writes for a time, and returns the time of the last one.
func (a *Log) AwaitSilence(ctx context.Context, quiet time.Duration) (last time.Time, err error) {
	last = time.Now()
	for {
		found, err := a.Since(last)
		if err != nil {
			return last, err
		}
		for _, one := range found {
			if one.IsWrite() && one.At.After(last) {
				last = one.At
			}
		}
		if time.Since(last) > quiet {
			return last, nil
		}
		if err := kit.Sleep(ctx, 500*time.Millisecond); err != nil {
			return last, err
		}
	}
}
