// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
)

// following is a process that only applies works, with an identity that the test writes.
type following struct {
	*world
	*follower
	// began counts sessions, and running is the number of current ones.
	began, running atomic.Int32
	stop           func()

	mu       sync.Mutex
	identity state.State
	broken   error
	// way is the configuration of the last session.
	way *rest.Config
}

func newFollowing(t *testing.T) *following {
	t.Helper()
	f := &following{world: newWorld(t)}
	f.CertLife = time.Hour
	f.follower = &follower{
		where: "the test", every: 20 * time.Second, drivers: drivers(), health: &health.Health{}, random: func() float64 { return 0.5 },
		read: func(context.Context) (state.State, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.identity, f.broken
		},
		connect: func(config *rest.Config) (*hub.Hub, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.way = config
			return &hub.Hub{}, nil
		},
		works: task.Task{Name: "works", Run: func(ctx context.Context, _ task.Session) error {
			f.began.Add(1)
			if f.running.Add(1) > 1 {
				t.Error("two sessions at once")
			}
			<-ctx.Done()
			time.Sleep(time.Second) // it ends soon, and not at once
			f.running.Add(-1)
			return nil
		}},
	}
	ctx, cancel := context.WithCancel(agenttest.Quiet(t))
	ended := make(chan error, 1)
	go func() { ended <- f.follower.run(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil || f.running.Load() > 0 {
			t.Errorf("it has ended with %v, and %d sessions are left", err, f.running.Load())
		}
	})
	t.Cleanup(f.stop)
	return f
}

// write replaces the identity.
func (f *following) write(change func(*state.State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.identity)
}

// joinedState returns the state that the process that registers has written.
func (f *following) joinedState() state.State {
	f.T.Helper()
	_, stop := f.joined()
	stop()
	s := f.State()
	config := agenttest.LoadKubeconfig(f.T, s.Kubeconfig)
	for _, cluster := range config.Clusters {
		cluster.CertificateAuthorityData, _ = agenttest.Certificate(f.T, "ca")
	}
	var err error
	s.Kubeconfig, err = clientcmd.Write(*config)
	if err != nil {
		f.T.Fatal(err)
	}
	return s
}

// answer makes the hub respond to a request of the session.
func (f *following) answer(code int) {
	f.T.Helper()
	f.mu.Lock()
	way := f.way.WrapTransport(answering(code))
	f.mu.Unlock()
	response, err := way.RoundTrip(httptest.NewRequestWithContext(f.T.Context(), http.MethodGet, "/", nil))
	if err != nil {
		f.T.Fatal(err)
	}
	_ = response.Body.Close()
	synctest.Wait()
}

type answering int

func (code answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(code), Body: http.NoBody}, nil
}

func (f *following) expect(sessions int32, ready string) {
	f.T.Helper()
	agenttest.Pass(time.Minute)
	if n := f.began.Load(); n != sessions {
		f.T.Errorf("there have been %d sessions, want %d", n, sessions)
	}
	err := f.health.Ready()
	if ready == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), ready) {
		f.T.Errorf("readiness is %v, want %q", err, ready)
	}
}

func TestFollower_WaitsForUsableIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t)
		f.expect(0, "there is no identity in the test")
		whole := f.joinedState()
		other, otherKey := agenttest.Certificate(t, "system:open-cluster-management:other:agent")
		for _, test := range []struct {
			want  string
			write func(*state.State)
		}{
			{"there is no identity", func(s *state.State) { *s = state.State{ClusterName: whole.ClusterName, NextKey: whole.Key} }},
			{"there is no identity", func(s *state.State) { *s = whole; s.ClusterName = "" }},
			{"cannot be used", func(s *state.State) { *s = whole; s.Cert = nil }},
			{"cannot be used", func(s *state.State) { *s = whole; s.Key = nil }},
			{"cannot be used", func(s *state.State) { *s = whole; s.Cert = []byte("nonsense") }},
			{"cannot be used", func(s *state.State) { *s = whole; s.Key = otherKey }},
			{"cannot be used", func(s *state.State) { *s = whole; s.Cert, s.Key = other, otherKey }},
			{"cannot be used", func(s *state.State) { *s = whole; s.AgentName = "another" }},
			{"no longer there", func(s *state.State) { f.broken = errors.New("no longer there") }},
			{"waiting for another identity", func(s *state.State) { f.broken = nil; *s = whole; s.Kubeconfig = []byte("nonsense") }},
		} {
			f.write(test.write)
			f.expect(0, test.want)
		}
		f.write(func(s *state.State) { *s = whole })
		f.expect(1, "the hub to answer")
		f.answer(http.StatusOK)
		f.expect(1, "")
	})
}

