// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// longestRead is how long one request may take: a server that hangs is a finding, too.
	longestRead = 15 * time.Second
	// mostRead is how many objects of a kind are read, and mostKept how many of them are in an archive.
	mostRead, mostKept = 20000, 1000
	pageSize           = 500
	// mostText is how much of an answer is read that is no object.
	mostText = 16 << 20
)

// Resources that the doctor reads.
var (
	namespaces          = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	apiServicesResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// reader reads with the rights of the user. What the user may not see is said, and taken for neither right nor wrong.
type reader struct {
	config  *rest.Config
	dynamic dynamic.Interface
	http    *http.Client

	// now is the time of the server at the time skewed from local, and within how precisely that is known.
	skew, within time.Duration
	version      string
	serving      *time.Time
	// authorities are the hashes of the certificates by which that of the server was found good.
	authorities []string

	unseen []string
	// keep is that what was read is to be in an archive; objects are what of it may.
	keep    bool
	objects map[string][]any
}

func newReader(ctx context.Context, config *rest.Config, keep bool) (*reader, error) {
	r := &reader{config: config, keep: keep, objects: map[string][]any{}}
	var err error
	if r.http, err = httpClient(config); err != nil {
		return nil, err
	}
	if r.dynamic, err = dynamic.NewForConfigAndClient(config, r.http); err != nil {
		return nil, err
	}
	return r, r.greet(ctx)
}

// greet asks the server something harmless, to see what time it has there, and its certificate.
func (r *reader) greet(ctx context.Context) error {
	asked := time.Now()
	response, body, err := r.raw(ctx, "/version")
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusUnauthorized {
		return apierrors.NewUnauthorized("the server does not accept the credentials")
	}
	r.version = textOf(body, "gitVersion")
	took := time.Since(asked)
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		// The header has whole seconds: it stands for half a second later, on the average.
		r.skew = asked.Add(took / 2).Sub(date.Add(time.Second / 2))
		r.within = took/2 + time.Second/2
	} else {
		r.unseen = append(r.unseen, "the clock of the server: its answers have no Date")
	}
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		r.serving = &response.TLS.PeerCertificates[0].NotAfter
		for _, chain := range response.TLS.VerifiedChains {
			for _, c := range chain {
				r.authorities = append(r.authorities, registration.CertificateHash(c.Raw))
			}
		}
		slices.Sort(r.authorities)
		r.authorities = slices.Compact(r.authorities)
	}
	return nil
}

// now is the time of the server.
func (r *reader) now() time.Time { return time.Now().Add(-r.skew) }

// raw gets a path of the server. An answer that is an error is one, too.
func (r *reader) raw(ctx context.Context, path string) (*http.Response, []byte, error) {
	base, _, err := rest.DefaultServerUrlFor(r.config)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base.String(), "/")+path, nil)
	if err != nil {
		return nil, nil, err
	}
	response, err := r.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostText))
	return response, body, err
}

// textOf is a field of an object in JSON, or nothing.
func textOf(data []byte, name string) string {
	object := map[string]any{}
	if err := jsonInto(data, &object); err != nil {
		return ""
	}
	text, _ := object[name].(string)
	return text
}

// miss says what could not be seen, and why.
func (r *reader) miss(what string, err error) {
	why := command.ErrorLine(err)
	switch {
	case apierrors.IsForbidden(err):
		why = "you may not read them"
	case apierrors.IsNotFound(err):
		why = "the server does not serve them"
	}
	r.unseen = append(r.unseen, what+": "+why)
}

// isHub is whether the server has APIServices of a hub, or serves the group of one in another way.
func (r *reader) isHub(ctx context.Context) (bool, error) {
	const ours = "cluster.open-cluster-management.io"
	_, err := r.get(ctx, apiServicesResource, "", "v1."+ours)
	switch {
	case err == nil:
		return true, nil
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return false, err
	}
	_, body, err := r.raw(ctx, "/apis")
	if err != nil {
		return false, err
	}
	groups := metav1.APIGroupList{}
	if err := jsonInto(body, &groups); err != nil {
		return false, fmt.Errorf("/apis of %s is no list of groups", r.config.Host)
	}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			// A managed cluster has claims of the group, in v1alpha1.
			if g.Name == ours && v.Version == "v1" {
				return true, nil
			}
		}
	}
	return false, nil
}

func (r *reader) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	o, err := r.dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		r.remember(o)
	}
	return o, err
}

// list reads all of a kind, page by page, up to a bound.
func (r *reader) list(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (items []unstructured.Unstructured, seen bool) {
	options.Limit = pageSize
	for {
		page, err := r.dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// It took so long that the first page is forgotten: what was read is still worth something.
			r.unseen = append(r.unseen, fmt.Sprintf("%s after the first %d: they change too fast", resource.Resource, len(items)))
			return items, false
		}
		if err != nil {
			r.miss(resource.Resource, err)
			return items, false
		}
		for i := range page.Items {
			r.remember(&page.Items[i])
		}
		items = append(items, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return items, true
		}
		if len(items) >= mostRead {
			r.unseen = append(r.unseen, fmt.Sprintf("%s after the first %d: no more are read", resource.Resource, len(items)))
			return items, false
		}
	}
}

// remember keeps what of an object may be in an archive.
func (r *reader) remember(o *unstructured.Unstructured) {
	if kind := o.GetKind(); r.keep && len(r.objects[kind]) < mostKept {
		r.objects[kind] = append(r.objects[kind], diagnosis.Redacted(o))
	}
}

// typed are objects as what they are. One that is not is left out, as a server of another version may have it.
func typed[T any](items []unstructured.Unstructured, seen bool) diagnosis.List[T] {
	list := diagnosis.List[T]{Seen: seen}
	for i := range items {
		var object T
		if runtime.DefaultUnstructuredConverter.FromUnstructured(items[i].Object, &object) == nil {
			list.Items = append(list.Items, object)
		}
	}
	return list
}

// atOnce is how many requests are under way at a time: a hub may be far away.
const atOnce = 16

// each runs a function for the numbers below n, some at a time.
func each(n int, run func(i int)) {
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			run(i)
		})
	}
	all.Wait()
}

// named reads those objects of kinds that are expected, by their names: there may be many others.
func (r *reader) named(ctx context.Context, expected []*unstructured.Unstructured, resources map[string]schema.GroupVersionResource) diagnosis.List[*unstructured.Unstructured] {
	list := diagnosis.List[*unstructured.Unstructured]{Seen: true}
	objects, errs := make([]*unstructured.Unstructured, len(expected)), make([]error, len(expected))
	each(len(expected), func(i int) {
		want := expected[i]
		objects[i], errs[i] = r.dynamic.Resource(resources[want.GetKind()]).Namespace(want.GetNamespace()).Get(ctx, want.GetName(), metav1.GetOptions{})
	})
	missed := map[string]bool{}
	for i, want := range expected {
		name := resources[want.GetKind()].Resource
		switch {
		case errs[i] == nil:
			r.remember(objects[i])
			list.Items = append(list.Items, objects[i])
		case !apierrors.IsNotFound(errs[i]):
			if list.Seen = false; !missed[name] {
				r.miss(name, errs[i])
			}
			missed[name] = true
		}
	}
	return list
}
