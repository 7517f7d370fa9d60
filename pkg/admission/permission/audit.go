// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/audit"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// AnnotationPrefix is the prefix of the keys of the audit annotations with the permissions that a request used or lacked. The name of the plugin that
// decided follows, in lower case.
const AnnotationPrefix = "permission.clusterhub.dev/"

// The prefixes of the values.
const (
	allowed = "allowed"
	refused = "refused"
)

const (
	// maxAnnotation bounds a value, which contains names that users choose.
	maxAnnotation = 1024
	// maxDecisions is the largest number of different decisions of a plugin that are recorded for one request.
	maxDecisions = 4
)

// Used adds an audit annotation with the rules by which the storage of a resource allows a request. The key ends with the name of the resource, or of
// the operation.
func Used(ctx context.Context, storage string, rules ...rbac.Permission) {
	if len(rules) > 0 {
		annotate(ctx, storage, allowed, rules)
	}
}

// Lacked is like Used, for a rejected request, with the rules that its user lacks.
func Lacked(ctx context.Context, storage string, rules ...rbac.Permission) {
	annotate(ctx, storage, refused, rules)
}

// annotate adds an audit annotation with a decision and its rules. The storage decides again when the object was changed concurrently, and an
// annotation cannot be replaced. So a decision that differs from the previous one has a key with a number, and the one with the highest number took
// effect.
func annotate(ctx context.Context, plugin, outcome string, rules []rbac.Permission) {
	request := audit.AuditContextFrom(ctx)
	if !request.Enabled() {
		return
	}
	key, value, last := AnnotationPrefix+strings.ToLower(plugin), summary(outcome, rules), ""
	for i := 1; i <= maxDecisions; i++ {
		numbered := key
		if i > 1 {
			numbered = fmt.Sprintf("%s.%d", key, i)
		}
		recorded, ok := request.GetEventAnnotation(numbered)
		if !ok {
			if value != last {
				audit.AddAuditAnnotation(ctx, numbered, value)
			}
			return
		}
		last = recorded
	}
}

// summary returns an outcome with its rules, as far as there is room. Names are quoted, because users choose them.
func summary(outcome string, rules []rbac.Permission) string {
	text := outcome + ":"
	for i, r := range rules {
		more := fmt.Sprintf(" %d more", len(rules)-i)
		next := short(r)
		if i > 0 {
			next = "," + next
		}
		if len(text)+len(next)+len(more)+1 > maxAnnotation {
			return text + more
		}
		text += next
	}
	return text
}

// short returns verb, resource and group of a permission as kubectl writes them, and the name, if there is one.
func short(r rbac.Permission) string {
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
