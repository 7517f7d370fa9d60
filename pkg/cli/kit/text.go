// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// Unknown is shown for what the user may not see.
const Unknown = "<unknown>"

// OrNone returns a text, or "<none>" for an empty one.
func OrNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// Example indents an example as help shows it.
func Example(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// Must panics on an error that only a programming mistake can cause.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Lines writes lines and keeps the first error.
type Lines struct {
	Out io.Writer
	Err error
}

// Printf writes a line. It escapes control characters of what a server returned.
func (l *Lines) Printf(format string, args ...any) {
	if l.Err != nil {
		return
	}
	_, l.Err = fmt.Fprintln(l.Out, command.Printable(fmt.Sprintf(format, args...)))
}

// Age returns the time since then as kubectl shows it.
func Age(since metav1.Time) string {
	if since.IsZero() {
		return Unknown
	}
	return duration.HumanDuration(time.Since(since.Time))
}

// ConditionStatus returns the status of a condition, or Unknown if it is not set.
func ConditionStatus(c *clusterv1.ManagedCluster, conditionType string) string {
	return string(inspect.Status(c.Status.Conditions, conditionType))
}

// SomeNames returns a list of names that is cut if it is long.
func SomeNames(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// ClusterCount returns the number of clusters in words, such as "1 cluster".
func ClusterCount(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return strconv.Itoa(n) + " clusters"
}

// Prefixed returns a text with a prefix, or "" if the text is empty.
func Prefixed(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// PlainWord matches words that need no quoting in a shell.
var PlainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Quote quotes a word for a shell.
func Quote(word string) string {
	if PlainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(command.Printable(word), "'", `'\''`) + "'"
}
