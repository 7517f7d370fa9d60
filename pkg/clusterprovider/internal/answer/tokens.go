// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

const (
	// TokenLifetime is the requested lifetime, unless the request ends before; a cluster may grant less.
	TokenLifetime = 30 * 24 * time.Hour
	// minTokenLifetime is the minimum that an API server grants.
	minTokenLifetime = 10 * time.Minute
	// clockSkew is the assumed maximum clock skew when deciding whether a token outlives its request, or must be renewed once more.
	clockSkew = time.Minute
	// A token is renewed after this part of its lifetime: 80 %, less up to 5 % that spread out the renewals of tokens that were issued together.
	renewAfter, renewSpread = 0.80, 0.05
)

// DeletionTime returns the time when a request is deleted by its ttl, and false if it has none.
func DeletionTime(ar *v1alpha1.AccessRequest) (time.Time, bool) {
	if ar.Spec.TTL == nil {
		return time.Time{}, false
	}
	return ar.CreationTimestamp.Add(ar.Spec.TTL.Duration), true
}

// LifetimeFor returns the lifetime to request for a token. It does not exceed the end of the request, so that the token is useless after that, even
// if no provider runs that revokes the access.
func LifetimeFor(ar *v1alpha1.AccessRequest, now time.Time) time.Duration {
	if end, ends := DeletionTime(ar); ends {
		return min(TokenLifetime, max(minTokenLifetime, end.Sub(now).Truncate(time.Second)))
	}
	return TokenLifetime
}

// Outlives reports whether tokens that are valid until then outlive their request, such as after the ttl was shortened.
func Outlives(ar *v1alpha1.AccessRequest, until, now time.Time) bool {
	end, ends := DeletionTime(ar)
	return ends && until.After(now.Add(max(end.Sub(now), minTokenLifetime)+clockSkew))
}

// Lifetime returns the times of the token in a Secret.
func Lifetime(secret *corev1.Secret) (created, expires time.Time, ok bool) {
	created, ok1 := unixSeconds(secret.Data[v1alpha1.SecretKeyCreationTimestamp])
	expires, ok2 := unixSeconds(secret.Data[v1alpha1.SecretKeyExpirationTimestamp])
	return created, expires, ok1 && ok2
}

func unixSeconds(data []byte) (time.Time, bool) {
	seconds, err := strconv.ParseInt(string(data), 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// RenewalOf returns the time when a token must be renewed; zero if it is valid until the request ends. It is computed from the request, so a restart
// changes nothing.
func RenewalOf(ar *v1alpha1.AccessRequest, created, expires time.Time) time.Time {
	if end, ends := DeletionTime(ar); ends && !expires.Before(end.Add(-clockSkew)) {
		return time.Time{}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(ar.UID)) // never fails
	part := renewAfter - renewSpread*float64(h.Sum32())/(1<<32)
	return created.Add(time.Duration(part * float64(expires.Sub(created))))
}
