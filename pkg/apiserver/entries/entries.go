// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package entries limits the number of entries in a request: a few bytes of its body can cause much work. It also rejects parameters and namespaces
// that the generic server uses before it validates them.
//
// The generic server limits the bytes. Three of them can be an entry, which takes a thousand times as much memory, and microseconds when it is
// decoded and its field managers are recorded, all before admission and validation. In YAML, an alias of two bytes repeats a value that may be long.
package entries

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// Most is the largest number of commas in a body, and in YAML also of line breaks: each entry has one of them. In JSON only those outside of
	// strings count. An object of the largest stored size has fewer, if its entries have a handful of bytes.
	Most = 64 << 10
	// MaxMerged is the largest number of commas outside of strings in a strategic merge patch. Such a patch merges lists by searching for each entry
	// among all others: 16,000 owners took a minute. Clients that change more must use another kind of patch.
	MaxMerged = 2 << 10
	// MaxAliases is the largest number of aliases in a YAML body after an anchor. Aliases of aliases multiply.
	MaxAliases = 8
)

// WithLimit responds with 413 to requests with more, and with 400 to those with such a parameter or namespace.
func WithLimit(handler http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := refused(r); err != nil {
			responsewriters.ErrorNegotiated(err, serializer, groupVersion(r), w, r)
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			contentType := r.Header.Get("Content-Type")
			r.Body = &body{
				ReadCloser: r.Body,
				yaml:       strings.Contains(strings.ToLower(contentType), "yaml"),
				merged:     strings.HasPrefix(contentType, string(types.StrategicMergePatchType)),
			}
		}
		handler.ServeHTTP(w, r)
	})
}

// refused returns what is wrong with a request apart from its body.
func refused(r *http.Request) error {
	query := r.URL.Query()
	// A timeout that ends before the request begins would end it as if the server had not responded.
	for _, seconds := range query["timeoutSeconds"] {
		if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && (n < 0 || n > math.MaxInt64/int64(time.Second)) {
			return apierrors.NewBadRequest(fmt.Sprintf("timeoutSeconds: must be from 0 to %d, not %d", math.MaxInt64/int64(time.Second), n))
		}
	}
	// The field manager code returns an error for each invalid character of such a name, and quotes the whole name each time.
	for _, manager := range query["fieldManager"] {
		if len(manager) > metav1validation.FieldManagerMaxLength {
			return apierrors.NewBadRequest(fmt.Sprintf("fieldManager: must have %d bytes at most, not %d",
				metav1validation.FieldManagerMaxLength, len(manager)))
		}
	}
	// The store cannot make a key of such a namespace, and would report that as an internal error.
	if info, ok := request.RequestInfoFrom(r.Context()); ok && info.Namespace != "" {
		if wrong := content.IsPathSegmentName(info.Namespace); len(wrong) > 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("namespace %q: %s", info.Namespace, strings.Join(wrong, "; ")))
		}
	}
	return nil
}

func groupVersion(r *http.Request) schema.GroupVersion {
	if info, ok := request.RequestInfoFrom(r.Context()); ok {
		return schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	}
	return schema.GroupVersion{}
}

// body counts the bytes that are read from it.
type body struct {
	io.ReadCloser
	// merged reports whether it is a strategic merge patch, and yaml whether it may be YAML. Strings are only recognized in JSON.
	merged, yaml bool

	commas, breaks int
	notUTF8        bool
	anchors        bool
	aliases        int

	quoted, escaped bool
	last, before    byte
	// number is the beginning of the current number. hugeNumber is a number that is too large for any field.
	number     []byte
	hugeNumber string
}

// longNumber is the smallest number of digits of a number without an exponent that is larger than any float64.
const longNumber = 309

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for _, c := range p[:n] {
		if b.yaml {
			b.countYAML(c)
		} else {
			b.countJSON(c)
		}
		b.before, b.last = b.last, c
	}
	switch {
	case b.commas > Most || b.breaks > Most:
		return n, tooLarge("the request has more than %d entries or lines: remove those that the object does not need", Most)
	case b.merged && b.commas > MaxMerged:
		return n, tooLarge("the strategic merge patch has more than %d entries: use a merge patch (%s), or an update", MaxMerged, types.MergePatchType)
	case b.aliases > MaxAliases:
		return n, tooLarge("the YAML has more than %d aliases: write out what they stand for, or send JSON", MaxAliases)
	case b.hugeNumber != "":
		return n, apierrors.NewBadRequest(fmt.Sprintf("the number %.40s is too large: numbers are up to 1.8e308", b.hugeNumber))
	case b.notUTF8:
		return n, apierrors.NewBadRequest("the YAML is in UTF-16: send UTF-8")
	}
	return n, err
}

func tooLarge(format string, args ...any) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(format, args...))
}

func (b *body) countJSON(c byte) {
	escaped := b.escaped
	b.escaped = false
	if !b.quoted {
		b.readNumber(c)
	}
	switch c {
	case ',':
		if !b.quoted {
			b.commas++
		}
	case '"':
		if !escaped {
			b.quoted = !b.quoted
		}
	case '\\':
		b.escaped = b.quoted && !escaped
	}
}

// readNumber finds numbers that no type of Go can hold. Raw content, such as a manifest, may have them, and is decoded again when the managers of its
// fields are recorded, which would panic.
func (b *body) readNumber(c byte) {
	if '0' <= c && c <= '9' || len(b.number) > 0 && strings.IndexByte("+-.eE", c) >= 0 {
		if len(b.number) <= longNumber+len("e-999999") {
			b.number = append(b.number, c)
		}
		return
	}
	if len(b.number) >= longNumber || bytes.ContainsAny(b.number, "eE") {
		if _, err := strconv.ParseFloat(string(b.number), 64); errors.Is(err, strconv.ErrRange) {
			b.hugeNumber = string(b.number)
		}
	}
	b.number = b.number[:0]
}

// countYAML may count too much: the boundaries of strings are not known without parsing YAML.
func (b *body) countYAML(c byte) {
	switch c {
	case ',':
		b.commas++
	case '\n', '\r', 0x85, 0xa8, 0xa9: // the last three end the other line breaks of YAML, and some letters
		b.breaks++
	case 0xfe, 0xff: // in no UTF-8
		b.notUTF8 = true
	}
	if !begins(b.before) || !isName(c) {
		return
	}
	switch b.last {
	case '&':
		b.anchors = true
	case '*':
		if b.anchors {
			b.aliases++
		}
	}
}

// begins reports whether a node of YAML may begin after a byte.
func begins(c byte) bool {
	return c == 0 || c >= 0x80 || strings.IndexByte(" \t\r\n,[{:-?!", c) >= 0
}

// isName reports whether a byte can be part of the name of an anchor.
func isName(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
