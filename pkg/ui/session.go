// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"
)

const (
	// TokenTTL is how long the secret of a link is good: until a browser has started.
	TokenTTL = time.Minute
	// SessionTTL is how long a browser is let in that asks for nothing.
	SessionTTL = 8 * time.Hour
	// maxSessions is how many browsers are let in at one time. The one that was let in first makes room.
	maxSessions = 8
	// maxToken bounds what a browser sends to be let in.
	maxToken = 1 << 10
)

// sessions are the browsers that are let in. It has no secrets, only their hashes.
type sessions struct {
	mu sync.Mutex
	// token is that of the last link, if it is still good.
	token   [sha256.Size]byte
	expires time.Time
	taken   chan struct{}
	// browsers are in the order in which they came.
	browsers []browser
}

type browser struct {
	// secret is the hash of the cookie and the key together.
	secret [sha256.Size]byte
	seen   time.Time
}

func newSessions() *sessions { return &sessions{taken: make(chan struct{})} }

// newToken makes the secret of a link. The one before is not good any more.
func (s *sessions) newToken() string {
	token := rand.Text() + rand.Text() // 256 bits
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.expires, s.taken = sha256.Sum256([]byte(token)), time.Now().Add(TokenTTL), make(chan struct{})
	return token
}

func (s *sessions) used() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// redeem takes the secret of a link for that of a cookie, and for a key. It can be done once. The browser sends the cookie, which no
// script reads, to all ports of this machine; the key, which the page keeps, it sends to none by itself, and shows to no page of another port.
func (s *sessions) redeem(token string) (cookie, key string, ok bool) {
	hash := sha256.Sum256([]byte(token))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	same := subtle.ConstantTimeCompare(hash[:], s.token[:]) == 1
	if !same || !now.Before(s.expires) { // the zero time is past
		return "", "", false
	}
	s.expires = time.Time{}
	close(s.taken)
	cookie, key = rand.Text()+rand.Text(), rand.Text()+rand.Text()
	s.browsers = append(s.browsers, browser{secret: secretOf(cookie, key), seen: now})
	s.browsers = s.browsers[max(0, len(s.browsers)-maxSessions):]
	return cookie, key, true
}

func secretOf(cookie, key string) [sha256.Size]byte { return sha256.Sum256([]byte(cookie + " " + key)) }

// valid says whether a browser is let in. It takes as long for each that is not.
func (s *sessions) valid(cookie, key string) bool {
	hash := secretOf(cookie, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now, found := time.Now(), -1
	for i := range s.browsers {
		if subtle.ConstantTimeCompare(hash[:], s.browsers[i].secret[:]) == 1 {
			found = i
		}
	}
	if found < 0 || now.Sub(s.browsers[found].seen) > SessionTTL {
		return false
	}
	s.browsers[found].seen = now
	return true
}

// serveSession lets a browser in, or says to one that is in which hub it sees.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request, query string) *refusal {
	if refused := s.checkData(r); refused != nil {
		return refused
	}
	switch {
	case query != "":
		return refuse(http.StatusBadRequest, "expected no parameters")
	case r.Method == http.MethodPost:
		return s.door.begin(s, w, r)
	case r.Method != http.MethodGet:
		return refuse(http.StatusMethodNotAllowed, "expected GET or POST")
	}
	visitor, refused := s.door.letIn(r)
	if refused != nil {
		return refused
	}
	about := s.about
	about.User = s.hub.userName(r.Context(), visitor.token)
	writeJSON(w, http.StatusOK, about)
	return nil
}
