// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStates verifies that lists, objects and events have states if the page requests them, and are passed on unchanged otherwise.
func TestStates(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	const (
		nodes  = "/hub/apis/edge.clusterhub.dev/v1alpha1/edgenodes"
		node   = `{"kind":"EdgeNode","metadata":{"name":"a"}}`
		states = `"states":{"cells":{"state":{"text":"Never","tone":"unknown"}}}`
		shown  = `{"kind":"EdgeNode","metadata":{"name":"a"},` + states + `}`
	)
	for name, test := range map[string]struct {
		path, accept, body, want string
	}{
		"a list":                {nodes, acceptStates, `{"kind":"List","items":[` + node + `, {}],"metadata":{"continue":"x"}}`, `{"kind":"List","items":[` + shown + `,{` + states + `}],"metadata":{"continue":"x"}}`},
		"an empty list":         {nodes, acceptStates, `{"items":[]}`, `{"items":[]}`},
		"a list without items":  {nodes, acceptStates, `{"kind":"List","items":null}`, `{"kind":"List","items":[]}`},
		"one object":            {nodes + "/a", acceptStates, node, shown},
		"events":                {nodes + "?watch=1", acceptStates, `{"type":"ADDED","object":` + node + "}\n" + `{"type":"BOOKMARK","object":{}}` + "\n", `{"type":"ADDED","object":` + shown + "}\n" + `{"type":"BOOKMARK","object":{}}` + "\n"},
		"not requested":         {nodes, "application/json", `{ "items": [` + node + `] }`, `{ "items": [` + node + `] }`},
		"of a kind without any": {"/hub/api/v1/namespaces", acceptStates, `{ "items": [] }`, `{ "items": [] }`},
		"of another version":    {nodes + "/a", acceptStates, `{"status":[]}`, `{"status":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			f.hub.mu.Lock()
			f.hub.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.body)
			}
			f.hub.mu.Unlock()
			a := f.do(f.request("GET", test.path, "", "Cookie", cookie, "Accept", test.accept))
			if a.code != http.StatusOK || a.body != test.want {
				t.Errorf("the browser gets %d %s\nwant %s", a.code, a.body, test.want)
			}
			if asked, _ := f.hub.requests(); asked[len(asked)-1].Header.Get("Accept") != "application/json" {
				t.Errorf("the hub is asked for %q", asked[len(asked)-1].Header.Get("Accept"))
			}
		})
	}
}

// TestStates_InterruptedResponse verifies that a response that is incomplete or is no JSON is not completed.
func TestStates_InterruptedResponse(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	for _, body := range []string{`{"items":[{"metadata":{}}`, `{"items":[{]}`, `[]`, `{"items":{}}`, `{"kind"`} {
		f.hub.mu.Lock()
		f.hub.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}
		f.hub.mu.Unlock()
		response, err := http.DefaultClient.Do(f.request("GET", "/hub/apis/edge.clusterhub.dev/v1alpha1/edgenodes", "", "Cookie", cookie, "Accept", acceptStates))
		if err == nil {
			_, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		if err == nil {
			t.Errorf("%s is passed on as complete", body)
		}
	}
}

// deadlineRecorder records the calls that matter for the end of a response.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	calls []string
}

func (d *deadlineRecorder) SetWriteDeadline(time.Time) error {
	d.calls = append(d.calls, "deadline")
	return nil
}

// Read is the end of the hub's response.
func (d *deadlineRecorder) Read([]byte) (int, error) {
	d.calls = append(d.calls, "end")
	return 0, io.EOF
}

// TestStates_EndOfQuietWatch verifies that the end of a watch has a write deadline of its own: that of the last event may be over.
func TestStates_EndOfQuietWatch(t *testing.T) {
	d := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	withStates(d, io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{}}`+"\n"), d), &question{watch: true})
	if want := []string{"deadline", "end", "deadline"}; !slices.Equal(d.calls, want) {
		t.Errorf("the calls are %q, want %q", d.calls, want)
	}
}
