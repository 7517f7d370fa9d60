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
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// MaxRead is the time limit of a request: a server that hangs is a finding, too.
	MaxRead = 15 * time.Second
	// maxRead is the largest number of objects of a kind that are read, and maxKept of those in an archive.
	maxRead, maxKept = 20000, 1000
	pageSize         = 500
	// maxText is the largest number of bytes that are read of a response that is not an object.
	maxText = 16 << 20
)

// apiServicesResource is read by the doctor.
var apiServicesResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Reader reads with the permissions of the user. What the user may not see is noted, and is considered neither right nor wrong.
type Reader struct {
	Config  *rest.Config
	Dynamic dynamic.Interface
	HTTP    *http.Client

	// Skew is the time by which the clock of the server is behind the local one, and Within the precision of that.
	Skew, Within time.Duration
	// Version is the version of the server, and Serving when its certificate expires.
	Version string
	Serving *time.Time
	// Authorities are the hashes of the certificates by which the server's certificate was verified.
	Authorities []string

	// Unseen lists what could not be read, and why.
	Unseen []string
	// Most is the largest number of objects of a kind that are read, or 0 for the default.
	Most int
	// Collect adds what is read to Objects, which are the parts of objects that may be in an archive.
	Collect bool
	Objects map[string][]any
}

// NewReader returns a reader after a first request to the server. With keep, the reader collects objects for an archive.
func NewReader(ctx context.Context, config *rest.Config, collect bool) (*Reader, error) {
	r := &Reader{Config: config, Collect: collect, Objects: map[string][]any{}}
	var err error
	r.HTTP, err = Client(config)
	if err != nil {
		return nil, err
	}
	r.Dynamic, err = dynamic.NewForConfigAndClient(config, r.HTTP)
	if err != nil {
		return nil, err
	}
	return r, r.greet(ctx)
}

// greet sends a harmless request to the server, to read its clock and its certificate.
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
		// The header has whole seconds: on average, the time is half a second later.
		r.Skew = asked.Add(took / 2).Sub(date.Add(time.Second / 2))
		r.Within = took/2 + time.Second/2
	} else {
		r.Unseen = append(r.Unseen, "the clock of the server: its responses have no Date header")
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

// Now returns the time of the server.
func (r *Reader) Now() time.Time { return time.Now().Add(-r.Skew) }

// Raw gets a path of the server. It returns no error for a response with an error status.
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
	body, err := io.ReadAll(io.LimitReader(response.Body, maxText))
	return response, body, err
}

// textOf returns a string field of a JSON object, or "".
func textOf(data []byte, name string) string {
	object := map[string]any{}
	if err := jsonInto(data, &object); err != nil {
		return ""
	}
	text, _ := object[name].(string)
	return text
}

// Miss notes what could not be read, and why.
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

// IsHub reports whether the server has APIServices of a hub, or serves the group of one in another way.
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
		return false, fmt.Errorf("/apis of %s is not a list of API groups", r.Config.Host)
	}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			// A managed cluster has ClusterClaims of the group, in v1alpha1.
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

// List reads all objects of a kind, page by page, up to a bound.
func (r *Reader) List(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (items []unstructured.Unstructured, seen bool) {
	options.Limit = pageSize
	for {
		page, err := r.Dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			// The continue token has expired. What was read so far is still useful.
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
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return items, true
		}
		if len(items) >= cmp.Or(r.Most, maxRead) {
			r.Unseen = append(r.Unseen, fmt.Sprintf("%s after the first %d: no more are read", resource.Resource, len(items)))
			return items, false
		}
	}
}

// remember collects the parts of an object that may be in an archive.
func (r *Reader) remember(o *unstructured.Unstructured) {
	if kind := o.GetKind(); r.Collect && len(r.Objects[kind]) < maxKept {
		r.Objects[kind] = append(r.Objects[kind], doctor.Redacted(o))
	}
}

// Typed converts objects to their types. It omits an object that cannot be converted, which a server of another version may have.
func Typed[T any](items []unstructured.Unstructured, seen bool) doctor.List[T] {
	list := doctor.List[T]{Seen: seen}
	for i := range items {
		var object T
		if runtime.DefaultUnstructuredConverter.FromUnstructured(items[i].Object, &object) == nil {
			list.Items = append(list.Items, object)
		}
	}
	return list
}

// atOnce is the largest number of concurrent requests: a hub may be far away.
const atOnce = 16

// each calls a function for the numbers below n, some of them concurrently.
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

// Named reads the expected objects of some kinds by their names: there may be many others.
func (r *Reader) Named(ctx context.Context, expected []*unstructured.Unstructured, resources map[string]schema.GroupVersionResource) doctor.List[*unstructured.Unstructured] {
	list := doctor.List[*unstructured.Unstructured]{Seen: true}
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
			list.Seen = false
			if !missed[name] {
				r.Miss(name, errs[i])
			}
			missed[name] = true
		}
	}
	return list
}

// Client returns a client that follows no redirects: these would get the credentials.
func Client(config *rest.Config) (*http.Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own, nil
}
