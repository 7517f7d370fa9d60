// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"
)

// read returns the error of reading the body of a request.
func read(t *testing.T, contentType string, body io.Reader) (err error) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPatch, "/", body)
	r.Header.Set("Content-Type", contentType)
	WithLimit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err = io.ReadAll(r.Body)
	}), serializers()).ServeHTTP(httptest.NewRecorder(), r)
	return err
}

func serializers() runtime.NegotiatedSerializer {
	return serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
}

func TestWithLimit_LimitsEntriesNotBytes(t *testing.T) {
	const apply = "application/apply-patch+yaml"
	for what, c := range map[string]struct {
		body, kind string
		refused    bool
	}{
		"many bytes":            {body: strings.Repeat("x", 3<<20)},
		"as many entries":       {body: "[" + strings.Repeat("{},", Most) + "{}]"},
		"one more":              {body: "[" + strings.Repeat("{},", Most+1) + "{}]", refused: true},
		"in YAML":               {body: "[" + strings.Repeat("{},", Most+1) + "{}]", kind: "application/YAML", refused: true},
		"commas of a text":      {body: `{"a":"` + strings.Repeat(`\",\\\",`, Most) + `"}`},
		"after a text":          {body: `{"a":"\\","b":[` + strings.Repeat("{},", Most) + `{}]}`, refused: true},
		"pretty":                {body: strings.Repeat("{\n},\n", Most)},
		"as many lines":         {body: strings.Repeat("- {}\n", Most), kind: apply},
		"one line more":         {body: strings.Repeat("- {}\n", Most+1), kind: apply, refused: true},
		"carriage returns":      {body: strings.Repeat("- {}\r", Most+1), kind: apply, refused: true},
		"next lines":            {body: strings.Repeat("- {}\u0085", Most+1), kind: apply, refused: true},
		"line separators":       {body: strings.Repeat("- {}\u2028", Most+1), kind: apply, refused: true},
		"paragraphs":            {body: strings.Repeat("- {}\u2029", Most+1), kind: apply, refused: true},
		"letters":               {body: `{"a":"` + strings.Repeat("äß", Most) + `"}`, kind: apply},
		"texts with signs":      {body: `{"a":"` + strings.Repeat("R&D *: a * b **\\n* &\\n", 1000) + `"}`, kind: apply},
		"rules of ClusterRoles": {body: `{"verbs":[` + strings.Repeat(`"*",`, 1000) + `"&"]}`, kind: apply},
		"some aliases":          {body: "a: &x b\nc: [" + strings.Repeat("*x,", MaxAliases) + "]", kind: apply},
		"aliases":               {body: "a: &x b\nc: [" + strings.Repeat("*x,", MaxAliases+1) + "]", kind: apply, refused: true},
		"aliases of a list":     {body: "a: &x b\nc:\n" + strings.Repeat("- *x\n", MaxAliases+1), kind: apply, refused: true},
		"aliases as values":     {body: `{"a":&x b` + strings.Repeat(`,"c":*x`, MaxAliases+1) + "}", kind: apply, refused: true},
		"aliases of aliases": {body: "a: &a [x,x]\n" + strings.Repeat("b: &a [*a,*a]\n", MaxAliases/2+1), kind: "application/yaml; charset=utf-8",
			refused: true},
	} {
		for how, reader := range map[string]io.Reader{
			"at once": strings.NewReader(c.body), "in halves": iotest.HalfReader(strings.NewReader(c.body)),
		} {
			err := read(t, cmp.Or(c.kind, "application/json"), reader)
			if apierrors.IsRequestEntityTooLargeError(err) != c.refused || err != nil && !c.refused {
				t.Errorf("%s, %s: got %v", what, how, err)
			}
		}
	}
	for what, body := range map[string]string{"little": "\xff\xfea\x00", "big": "\xfe\xff\x00a"} {
		if err := read(t, apply, strings.NewReader(body)); !apierrors.IsBadRequest(err) {
			t.Errorf("UTF-16, %s endian: got %v", what, err)
		}
	}
}

// TestAliases_AreCounted verifies that the limit counts all that YAML parses as aliases.
func TestAliases_AreCounted(t *testing.T) {
	for _, alias := range []string{"[&x b,*x]", "{a: &x b, c: *x}", `{"a":&x b,"c":*x}`, "- &x b\n- *x", "? &x b\n: *x", "a: &x b\u0085c: *x", "a: !!str &x b\nc: *x"} {
		var value any
		if err := yaml.Unmarshal([]byte(alias), &value); err != nil {
			t.Fatalf("%q: %v", alias, err)
		}
		b := &body{ReadCloser: io.NopCloser(strings.NewReader(alias)), yaml: true}
		if _, err := io.ReadAll(b); err != nil || b.aliases != 1 {
			t.Errorf("%q: %d aliases, %v", alias, b.aliases, err)
		}
	}
}

