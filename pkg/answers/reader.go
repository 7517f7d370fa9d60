// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
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
	// LongestRead is how long one request may take: a server that hangs is a finding, too.
	LongestRead = 15 * time.Second
	// mostRead is how many objects of a kind are read, and mostKept how many of them are in an archive.
	mostRead, mostKept = 20000, 1000
	pageSize           = 500
	// mostText is how much of an answer is read that is no object.
	mostText = 16 << 20
)

// apiServicesResource is read by the doctor.
var apiServicesResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Reader reads with the rights of the user. What the user may not see is said, and taken for neither right nor wrong.
type Reader struct {
	Config  *rest.Config
	Dynamic dynamic.Interface
	HTTP    *http.Client

	// Skew is how far the clock of the server is from the local one, and within how precisely that is known.
	Skew, Within time.Duration
	// Version is that of the server, and Serving when its certificate ends.
	Version string
	Serving *time.Time
	// Authorities are the hashes of the certificates by which that of the server was found good.
	Authorities []string

	// Unseen is what could not be looked at, and why.
	Unseen []string
	// Most is how many objects of a kind are read, if not as many as usual.
	Most int
	// Keep is that what was read is to be in an archive; Objects are what of it may.
	Keep    bool
	Objects map[string][]any
}

// NewReader returns a reader that has greeted the server. With keep, what it reads can be in an archive.
func NewReader(ctx context.Context, config *rest.Config, keep bool) (*Reader, error) {
	r := &Reader{Config: config, Keep: keep, Objects: map[string][]any{}}
	var err error
	if r.HTTP, err = Client(config); err != nil {
		return nil, err
	}
	if r.Dynamic, err = dynamic.NewForConfigAndClient(config, r.HTTP); err != nil {
		return nil, err
	}
	return r, r.greet(ctx)
}

// greet asks the server something harmless, to see what time it has there, and its certificate.
func (r *Reader) greet(ctx context.Context) error {
	asked := time.Now()
	response, body, err := r.Raw(ctx, "/version")
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusUnauthorized {
		return apierrors.NewUnauthorized("the server does not accept the credentials")
	}
	r.Version = textOf(body, "gitVersion")
	took := time.Since(asked)
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		// The header has whole seconds: it stands for half a second later, on the average.
		r.Skew = asked.Add(took / 2).Sub(date.Add(time.Second / 2))
		r.Within = took/2 + time.Second/2
	} else {
		r.Unseen = append(r.Unseen, "the clock of the server: its answers have no Date")
	}
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		r.Serving = &response.TLS.PeerCertificates[0].NotAfter
		for _, chain := range response.TLS.VerifiedChains {
			for _, c := range chain {
				r.Authorities = append(r.Authorities, registration.CertificateHash(c.Raw))
			}
		}
		slices.Sort(r.Authorities)
		r.Authorities = slices.Compact(r.Authorities)
	}
	return nil
}

// Now is the time of the server.
func (r *Reader) Now() time.Time { return time.Now().Add(-r.Skew) }

// Raw gets a path of the server. An answer that is an error is one, too.
func (r *Reader) Raw(ctx context.Context, path string) (*http.Response, []byte, error) {
	base, _, err := rest.DefaultServerUrlFor(r.Config)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base.String(), "/")+path, nil)
	if err != nil {
		return nil, nil, err
	}
	response, err := r.HTTP.Do(request)
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

// Miss says what could not be seen, and why.
func (r *Reader) Miss(what string, err error) {
	why := command.ErrorLine(err)
	switch {
	case apierrors.IsForbidden(err):
		why = "you may not read them"
	case apierrors.IsNotFound(err):
		why = "the server does not serve them"
	}
	r.Unseen = append(r.Unseen, what+": "+why)
}

// IsHub is whether the server has APIServices of a hub, or serves the group of one in another way.
func (r *Reader) IsHub(ctx context.Context) (bool, error) {
	const ours = "cluster.open-cluster-management.io"
	_, err := r.Get(ctx, apiServicesResource, "", "v1."+ours)
	switch {
	case err == nil:
		return true, nil
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return false, err
	}
	_, body, err := r.Raw(ctx, "/apis")
	if err != nil {
		return false, err
	}
	groups := metav1.APIGroupList{}
	if err := jsonInto(body, &groups); err != nil {
		return false, fmt.Errorf("/apis of %s is no list of groups", r.Config.Host)
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

// Get reads one object.
func (r *Reader) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	o, err := r.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		r.remember(o)
	}
	return o, err
}

// List reads all of a kind, page by page, up to a bound.
func (r *Reader) List(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (items []unstructured.Unstructured, seen bool) {
	options.Limit = pageSize
	for {
		page, err := r.Dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// It took so long that the first page is forgotten: what was read is still worth something.
			r.Unseen = append(r.Unseen, fmt.Sprintf("%s after the first %d: they change too fast", resource.Resource, len(items)))
			return items, false
		}
		if err != nil {
			r.Miss(resource.Resource, err)
			return items, false
		}
		for i := range page.Items {
			r.remember(&page.Items[i])
		}
		items = append(items, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return items, true
		}
		if len(items) >= cmp.Or(r.Most, mostRead) {
			r.Unseen = append(r.Unseen, fmt.Sprintf("%s after the first %d: no more are read", resource.Resource, len(items)))
			return items, false
		}
	}
}

// remember keeps what of an object may be in an archive.
func (r *Reader) remember(o *unstructured.Unstructured) {
	if kind := o.GetKind(); r.Keep && len(r.Objects[kind]) < mostKept {
		r.Objects[kind] = append(r.Objects[kind], diagnosis.Redacted(o))
	}
}

// Typed are objects as what they are. One that is not is left out, as a server of another version may have it.
func Typed[T any](items []unstructured.Unstructured, seen bool) diagnosis.List[T] {
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

// Named reads those objects of kinds that are expected, by their names: there may be many others.
func (r *Reader) Named(ctx context.Context, expected []*unstructured.Unstructured, resources map[string]schema.GroupVersionResource) diagnosis.List[*unstructured.Unstructured] {
	list := diagnosis.List[*unstructured.Unstructured]{Seen: true}
	objects, errs := make([]*unstructured.Unstructured, len(expected)), make([]error, len(expected))
	each(len(expected), func(i int) {
		want := expected[i]
		objects[i], errs[i] = r.Dynamic.Resource(resources[want.GetKind()]).Namespace(want.GetNamespace()).Get(ctx, want.GetName(), metav1.GetOptions{})
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
				r.Miss(name, errs[i])
			}
			missed[name] = true
		}
	}
	return list
}

// Client follows no server that sends elsewhere: the credentials would go along.
func Client(config *rest.Config) (*http.Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own, nil
}
