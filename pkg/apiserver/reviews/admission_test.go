// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

// TestPluginTimeouts_AreUnavailable: NamespaceLifecycle gets a namespace from the front that is not in the cache. If the front does not respond,
// this is not reported as an internal error, and the response does not contain the front's address.
func TestPluginTimeouts_AreUnavailable(t *testing.T) {
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
	slow := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	missing := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"there is none","code":404}`))
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   metav1.StatusReason
	}{
		"the front is down":          {hangUp, metav1.StatusReasonServiceUnavailable},
		"the front is slow":          {slow, metav1.StatusReasonServiceUnavailable},
		"there is no such namespace": {missing, metav1.StatusReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			front := httptest.NewServer(c.answer)
			t.Cleanup(front.Close)
			config := &rest.Config{Host: front.URL, Timeout: 200 * time.Millisecond}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			plugin, err := lifecycle.NewLifecycle(nil)
			if err != nil {
				t.Fatal(err)
			}
			cache := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
			plugin.SetExternalKubeInformerFactory(cache)
			plugin.SetExternalKubeClientSet(client)
			plugin.SetReadyFunc(func() bool { return true })
			err = admit(t, plugin, config)
			status := apierrors.APIStatus(nil)
			if s, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // What is answered is the error itself.
				status = s
			}
			if apierrors.ReasonForError(err) != c.want || status == nil {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if c.want == metav1.StatusReasonServiceUnavailable && status.Status().Details.RetryAfterSeconds != retryAfter {
				t.Errorf("clients are not asked to try again: %+v", status.Status())
			}
			for _, hidden := range []string{front.Listener.Addr().String(), "127.0.0.1", "http://"} {
				if text := err.Error(); strings.Contains(text, hidden) {
					t.Errorf("the answer has %q: %s", hidden, text)
				}
			}
		})
	}
}

func admit(t *testing.T, plugin admission.Interface, front *rest.Config) error {
	t.Helper()
	plugins, err := ReportUnansweredPlugins(plugin, front)
	if err != nil {
		t.Fatal(err)
	}
	kind, resource := schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "B"}, schema.GroupVersionResource{Group: "a", Version: "v1", Resource: "bs"}
	create := admission.NewAttributesRecord(nil, nil, kind, "n", "o", resource, "", admission.Create, nil, false, nil)
	return plugins.(admission.MutationInterface).Admit(t.Context(), create, nil)
}

// refusing rejects each request with an error.
type refusing struct {
	*admission.Handler
	err error
}

func (r refusing) Admit(_ context.Context, _ admission.Attributes, _ admission.ObjectInterfaces) error {
	return r.err
}

// TestAttack_FrontAddressInRejection verifies that a rejection that contains an address which a user has written stays a rejection.
func TestAttack_FrontAddressInRejection(t *testing.T) {
	front := &rest.Config{Host: "https://192.0.2.1:6443"}
	refused := apierrors.NewBadRequest("the label 192.0.2.1:6443 is too long")
	if got := admit(t, refusing{admission.NewHandler(admission.Create), refused}, front); got != error(refused) { //nolint:errorlint // It is the same.
		t.Errorf("got %v", got)
	}
}
