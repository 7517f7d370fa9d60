// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// answers counts the responses to a client: status codes, and transport errors if there is no response.
type answers struct {
	mu     sync.Mutex
	codes  map[int]int
	broken map[string]int
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func counted(config *rest.Config) (*rest.Config, *answers) {
	a := &answers{codes: map[int]int{}, broken: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			a.mu.Lock()
			defer a.mu.Unlock()
			if err != nil {
				a.broken[err.Error()]++
			} else {
				a.codes[response.StatusCode]++
			}
			return response, err
		})
	})
	return config, a
}

// names is a set of cluster names for concurrent use.
type names struct {
	mu  sync.Mutex
	all map[string]bool
}

func (n *names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[name] = true
}

func (n *names) len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.all)
}

// follow reads a watch of clusters to its end, and returns the error that ended it.
func (n *names) follow(body io.Reader) error {
	for decoder := json.NewDecoder(body); ; {
		var event metav1.WatchEvent
		if err := decoder.Decode(&event); err != nil {
			return err
		}
		var c clusterv1.ManagedCluster
		if err := json.Unmarshal(event.Object.Raw, &c); err != nil || event.Type == string(watch.Error) {
			return fmt.Errorf("%s %s, %w", event.Type, event.Object.Raw, err)
		}
		n.add(c.Name)
	}
}

// TestShutdown_UnderLoadIsGraceful stops a hub-apiserver with an embedded etcd while eight writers write and a watch is open. Every accepted request
// is served, so etcd must outlive the API server.
func TestShutdown_UnderLoadIsGraceful(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"by default":  nil,
		"as deployed": {"--shutdown-delay-duration=3s", "--shutdown-send-retry-after"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := readyProcess(t, dir, args...)
			config, got := counted(p.config())
			stream, err := harness.RESTClient(t, p.config()).Get().Resource("managedclusters").
				VersionedParams(&metav1.ListOptions{Watch: true}, scheme.ParameterCodec).Stream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			seen, acknowledged := &names{all: map[string]bool{}}, &names{all: map[string]bool{}}
			ended := make(chan error, 1)
			go func() { ended <- seen.follow(stream) }()

			clusters := harness.Ours(t, config).ClusterV1().ManagedClusters()
			var writers sync.WaitGroup
			for w := range 8 {
				writers.Go(func() {
					for i := 0; ; i++ {
						c := harness.ManagedCluster(fmt.Sprintf("w%d-%d", w, i), nil)
						_, err := clusters.Create(t.Context(), c, metav1.CreateOptions{})
						if err == nil {
							acknowledged.add(c.Name)
						} else if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
							return // the server has stopped listening
						}
					}
				})
			}
			harness.Eventually(t, "the writers write", func(context.Context) (bool, error) { return seen.len() > 100, nil })
			p.terminate(t)
			if args != nil { // with a shutdown delay
				harness.Eventually(t, "it is not ready any more", func(context.Context) (bool, error) {
					_, err := harness.Get(t, p.config(), "/readyz")
					return err != nil, nil
				})
				// Requests still arrive, as load balancers have not observed the shutdown yet.
				before := acknowledged.len()
				harness.Eventually(t, "writes go on", func(context.Context) (bool, error) { return acknowledged.len() > before, nil })
			}
			if code := p.exitCode(t); code != 0 {
				t.Errorf("the exit code is %d", code)
			}
			writers.Wait()
			if err := <-ended; !errors.Is(err, io.EOF) {
				t.Errorf("the watch was ended by %v", err)
			}
			for code, n := range got.codes {
				if !slices.Contains([]int{http.StatusCreated, http.StatusTooManyRequests, http.StatusServiceUnavailable}, code) {
					t.Errorf("%d answers were %d", n, code)
				}
			}
			t.Logf("%d writes, the watch saw %d, answers %v %v", acknowledged.len(), seen.len(), got.codes, got.broken)

			p = readyProcess(t, dir, args...)
			list := harness.Must(harness.Ours(t, p.config()).ClusterV1().ManagedClusters().List(t.Context(), metav1.ListOptions{}))(t)
			for _, c := range list.Items {
				delete(acknowledged.all, c.Name)
			}
			if len(acknowledged.all) > 0 {
				t.Errorf("%d writes were acknowledged and are not there: %v", len(acknowledged.all), acknowledged.all)
			}
		})
	}
}
