// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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
)

// auditPolicy logs the requests of hub-controller-manager.
//
//go:embed audit-policy.yaml
var auditPolicy []byte

// audit is a kube-apiserver's audit log of what its policy selects.
type audit struct {
	file string
	// read is the number of bytes of the file that have been read.
	read int64
	all  []audited
}

// audited is one request.
type audited struct {
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

func (a audited) isWrite() bool { return a.Verb != "get" && a.Verb != "list" }

// what returns a text such as "patch managedclusters/status".
func (a audited) what() string {
	if a.ObjectRef.Resource == "" {
		return "discovery"
	}
	what := a.Verb + " " + a.ObjectRef.Resource
	if a.ObjectRef.Subresource != "" {
		what += "/" + a.ObjectRef.Subresource
	}
	return what
}

// newAudit makes the front of a hub write the log.
func newAudit(c *localhub.Options, policy []byte) (*audit, error) {
	policyFile, err := filepath.Abs(filepath.Join(c.Dir, "audit-policy.yaml"))
	if err != nil {
		return nil, err
	}
	a := &audit{file: filepath.Join(filepath.Dir(policyFile), "audit.log")}
	// It is read while it grows, so it must not be rotated.
	c.FrontArgs = append(c.FrontArgs, "--audit-policy-file="+policyFile, "--audit-log-path="+a.file, "--audit-log-maxsize=100000")
	return a, os.WriteFile(policyFile, policy, 0o600)
}

// requests returns the requests that were responded to since a time.
func (a *audit) requests(since time.Time) (requests, error) {
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
		var one audited
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", a.file, err)
		}
		a.all = append(a.all, one)
	}
	first := len(a.all)
	for first > 0 && a.all[first-1].At.After(since.Add(-time.Minute)) {
		first-- // in the order of time only approximately
	}
	var found requests
	for _, one := range a.all[first:] {
		if !one.At.Before(since) {
			found = append(found, one)
		}
	}
	return found, nil
}

type requests []audited

// only returns the requests that keep accepts.
func (r requests) only(keep func(audited) bool) requests {
	return slices.DeleteFunc(slices.Clone(r), func(a audited) bool { return !keep(a) })
}

// counts returns the number of requests of each kind.
func (r requests) counts(keep func(audited) bool) map[string]int {
	counts := map[string]int{}
	for _, one := range r {
		if keep(one) {
			counts[one.what()]++
		}
	}
	return counts
}

func (r requests) writes() map[string]int { return r.counts(audited.isWrite) }
func (r requests) reads() map[string]int {
	return r.counts(func(a audited) bool { return !a.isWrite() })
}

// refused returns the number of requests that the hub rejected.
func (r requests) refused() map[string]int {
	refused := map[string]int{}
	for _, one := range r {
		if one.ResponseStatus.Code >= 400 {
			refused[fmt.Sprintf("%d %s", one.ResponseStatus.Code, one.what())]++
		}
	}
	return refused
}

// silence waits until there were no writes for a time, and returns the time of the last one.
func (a *audit) silence(ctx context.Context, quiet time.Duration) (last time.Time, err error) {
	last = time.Now()
	for {
		found, err := a.requests(last)
		if err != nil {
			return last, err
		}
		for _, one := range found {
			if one.isWrite() && one.At.After(last) {
				last = one.At
			}
		}
		if time.Since(last) > quiet {
			return last, nil
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return last, err
		}
	}
}
