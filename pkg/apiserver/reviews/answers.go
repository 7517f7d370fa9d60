// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reviews asks the front who may do what, and keeps its answers for as long as they hold.
//
// An answer is dropped when an RBAC rule changes that concerns the user or a group of the user, or one in the namespace that
// was asked about: the next request asks again. The front's own authorizer follows the same rules, and may do so a moment later than we: an answer that is asked
// for just after a change may be one from before it. So an answer is kept no longer than the rules had been the same
// when it was asked for. Whatever that moment is, a wrong answer is kept no longer than it once more.
//
// Answers that come from another authorizer than RBAC change without a word: they are kept for as long as the flags say.
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

// keptAnswers bounds the memory for answers: some 200 bytes and the reason for each.
const keptAnswers = 16384

// Answers keeps the answers of an authorizer.
type Answers struct {
	asks  authorizer.Authorizer
	rules *Rules
	kept  *cache.LRUExpireCache
	// allowed and refused are how long an answer is kept at most.
	allowed, refused time.Duration
}

// answer is one that the authorizer gave.
type answer struct {
	decision authorizer.Decision
	reason   string
	// asked is when it was asked for, expires when it is dropped if the rules do not change.
	asked, expires time.Time
}

// Keep returns an authorizer that keeps another's answers, those that allow for some time and those that do not for
// another. Its errors are failures of reviews, and have no details.
func Keep(asks authorizer.Authorizer, rules *Rules, allowed, refused time.Duration) authorizer.Authorizer {
	a := &Answers{asks: asks, rules: rules, kept: cache.NewLRUExpireCache(keptAnswers), allowed: allowed, refused: refused}
	return authorizer.AuthorizerFunc(a.authorize)
}

func (a *Answers) authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	question := digest(attributes)
	asked := time.Now()
	changed := a.rules.lastChange(attributes)
	if found, ok := a.kept.Get(question); ok {
		if known := found.(answer); known.asked.After(changed) && asked.Before(known.expires) {
			return known.decision, known.reason, nil
		}
	}
	decision, reason, err := a.asks.Authorize(ctx, attributes)
	if err != nil {
		return decision, reason, note(ctx, "whether the request is allowed", err)
	}
	keep := a.refused
	if decision == authorizer.DecisionAllow {
		keep = a.allowed
	}
	if keep = min(keep, asked.Sub(changed)); keep > 0 {
		// Its time runs from the question: what happened since is not in the answer.
		a.kept.Add(question, answer{decision: decision, reason: reason, asked: asked, expires: asked.Add(keep)}, keep)
	}
	return decision, reason, nil
}

// digest stands for everything that the front is told of a request. However long a user makes it, it takes the same room.
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
	// As far as a selector can be read it is part of the question.
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

// digester writes texts so that two lists of them are never the same by being cut in other places.
type digester struct{ hash.Hash }

func (d digester) number(n int) {
	_, _ = d.Write(binary.AppendUvarint(nil, uint64(n))) // a hash takes everything
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
