// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"slices"
	"time"
)

// rotationGrace is the time for which a new CA is published before the first certificate is signed with it: the time for every replica to read the Secret and
// for the caBundles to follow.
const rotationGrace = time.Hour

// content is the content of the Secret: the CA in use, at most one that will follow it, and every CA that clients trust.
type content struct {
	current *authority
	// next signs from nextFrom on. All replicas read the same time, so they switch together.
	next     *authority
	nextFrom time.Time
	bundle   []*x509.Certificate
}

func newContent(now time.Time) (*content, error) {
	ca, err := newAuthority(now)
	if err != nil {
		return nil, err
	}
	return &content{current: ca, bundle: []*x509.Certificate{ca.cert}}, nil
}

// signer returns the CA to sign with at now, even if no replica could record the change in the Secret.
func (c *content) signer(now time.Time) *authority {
	if c.next != nil && !now.Before(c.nextFrom) {
		return c.next
	}
	return c.current
}

// advance returns the content that is due at now, and whether it differs from c.
func (c *content) advance(now time.Time) (*content, bool, error) {
	due := *c
	if signer := c.signer(now); signer != c.current {
		due.current, due.next, due.nextFrom = signer, nil, time.Time{}
	}
	if due.next == nil && !now.Before(due.current.rotateAt()) {
		next, err := newAuthority(now)
		if err != nil {
			return nil, false, err
		}
		// Whole seconds, as they are stored in the Secret.
		if from := now.Add(rotationGrace).Truncate(time.Second); from.Before(due.current.cert.NotAfter) {
			due.next, due.nextFrom = next, from
		} else {
			// The old CA is about to expire: certificates that it signed fail anyway, so waiting would not help.
			due.current = next
		}
	}
	due.bundle = slices.DeleteFunc(slices.Clone(c.bundle), func(cert *x509.Certificate) bool {
		return now.After(cert.NotAfter)
	})
	for _, ca := range []*authority{due.current, due.next} {
		if ca != nil && !slices.ContainsFunc(due.bundle, ca.cert.Equal) {
			due.bundle = append(due.bundle, ca.cert)
		}
	}
	changed := due.current != c.current || due.next != c.next ||
		!slices.EqualFunc(due.bundle, c.bundle, (*x509.Certificate).Equal)
	return &due, changed, nil
}
