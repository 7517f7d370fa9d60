// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reviews calls the front to authorize users, and caches its decisions as long as they are valid.
//
// A decision is dropped when an RBAC rule changes that concerns the user or a group of the user, or a rule in the namespace of the request. The next
// request causes a new review. The front's own authorizer observes the same rules, and may do so a moment later than this server: a decision that is
// requested just after a change may still be the previous one. So a decision is not cached longer than the rules had been unchanged when it was
// requested. Whatever the delay of the front is, a wrong decision is cached no longer than that delay again.
//
// Decisions of other authorizers than RBAC change without notice. They are cached for as long as the flags say.
package reviews

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// keptAnswers bounds the memory for decisions: some 200 bytes and the reason for each.
const keptAnswers = 16384

// Answers caches the decisions of an authorizer.
type Answers struct {
	asks  authorizer.Authorizer
	rules *RuleHistory
	kept  *cache.LRUExpireCache
	// allowed and refused are the longest times that a decision is cached.
	allowed, refused time.Duration
}

// cachedDecision is a cached decision of the authorizer.
type cachedDecision struct {
	decision authorizer.Decision
	reason   string
	// asked is when it was requested. expires is when it is dropped if the rules do not change.
	asked, expires time.Time
}

// Cached returns an authorizer that caches the decisions of another one, for different times if they allow or do not. Its errors are failures of
// reviews, without details.
func Cached(asks authorizer.Authorizer, rules *RuleHistory, allowed, refused time.Duration) authorizer.Authorizer {
	a := &Answers{asks: asks, rules: rules, kept: cache.NewLRUExpireCache(keptAnswers), allowed: allowed, refused: refused}
	return authorizer.AuthorizerFunc(a.authorize)
}

func (a *Answers) authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	question := digest(attributes)
	asked := time.Now()
	changed := a.rules.lastChange(attributes)
	if found, ok := a.kept.Get(question); ok {
		if known := found.(cachedDecision); known.asked.After(changed) && asked.Before(known.expires) {
			return known.decision, known.reason, nil
		}
	}
	decision, reason, err := a.asks.Authorize(ctx, attributes)
	if err != nil {
		return decision, reason, note(ctx, "whether the request is allowed", err)
	}
	ttl := a.refused
	if decision == authorizer.DecisionAllow {
		ttl = a.allowed
	}
	ttl = min(ttl, asked.Sub(changed))
	if ttl > 0 {
		// The time begins with the request: later changes are not part of the decision.
		a.kept.Add(question, cachedDecision{decision: decision, reason: reason, asked: asked, expires: asked.Add(ttl)}, ttl)
	}
	return decision, reason, nil
}

// digest identifies everything that the front is sent about a request. Its size is fixed, however long the user's data is.
func digest(a authorizer.Attributes) [sha256.Size]byte {
	d := digester{sha256.New()}
	if who := a.GetUser(); who != nil {
		d.write(who.GetName(), who.GetUID())
		d.list(who.GetGroups())
		extra := who.GetExtra()
		d.number(len(extra))
		for _, key := range slices.Sorted(maps.Keys(extra)) {
			d.write(key)
			d.list(extra[key])
		}
	}
	d.write(a.GetVerb(), a.GetNamespace(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetName(),
		a.GetPath(), fmt.Sprint(a.IsResourceRequest()))
	// A selector is part of the key as far as it can be parsed.
	fields, fieldErr := a.GetFieldSelector()
	d.write(fmt.Sprint(fieldErr))
	d.number(len(fields))
	for _, r := range fields {
		d.write(string(r.Operator), r.Field, r.Value)
	}
	labels, labelErr := a.GetLabelSelector()
	d.write(fmt.Sprint(labelErr))
	d.number(len(labels))
	for _, r := range labels {
		d.write(string(r.Operator()), r.Key())
		d.list(r.ValuesUnsorted())
	}
	var sum [sha256.Size]byte
	d.Sum(sum[:0])
	return sum
}

// digester writes texts so that different lists of texts have different digests, also if their concatenation is the same.
type digester struct{ hash.Hash }

func (d digester) number(n int) {
	_, _ = d.Write(binary.AppendUvarint(nil, uint64(n))) // a hash accepts everything
}

func (d digester) write(texts ...string) {
	for _, text := range texts {
		d.number(len(text))
		_, _ = d.Write([]byte(text))
	}
}

func (d digester) list(texts []string) {
	d.number(len(texts))
	d.write(texts...)
}
