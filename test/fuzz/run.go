// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Target is the tested server.
type Target struct {
	// Clients send the requests, each a part of them: one for each user.
	Clients []*http.Client
	// URL is its URL, without a path.
	URL string
	// Hidden are texts that no response may contain, such as addresses of other servers.
	Hidden []string
	// Parallel is the number of concurrent requests, or 0 for one.
	Parallel int
}

// Answer is the response to a request.
type Answer struct {
	Code int
	Body string
}

// maxRead is the largest number of bytes that are read of a response.
const maxRead = 64 << 10

// Run creates the samples, sends the requests with the given numbers, and reports each at which the server failed. It returns the number of responses
// for each code. A sample that was deleted is created again.
func (g *Generator) Run(ctx context.Context, t Target, numbers []int, report func(Request, string)) (map[int]int, error) {
	if err := g.create(ctx, t, ""); err != nil {
		return nil, err
	}
	codes := map[int]int{}
	var mu sync.Mutex
	var next atomic.Int64
	var all sync.WaitGroup
	for range max(t.Parallel, 1) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(numbers)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				q := g.Request(numbers[i])
				answer, err := t.send(ctx, q)
				wrong := t.judge(answer, err)
				if q.Method == http.MethodDelete && answer.Code/100 == 2 {
					_ = g.create(ctx, t, q.kind.Kind) // it may still be terminating
				}
				mu.Lock()
				codes[answer.Code]++
				if wrong != "" {
					report(q, wrong)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return codes, ctx.Err()
}

// create creates the missing samples of a kind, or of all kinds if it is empty.
func (g *Generator) create(ctx context.Context, t Target, kind string) error {
	for _, sample := range g.all {
		if kind != "" && sample.GetKind() != kind {
			continue
		}
		answer, err := t.send(ctx, Request{Method: http.MethodPost, Path: g.collection(sample), ContentType: "application/json", Accept: "application/json",
			Body: encode(sample.Object)})
		if err != nil {
			return err
		}
		if answer.Code/100 != 2 && answer.Code != http.StatusConflict {
			return fmt.Errorf("the sample %s %s is not created: %d %s", sample.GetKind(), sample.GetName(), answer.Code, answer.Body)
		}
	}
	return nil
}

// collection returns the path to create an object at.
func (g *Generator) collection(sample *unstructured.Unstructured) string {
	for _, o := range g.operations {
		if o.action == "post" && o.kind == sample.GroupVersionKind() && !strings.Contains(o.path, "{name}") {
			return strings.ReplaceAll(o.path, "{namespace}", sample.GetNamespace())
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(sample.GroupVersionKind())
	return "/apis/" + sample.GetAPIVersion() + "/" + plural.Resource
}

func (t Target) send(ctx context.Context, q Request) (Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a watch
	request, err := http.NewRequestWithContext(ctx, q.Method, t.URL+q.Path, strings.NewReader(q.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("the generator made no request: %w", err)
	}
	request.URL.RawQuery = strings.ReplaceAll(q.Query, "\x7f", "%7f")
	request.Header.Set("Content-Type", q.ContentType)
	request.Header.Set("Accept", q.Accept)
	response, err := t.Clients[q.client%len(t.Clients)].Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	answer := Answer{Code: response.StatusCode}
	if answer.Code == http.StatusOK && response.ContentLength < 0 && request.URL.Query().Has("watch") {
		return answer, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRead))
	answer.Body = string(body)
	return answer, err
}

// judge returns what is wrong with a response, or "".
func (t Target) judge(answer Answer, err error) string {
	if err != nil {
		return fmt.Sprintf("no answer: %v", err)
	}
	for _, hidden := range t.Hidden {
		if strings.Contains(answer.Body, hidden) {
			return fmt.Sprintf("the answer has %q: %d %s", hidden, answer.Code, answer.Body)
		}
	}
	if answer.Code >= 500 && !tooLargeVersion(answer.Body) {
		return fmt.Sprintf("%d %s", answer.Code, answer.Body)
	}
	return ""
}

// tooLargeVersion reports whether a response is for a resource version in the future. It is a 504, and clients of Kubernetes retry.
func tooLargeVersion(body string) bool {
	var status metav1.Status
	return json.Unmarshal([]byte(body), &status) == nil && status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeResourceVersionTooLarge
	})
}