func TestFollower_RenewalDoesNotInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t)
		whole := f.joinedState()
		f.write(func(s *state.State) { *s = whole })
		f.expect(1, "the hub")
		f.answer(http.StatusOK)
		for range 3 {
			_, key := agenttest.Certificate(t, "x")
			agenttest.Pass(50 * time.Minute) // each is valid for an hour
			f.write(func(s *state.State) {
				s.Key, s.Cert = key, f.SignKey(key, "system:open-cluster-management:"+whole.ClusterName+":"+whole.AgentName)
			})
			f.expect(1, "")
		}
		agenttest.Pass(time.Hour) // nothing has renewed it
		f.expect(1, "the certificate has expired")
		if f.running.Load() > 0 {
			t.Error("it works on with a certificate that has expired")
		}
	})
}

func TestFollower_CachesIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t)
		whole := f.joinedState()
		f.write(func(s *state.State) { *s = whole })
		f.expect(1, "the hub")
		f.answer(http.StatusOK)
		for _, change := range []func(*state.State){
			func(s *state.State) { *s = state.State{} }, // the Secret was deleted
			func(s *state.State) { s.Cert = []byte("nonsense") },
			func(*state.State) { f.broken = errors.New("a broken disk") },
			func(s *state.State) { f.broken = nil; *s = whole },
		} {
			f.write(change)
			f.expect(1, "")
		}
		f.write(func(s *state.State) {
			s.Kubeconfig = []byte(strings.ReplaceAll(string(s.Kubeconfig), "hub:6443", "new:6443"))
		})
		f.expect(2, "the hub to answer")
	})
}

func TestFollower_DropsUnknownIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t)
		whole := f.joinedState()
		f.write(func(s *state.State) { *s = whole })
		f.expect(1, "the hub")
		for _, code := range []int{401, 401, 401, 401, 403, 401, 401, 401, 401} {
			f.answer(code)
		}
		f.expect(1, "does not know this agent's identity")
		if f.running.Load() != 1 {
			t.Fatal("four times in a row are not enough")
		}
		f.answer(http.StatusUnauthorized)
		f.expect(1, "waiting for another identity")
		if f.running.Load() != 0 {
			t.Fatal("it works on")
		}
		agenttest.Pass(rejoinFor)
		f.expect(2, "the hub to answer") // the hub may have been wrong

		for range hub.Rejections {
			f.answer(http.StatusUnauthorized)
		}
		f.expect(2, "waiting for another identity")
		_, key := agenttest.Certificate(t, "x")
		f.write(func(s *state.State) {
			s.Key, s.Cert = key, f.SignKey(key, "system:open-cluster-management:"+whole.ClusterName+":"+whole.AgentName)
		})
		f.expect(3, "the hub to answer")
		f.answer(http.StatusForbidden)
		f.expect(3, "denies access to this cluster")
		f.answer(http.StatusOK)
		f.expect(3, "")
	})
}

// Without a folder, the agent may read the one Secret of the management cluster, and nothing else.
func TestFollower_ReadsSecretWithDeclaredRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Detach()
		_, stop := w.joined()
		stop()
		o := NewOptions()
		o.Registration, o.Works.Enabled, o.Spoke.Detached = false, true, true
		p := &process{Options: o, health: &health.Health{}}
		f := p.newFollower(&clusters{own: w.Own(), home: w.Home()})
		w.Grant(f.rights())
		if _, err := f.load(t.Context()); err != nil {
			t.Error(err)
		}
		f.needs.Management.Namespace = nil
		w.Grant(f.rights())
		if _, err := f.load(t.Context()); err == nil {
			t.Error("it may do what it does not state")
		}
		o.HubKubeconfigDir = t.TempDir()
		if got := p.newFollower(&clusters{own: w.Own()}).rights().Management; len(got.Cluster)+len(got.Namespace) > 0 {
			t.Errorf("with a folder it states %+v", got)
		}
	})
}
