// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/access"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/cluster"
)

var errKilled = errors.New("the process was killed")

// life is the remaining life of a process: it ends before its next write once left is 0, and does nothing from then on.
type life struct {
	w *world
	// left is the number of remaining writes of the process.
	left    int
	dead    bool
	written []string
}

// noWrite matches the paths of POST requests that store nothing: reviews, and requests for tokens of ServiceAccounts.
var noWrite = regexp.MustCompile(`/(selfsubject|tokenreviews|serviceaccounts/[^/]+/token$)`)

var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func (l *life) write(what string, do func() error) error {
	l.dead = l.dead || l.left == 0
	if l.dead {
		return errKilled
	}
	l.left--
	l.written = append(l.written, uid.ReplaceAllString(what, "UID"))
	return do()
}

// tripper is the transport of a process to a server.
type tripper struct {
	*life
	http.RoundTripper
}

func (t tripper) RoundTrip(r *http.Request) (response *http.Response, err error) {
	do := func() error {
		response, err = t.RoundTripper.RoundTrip(r) //nolint:bodyclose // the caller does
		return err
	}
	switch {
	case t.dead:
		return nil, errKilled
	case r.Method == http.MethodGet:
		err = do()
	case noWrite.MatchString(r.URL.Path):
		if err = do(); err == nil {
			err = t.w.issued(r.URL.Path, response)
		}
	default:
		err = t.write(r.Method+" "+r.URL.Path, do)
	}
	return response, err
}

// mortal is the provider of a process. Its cluster can trust OIDC issuers, too.
type mortal struct {
	*Provider
	*life
}

func (m *mortal) Connect(ctx context.Context, c *v1alpha1.Cluster) (*rest.Config, error) {
	config, err := m.Provider.Connect(ctx, c)
	if err == nil {
		config.Wrap(func(to http.RoundTripper) http.RoundTripper { return tripper{m.life, to} })
	}
	return config, err
}

func (m *mortal) TrustOIDC(_ context.Context, _ *v1alpha1.Cluster, providers []v1alpha1.OIDCProviderConfig) error {
	trusted := sets.New[string]()
	for _, provider := range providers {
		trusted.Insert(provider.Issuer)
	}
	if trusted.Equal(m.w.trusted) {
		return nil
	}
	return m.write("trust", func() error {
		m.w.trusted = trusted
		return nil
	})
}

// process is a provider that reconciles only when look is called. It watches nothing.
type process struct {
	*life
	w        *world
	clusters *cluster.Reconciler
	access   *access.Reconciler
}

func (w *world) process(writes int) *process {
	w.t.Helper()
	p := &process{w: w, life: &life{w: w, left: writes}}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return tripper{p.life, to} })
	c := w.connect(config)
	provider := &mortal{&Provider{hub: c, name: own.Name, namespace: providers}, p.life}
	p.access = access.New(own, provider, c, c, &events.FakeRecorder{})
	p.clusters = cluster.New(own, provider, c, &events.FakeRecorder{}, p.access)
	return p
}

// long is a life that does not end.
const long = 1 << 20

// look reconciles each object once, and returns the errors.
func (p *process) look() (err error) {
	p.w.t.Helper()
	clusters, requests := &v1alpha1.ClusterList{}, &v1alpha1.AccessRequestList{}
	p.w.must(p.w.client.List(p.w.t.Context(), clusters), p.w.client.List(p.w.t.Context(), requests))
	for _, c := range clusters.Items {
		_, failure := p.clusters.Reconcile(p.w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&c)})
		err = errors.Join(err, failure)
	}
	for _, ar := range requests.Items {
		_, failure := p.access.Reconcile(p.w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&ar)})
		err = errors.Join(err, failure)
	}
	return err
}

// issued records the token in a server's response.
func (w *world) issued(path string, response *http.Response) error {
	if !strings.HasSuffix(path, "/token") || strings.Contains(path, v1alpha1.TokenMinterServiceAccount) || response.StatusCode >= 300 {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	answer, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return err
	}
	w.tokens[answer.(*authenticationv1.TokenRequest).Status.Token] = path
	return nil
}

var _ clusterprovider.OIDCTruster = &mortal{}