func TestWithLimit_LimitsFieldManagerNames(t *testing.T) {
	for length, want := range map[int]int{128: http.StatusOK, 129: http.StatusBadRequest, 90_000: http.StatusBadRequest} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/?fieldManager="+strings.Repeat("a", length), http.NoBody)
		WithLimit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), serializers()).ServeHTTP(w, r)
		if w.Code != want || w.Body.Len() > 1000 {
			t.Errorf("%d characters: got %d and %d bytes", length, w.Code, w.Body.Len())
		}
	}
}

func TestWithLimit_LimitsStrategicMergePatches(t *testing.T) {
	for what, c := range map[string]struct {
		body, kind string
		refused    bool
	}{
		"as many":           {body: "[" + strings.Repeat("{},", MaxMerged) + "{}]"},
		"one more":          {body: "[" + strings.Repeat("{},", MaxMerged+1) + "{}]", refused: true},
		"with a charset":    {body: "[" + strings.Repeat("{},", MaxMerged+1) + "{}]", kind: "; charset=utf-8", refused: true},
		"in a text":         {body: `{"a":"` + strings.Repeat(`\",\\\",`, MaxMerged) + `"}`},
		"after a text":      {body: `{"a":"\\","b":[` + strings.Repeat("{},", MaxMerged) + `{}]}`, refused: true},
		"after two":         {body: `{"a":"\"","b":[` + strings.Repeat("{},", MaxMerged) + `{}]}`, refused: true},
		"texts of an array": {body: `["` + strings.Repeat(`a","`, MaxMerged+1) + `"]`, refused: true},
	} {
		err := read(t, string(types.StrategicMergePatchType)+c.kind, iotest.OneByteReader(strings.NewReader(c.body)))
		if apierrors.IsRequestEntityTooLargeError(err) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// TestWithLimit_RejectsLargeNumbers verifies that a number that no type can hold is rejected before a manifest with it is decoded.
func TestWithLimit_RejectsLargeNumbers(t *testing.T) {
	for body, refused := range map[string]bool{
		`{"a":1e400}`: true, `[-1E+309]`: true, `[1e308,2]`: false, `["1e400"]`: false, `[1e-400]`: false, `["\"1e400"]`: false, `{"a":9007199254740993}`: false,
		"[" + strings.Repeat("9", 309) + "]": true, "[" + strings.Repeat("9", 308) + "]": false, "[0." + strings.Repeat("9", 5000) + "]": false,
	} {
		for how, reader := range map[string]io.Reader{"at once": strings.NewReader(body), "byte by byte": iotest.OneByteReader(strings.NewReader(body))} {
			if err := read(t, "application/json", reader); apierrors.IsBadRequest(err) != refused || err != nil && !refused {
				t.Errorf("%.40s, %s: got %v", body, how, err)
			}
		}
	}
}

func TestWithLimit_RejectsInvalidNamespacesAndTimes(t *testing.T) {
	for _, c := range []struct {
		namespace, query string
		code             int
	}{
		{"a", "", 200}, {"", "", 200}, {".", "", 400}, {"..", "", 400}, {"a/b", "", 400}, {"a%b", "", 400},
		{"a", "timeoutSeconds=0", 200}, {"a", "timeoutSeconds=60", 200}, {"a", "timeoutSeconds=-1", 400}, {"a", "timeoutSeconds=9223372036", 200},
		{"a", "timeoutSeconds=9223372037", 400}, {"a", "timeoutSeconds=1&timeoutSeconds=9223372036854775807", 400},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/?"+c.query, http.NoBody)
		r = r.WithContext(request.WithRequestInfo(r.Context(), &request.RequestInfo{Namespace: c.namespace}))
		WithLimit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), serializers()).ServeHTTP(w, r)
		if w.Code != c.code {
			t.Errorf("namespace %q, %s: got %d %s", c.namespace, c.query, w.Code, w.Body)
		}
	}
}

func TestWithLimit_IgnoresRequestsWithoutBody(t *testing.T) {
	WithLimit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			t.Error("it got a body")
		}
	}), serializers()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
}
