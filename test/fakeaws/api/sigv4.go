// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This is the verifying side of AWS's Signature Version 4. It is written from the documentation and does not use the SDK's signer, so that it
// verifies the SDK independently.

const (
	sigAlgorithm = "AWS4-HMAC-SHA256"
	SigTime      = "20060102T150405Z"
	// SigValidity is the largest difference between the time of a signature and the server's. For STS it is also the validity of a presigned URL,
	// whatever its X-Amz-Expires is.
	SigValidity = 15 * time.Minute
)

type Signature struct {
	AccessKey, date, Region, Service string

	Headers   []string
	Value     string
	At        time.Time
	Token     string
	presigned bool
}

// ParseSignature returns nil if the request has no signature.
func ParseSignature(r *http.Request) (*Signature, error) {
	var credential, headers, at string
	sig := &Signature{}
	if query := r.URL.Query(); query.Get("X-Amz-Algorithm") != "" {
		if query.Get("X-Amz-Algorithm") != sigAlgorithm {
			return nil, errors.New("unsupported X-Amz-Algorithm")
		}
		sig.presigned = true
		credential, headers, at = query.Get("X-Amz-Credential"), query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Date")
		sig.Value, sig.Token = query.Get("X-Amz-Signature"), query.Get("X-Amz-Security-Token")
		if expires := query.Get("X-Amz-Expires"); expires != "" {
			if n, err := strconv.Atoi(expires); err != nil || n < 0 || n > 7*24*3600 {
				return nil, errors.New("X-Amz-Expires must be a number of seconds, at most a week")
			}
		}
	} else {
		header := r.Header.Get("Authorization")
		if header == "" {
			return nil, nil
		}
		fields, ok := strings.CutPrefix(header, sigAlgorithm+" ")
		if !ok {
			return nil, errors.New("the Authorization header is not " + sigAlgorithm)
		}
		for field := range strings.SplitSeq(fields, ",") {
			switch key, value, _ := strings.Cut(strings.TrimSpace(field), "="); key {
			case "Credential":
				credential = value
			case "SignedHeaders":
				headers = value
			case "Signature":
				sig.Value = value
			}
		}
		at, sig.Token = r.Header.Get("X-Amz-Date"), r.Header.Get("X-Amz-Security-Token")
	}
	scope := strings.Split(credential, "/")
	if len(scope) != 5 || scope[4] != "aws4_request" || headers == "" || sig.Value == "" {
		return nil, errors.New("the signature needs Credential=key/date/region/service/aws4_request, SignedHeaders and Signature")
	}
	sig.AccessKey, sig.date, sig.Region, sig.Service = scope[0], scope[1], scope[2], scope[3]
	sig.Headers = strings.Split(headers, ";")
	var err error
	sig.At, err = time.Parse(SigTime, at)
	if err != nil || !strings.HasPrefix(at, sig.date) {
		return nil, errors.New("X-Amz-Date must be a time, of the date in the credential scope")
	}
	if !slices.Contains(sig.Headers, "host") {
		return nil, errors.New("'host' must be a 'SignedHeader'")
	}
	for name := range r.Header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-amz-") && !slices.Contains(sig.Headers, lower) {
			return nil, errors.New("'" + lower + "' must be a 'SignedHeader'")
		}
	}
	return sig, nil
}

// Matches reports whether the holder of secret signed exactly this request.
func (sig *Signature) Matches(r *http.Request, body []byte, secret string) bool {
	bodyHash := HexHash(body)
	if claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed != "" && claimed != bodyHash {
		return false
	}
	var headers strings.Builder
	for _, name := range sig.Headers {
		headers.WriteString(name + ":" + headerValue(r, name) + "\n")
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if path == "" {
		path = "/"
	}
	canonical := strings.Join([]string{
		r.Method, URIEncode(path, false), canonicalQuery(r.URL.Query()), headers.String(), strings.Join(sig.Headers, ";"), bodyHash,
	}, "\n")
	scope := strings.Join([]string{sig.date, sig.Region, sig.Service, "aws4_request"}, "/")
	toSign := strings.Join([]string{sigAlgorithm, sig.At.Format(SigTime), scope, HexHash([]byte(canonical))}, "\n")

	key := []byte("AWS4" + secret)
	for _, part := range []string{sig.date, sig.Region, sig.Service, "aws4_request", toSign} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return subtle.ConstantTimeCompare([]byte(hex.EncodeToString(key)), []byte(sig.Value)) == 1
}

func headerValue(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	}
	var values []string
	for _, v := range r.Header.Values(name) {
		values = append(values, strings.Join(strings.Fields(v), " "))
	}
	return strings.Join(values, ",")
}

func canonicalQuery(query url.Values) string {
	var pairs []string
	for _, key := range slices.SortedFunc(maps.Keys(query), func(a, b string) int {
		return strings.Compare(URIEncode(a, true), URIEncode(b, true))
	}) {
		if key == "X-Amz-Signature" {
			continue
		}
		var values []string
		for _, v := range query[key] {
			values = append(values, URIEncode(key, true)+"="+URIEncode(v, true))
		}
		slices.Sort(values)
		pairs = append(pairs, values...)
	}
	return strings.Join(pairs, "&")
}

// URIEncode encodes all but the unreserved characters according to RFC 3986, with upper-case digits.
func URIEncode(s string, slash bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~", c) >= 0, c == '/' && !slash:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func HexHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
