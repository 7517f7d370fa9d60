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
	// TokenTTL is the time for which the secret of a link is valid: until a browser has started.
	TokenTTL = time.Minute
	// SessionTTL is the time for which a session without requests is valid.
	SessionTTL = 8 * time.Hour
	// maxSessions is the largest number of sessions. A new one replaces the oldest.
	maxSessions = 8
	// maxToken is the largest size of the body that starts a session.
	maxToken = 1 << 10
)

// sessions are the sessions of browsers. It has no secrets, only their hashes.
type sessions struct {
	mu sync.Mutex
	// token is the hash of the last link's secret. It is only valid until it expires.
	token   [sha256.Size]byte
	expires time.Time
	taken   chan struct{}
	// browsers are ordered by the start of their session.
	browsers []browser
}

type browser struct {
	// secret is the hash of the cookie and the key together.
	secret [sha256.Size]byte
	seen   time.Time
}

func newSessions() *sessions { return &sessions{taken: make(chan struct{})} }

// newToken creates the secret of a link. The previous one is no longer valid.
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

// redeem exchanges the secret of a link for a cookie and a key. This can be done once. The browser sends the cookie, which scripts cannot read, to
// all ports of this machine. The page stores the key, which is not sent automatically, and which pages of other ports cannot read.
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

// valid reports whether a session exists. It takes the same time for all that do not exist.
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

// serveSession starts a session, or returns which hub a session is for.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request, query string) *refusal {
	if refused := checkData(s.door, r); refused != nil {
		return refused
	}
	switch {
	case query != "":
		return refuse(http.StatusBadRequest, "expected no parameters")
	case r.Method == http.MethodPost:
		return s.door.begin(w, r, s.askTimeout)
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
