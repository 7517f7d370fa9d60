// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line that `go test -json` prints; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
	// Elapsed is in seconds.
	Elapsed float64
}

// failure is a test that failed, or that was running when its program ended.
type failure struct {
	Test string
	// Messages are the lines of the last messages of the test, without logs of programs, which are often long.
	Messages []string
}

const (
	maxMessages      = 4
	maxMessageLines  = 8
	maxMessageLength = 400
)

// continuation begins the other lines of a message, as package testing prints them.
const continuation = "        "

// message matches the first line of what a test or a helper of it prints by t.Error and its like, and a panic. What test/kubelet prints of a container
// ends with "said:".
var (
	message = regexp.MustCompile(`^\s*\w+\.go:\d+: |^panic: `)
	log     = regexp.MustCompile(` said:\s*$`)
)

func newFailure(test string, output []byte) failure {
	var messages [][]string
	continued := false
	for line := range bytes.Lines(output) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case message.Match(line):
			continued = !log.Match(line)
			if continued {
				messages = append(messages, nil)
			}
			line = bytes.TrimSpace(line)
		case !bytes.HasPrefix(line, []byte(continuation)):
			continued = false
		}
		if continued && len(messages[len(messages)-1]) < maxMessageLines {
			last := &messages[len(messages)-1]
			*last = append(*last, string(line[:min(len(line), maxMessageLength)]))
		}
	}
	return failure{Test: test, Messages: slices.Concat(messages[max(0, len(messages)-maxMessages):]...)}
}

// printFailures prints the failed tests with their last messages.
func printFailures(out io.Writer, results []result) {
	for _, r := range results {
		for _, f := range r.Failures {
			fmt.Fprintf(out, "=== %s > %s failed:\n", r.Title, f.Test)
			for _, m := range f.Messages {
				fmt.Fprintf(out, "      %s\n", m)
			}
		}
	}
}

// readEvents returns what `go test` would have printed without -json and -v, the failed tests, and the durations of tests that are not subtests.
// Lines that are not events stay unchanged.
func readEvents(output []byte) (text []byte, failures []failure, took map[string]time.Duration) {
	took = map[string]time.Duration{}
	type test struct{ pkg, name string }
	var running []test
	printed := map[test]*bytes.Buffer{}
	var out bytes.Buffer
	for line := range bytes.Lines(output) {
		var e event
		if !bytes.HasPrefix(line, []byte(`{"`)) || json.Unmarshal(line, &e) != nil || e.Action == "" {
			out.Write(line)
			continue
		}
		of := test{e.Package, e.Test}
		switch {
		case e.Test == "" && e.Action == "fail":
			// Print tests that were running when the program ended.
			for _, t := range running {
				if t.pkg == e.Package {
					out.Write(printed[t].Bytes())
					failures = append(failures, newFailure(t.name, printed[t].Bytes()))
				}
			}
		case e.Test == "":
			if e.Output != "PASS\n" {
				out.WriteString(e.Output)
			}
		case e.Action == "run":
			running, printed[of] = append(running, of), &bytes.Buffer{}
		case e.Action == "output" && printed[of] != nil:
			if !strings.HasPrefix(e.Output, "=== ") {
				printed[of].WriteString(e.Output)
			}
		case e.Action == "pass" || e.Action == "skip" || e.Action == "fail":
			if e.Action == "fail" && printed[of] != nil {
				out.Write(printed[of].Bytes())
				failures = append(failures, newFailure(of.name, printed[of].Bytes()))
			}
			running = slices.DeleteFunc(running, func(t test) bool { return t == of })
			delete(printed, of)
			if !strings.Contains(e.Test, "/") {
				took[e.Test] += time.Duration(e.Elapsed * float64(time.Second))
			}
		}
	}
	return out.Bytes(), failures, took
}
