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
	// TokenLifetime is what is asked for, unless the request ends before; a cluster may give less.
	TokenLifetime = 30 * 24 * time.Hour
	// minTokenLifetime is the least that an API server gives.
	minTokenLifetime = 10 * time.Minute
	// clockSkew is by how much clocks may differ before a token is taken for one that outlives its request, or is renewed once more.
	clockSkew = time.Minute
	// A token is renewed when this part of its lifetime is over: 80 %, less up to 5 % by which the renewals of tokens that
	// were made together are spread out.
	renewAfter, renewSpread = 0.80, 0.05
)

// EndOf is when a request is deleted by its ttl; false if it has none.
func EndOf(ar *v1alpha1.AccessRequest) (time.Time, bool) {
	if ar.Spec.TTL == nil {
		return time.Time{}, false
	}
	return ar.CreationTimestamp.Add(ar.Spec.TTL.Duration), true
}

// LifetimeFor is the lifetime that a token of a request is asked for. It does not go beyond the end of the request, so that
// the token is of no use after that, even if no provider runs that takes the access back.
func LifetimeFor(ar *v1alpha1.AccessRequest, now time.Time) time.Duration {
	if end, ends := EndOf(ar); ends {
		return min(TokenLifetime, max(minTokenLifetime, end.Sub(now).Truncate(time.Second)))
	}
	return TokenLifetime
}

// Outlives is whether tokens that are valid until then outlive their request by now, such as after the ttl was made shorter.
func Outlives(ar *v1alpha1.AccessRequest, until, now time.Time) bool {
	end, ends := EndOf(ar)
	return ends && until.After(now.Add(max(end.Sub(now), minTokenLifetime)+clockSkew))
}

// Lifetime is that of the token in a Secret.
func Lifetime(secret *corev1.Secret) (created, expires time.Time, ok bool) {
	created, ok1 := unixSeconds(secret.Data[v1alpha1.SecretKeyCreationTimestamp])
	expires, ok2 := unixSeconds(secret.Data[v1alpha1.SecretKeyExpirationTimestamp])
	return created, expires, ok1 && ok2
}

func unixSeconds(data []byte) (time.Time, bool) {
	seconds, err := strconv.ParseInt(string(data), 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// RenewalOf is when a token has to be renewed; zero if it is valid until the request ends. It follows from the request, so that
// a restart changes nothing.
func RenewalOf(ar *v1alpha1.AccessRequest, created, expires time.Time) time.Time {
	if end, ends := EndOf(ar); ends && !expires.Before(end.Add(-clockSkew)) {
		return time.Time{}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(ar.UID)) // never fails
	part := renewAfter - renewSpread*float64(h.Sum32())/(1<<32)
	return created.Add(time.Duration(part * float64(expires.Sub(created))))
}
