// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	restclient "k8s.io/client-go/rest"

	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
	clusterviewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/generated/openapi"
	"github.com/clusterhub/clusterhub/pkg/registry/view/filtered"
	visiblecluster "github.com/clusterhub/clusterhub/pkg/registry/view/managedcluster"
	visibleset "github.com/clusterhub/clusterhub/pkg/registry/view/managedclusterset"
)

// TestClusterView_ServesTypesOfOtherGroup verifies that a group with the types of another group is served under its own name, and that
// discovery lists neither create nor delete for it.
func TestClusterView_ServesTypesOfOtherGroup(t *testing.T) {
	config := genericapiserver.NewConfig(Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = "127.0.0.1:443"
	config.LoopbackClientConfig = &restclient.Config{}
	namer := apiopenapi.NewDefinitionNamer(Scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	server, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	v1, v1alpha1 := clusterviewv1.SchemeGroupVersion, clusterviewv1alpha1.SchemeGroupVersion
	group := newGroup(v1.Group)
	group.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{
		v1.Version:       {"managedclusters": visiblecluster.New(filtered.Config{}, Codecs.LegacyCodec(v1), visiblecluster.Stored{})},
		v1alpha1.Version: {"managedclustersets": visibleset.New(filtered.Config{}, Codecs.LegacyCodec(v1alpha1))},
	}
	if err := server.InstallAPIGroups(group); err != nil {
		t.Fatal(err)
	}
	verbs := map[schema.GroupVersion]string{v1: "[get list patch update watch]", v1alpha1: "[get list watch]"}
	for version, kind := range map[schema.GroupVersion]string{v1: "ManagedCluster", v1alpha1: "ManagedClusterSet"} {
		answer := httptest.NewRecorder()
		server.Handler.Director.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/apis/"+version.String(), nil))
		var list metav1.APIResourceList
		if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
			t.Fatalf("%v of %s", err, answer.Body)
		}
		if len(list.APIResources) != 1 {
			t.Fatalf("%s: got %+v", version, list.APIResources)
		}
		got := list.APIResources[0]
		if got.Kind != kind || got.SingularName != strings.ToLower(kind) || got.Namespaced || len(got.ShortNames) > 0 ||
			got.Verbs.String() != verbs[version] {
			t.Errorf("%s: got %+v", version, got)
		}
	}
}
