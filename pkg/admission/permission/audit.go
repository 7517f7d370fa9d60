// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/audit"
)

// AnnotationPrefix begins the keys of the audit annotations that say which permissions a request used or lacked. The name of the
// plugin that decided follows, in lower case.
const AnnotationPrefix = "permission.clusterhub.dev/"

// How the values begin.
const (
	allowed = "allowed"
	refused = "refused"
)

const (
	// longestAnnotation bounds a value, which is made of names that users choose.
	longestAnnotation = 1024
	// mostDecisions is how many different decisions of a plugin on one request are told.
	mostDecisions = 4
)

// Used tells auditors by which rules the storage of a resource lets a request through, and Lacked which its user needs and has not. The key ends with
// the name of the resource, or of what is done with it.
func Used(ctx context.Context, storage string, rules ...Rule) {
	if len(rules) > 0 {
		annotate(ctx, storage, allowed, rules)
	}
}

// Lacked is as Used, for a request that is refused.
func Lacked(ctx context.Context, storage string, rules ...Rule) {
	annotate(ctx, storage, refused, rules)
}

// annotate tells auditors what was decided on a request, and by which rules. The storage decides again when the object has changed
// meanwhile, and an annotation cannot be written over: a decision that differs from the one before has a key with a number, and the
// highest number is the one that counted.
func annotate(ctx context.Context, plugin, outcome string, rules []Rule) {
	request := audit.AuditContextFrom(ctx)
	if !request.Enabled() {
		return
	}
	key, value, last := AnnotationPrefix+strings.ToLower(plugin), summary(outcome, rules), ""
	for i := 1; i <= mostDecisions; i++ {
		numbered := key
		if i > 1 {
			numbered = fmt.Sprintf("%s.%d", key, i)
		}
		told, ok := request.GetEventAnnotation(numbered)
		if !ok {
			if value != last {
				audit.AddAuditAnnotation(ctx, numbered, value)
			}
			return
		}
		last = told
	}
}

// summary is an outcome with its rules, one after the other, as far as there is room. Names are quoted: users choose them.
func summary(outcome string, rules []Rule) string {
	text := outcome + ":"
	for i, r := range rules {
		more := fmt.Sprintf(" %d more", len(rules)-i)
		next := r.short()
		if i > 0 {
			next = "," + next
		}
		if len(text)+len(next)+len(more)+1 > longestAnnotation {
			return text + more
		}
		text += next
	}
	return text
}

// short is the rule in few words: verb, resource and group as kubectl writes them, and the name, if there is one.
func (r Rule) short() string {
	text := " " + r.Verb + " " + r.Resource + "." + r.Group
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Name != "" {
		text += fmt.Sprintf(" %q", r.Name)
	}
	if r.Namespace != "" {
		text += fmt.Sprintf(" in %q", r.Namespace)
	}
	return text
}
