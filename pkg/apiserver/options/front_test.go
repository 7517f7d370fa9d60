// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net/http"
	"testing"

	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/apiserver"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/tokentest"
)

// TestApplyRecommended_FrontClientsReloadToken verifies that all clients of the front reload the token, including those that the generic
// options would create.
func TestApplyRecommended_FrontClientsReloadToken(t *testing.T) {
	g := tokentest.New(t)
	version := g.Answer
	g.Answer = func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			version(w, r)
		case "/apis/authentication.k8s.io/v1/tokenreviews":
			_, _ = w.Write([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"u"}}}`))
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
			_, _ = w.Write([]byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}`))
		default:
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"NamespaceList","metadata":{"resourceVersion":"1"},"items":[]}`))
		}
	}
	path := g.Path("kubeconfig")
	front, err := command.RESTConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	o := NewOptions()
	o.Recommended.CoreAPI.CoreAPIKubeconfigPath = path
	o.Recommended.Authentication.RemoteKubeConfigFile, o.Recommended.Authorization.RemoteKubeConfigFile = path, path
	o.Recommended.Authentication.SkipInClusterLookup = true
	recommended := genericoptions.RecommendedOptions{
		Authentication: o.Recommended.Authentication, EgressSelector: o.Recommended.EgressSelector, Traces: o.Recommended.Traces,
		Features: genericoptions.NewFeatureOptions(), CoreAPI: o.Recommended.CoreAPI,
		ExtraAdmissionInitializers: o.Recommended.ExtraAdmissionInitializers,
	}
	recommended.Features.EnablePriorityAndFairness = false
	generic := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	if err := applyRecommended(recommended, generic, front); err != nil {
		t.Fatal(err)
	}

	client := kubernetes.NewForConfigOrDie(generic.ClientConfig)
	g.Follows("the clients of the server", func() error { return tokentest.Asks(client) })

	n := 0
	g.Follows("authentication", func() error {
		n++
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://hub/apis", nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", fmt.Sprintf("Bearer of-a-user-%d", n))
		_, ok, err := generic.Authentication.Authenticator.AuthenticateRequest(request)
		if err == nil && !ok {
			err = fmt.Errorf("it was not authenticated")
		}
		return err
	})

	reviews, err := reviewClient(o.Recommended.Authorization)
	if err != nil {
		t.Fatal(err)
	}
	g.Follows("authorization", func() error { return reviews.RESTClient().Get().AbsPath("/version").Do(t.Context()).Error() })

	// Informers retry by themselves.
	g.Put("token", "three\n")
	g.Take("three")
	namespaces := generic.SharedInformerFactory.Core().V1().Namespaces()
	synced := namespaces.Informer().HasSynced
	generic.SharedInformerFactory.Start(t.Context().Done())
	for kind, ok := range generic.SharedInformerFactory.WaitForCacheSync(t.Context().Done()) {
		if !ok {
			t.Errorf("%s: not synchronized", kind)
		}
	}
	if refused := g.Take("three"); !synced() || refused > 2 {
		t.Errorf("the informers have an answer: %t, after %d refusals", synced(), refused)
	}
}
