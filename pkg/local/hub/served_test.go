// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
)

// front serves what served requests. A kube-apiserver does not stay long enough in the states that the test must distinguish.
type front struct {
	available apiregistrationv1.ConditionStatus
	answers   int
	// discovered is the freshness of the version in aggregated discovery; empty if it is missing.
	discovered apidiscoveryv2.DiscoveryFreshness
}

// ServeHTTP implements http.Handler.
func (f front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, contentType, object := http.StatusOK, "application/json", any(nil)
	switch r.URL.Path {
	case "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com":
		object = apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.example.com"}, Status: apiregistrationv1.APIServiceStatus{
			Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: f.available}}}}
	case "/apis/example.com/v1":
		code, object = f.answers, metav1.APIResourceList{GroupVersion: "example.com/v1"}
	case "/apis":
		contentType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		list := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}}
		if f.discovered != "" {
			list.Items = []apidiscoveryv2.APIGroupDiscovery{{ObjectMeta: metav1.ObjectMeta{Name: "example.com"},
				Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: "v1", Freshness: f.discovered}}}}
		}
		object = list
	default:
		code = http.StatusNotFound
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func TestServed(t *testing.T) {
	const yes, no, current, stale = apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionFalse, apidiscoveryv2.DiscoveryFreshnessCurrent, apidiscoveryv2.DiscoveryFreshnessStale
	for name, test := range map[string]struct {
		front  front
		served bool
	}{
		"all is there":        {front{yes, http.StatusOK, current}, true},
		"not available":       {front{no, http.StatusOK, current}, false},
		"no answer":           {front{yes, http.StatusServiceUnavailable, current}, false},
		"not discovered":      {front{yes, http.StatusOK, ""}, false},
		"discovered long ago": {front{yes, http.StatusOK, stale}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.front)
			defer server.Close()
			client, err := aggregatorclient.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			want := apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.example.com"}, Spec: apiregistrationv1.APIServiceSpec{Group: "example.com", Version: "v1"}}
			if is, why := served(t.Context(), client, want); is != test.served || is == (why != "") {
				t.Errorf("%t (%s), want %t", is, why, test.served)
			}
		})
	}
}
