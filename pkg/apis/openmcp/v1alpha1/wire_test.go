// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/install"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme, serializer.EnableStrict)
)

func init() { install.Install(scheme) }

// throughTheServer returns the JSON that a server stores of JSON.
func throughTheServer(t *testing.T, kind, fields string) (string, error) {
	t.Helper()
	data := `{"apiVersion":"clusters.openmcp.cloud/v1alpha1","kind":"` + kind + `",` + fields + `}`
	object, err := runtime.Decode(codecs.UniversalDecoder(openmcp.SchemeGroupVersion), []byte(data))
	if err != nil {
		return "", err
	}
	out, err := runtime.Encode(codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), object)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), nil
}

// A default is for what is not given, as in a CustomResourceDefinition: clients that have no pointers send "".
func TestOIDC_DefaultClaims(t *testing.T) {
	for claims, want := range map[string]string{
		``: `"groupsClaim":"groups","usernameClaim":"sub",`,
		`"groupsClaim":null,"usernameClaim":null,`:  `"groupsClaim":"groups","usernameClaim":"sub",`,
		`"groupsClaim":"","usernameClaim":"",`:      `"groupsClaim":"","usernameClaim":"",`,
		`"groupsClaim":"g","usernameClaim":"mail",`: `"groupsClaim":"g","usernameClaim":"mail",`,
	} {
		got, err := throughTheServer(t, "AccessRequest", `"spec":{"oidc":{"name":"corp","issuer":"https://a","clientID":"b",`+claims+`"roleBindings":[]}}`)
		if err != nil || !strings.Contains(got, `"clientID":"b",`+want+`"roleBindings":[]`) {
			t.Errorf("%s: got %s, %v", claims, got, err)
		}
	}
}

func TestWire_NilListIsOmitted(t *testing.T) {
	for fields, want := range map[string]string{
		`"spec":{"supportedVersions":[]}`:   `"supportedVersions":[]`,
		`"spec":{"supportedVersions":null}`: `"supportedVersions":null`,
		`"spec":{}`:                         `"supportedVersions":null`,
	} {
		got, err := throughTheServer(t, "ClusterProfile", fields)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, %v", fields, got, err)
		}
	}
}

func TestWire_EmptyStatusIsOmitted(t *testing.T) {
	for _, kind := range []string{"Cluster", "ClusterRequest", "AccessRequest"} {
		got, err := throughTheServer(t, kind, `"status":{"observedGeneration":0,"phase":""}`)
		if err != nil || strings.Contains(got, "status") {
			t.Errorf("%s: got %s, %v", kind, got, err)
		}
		got, err = throughTheServer(t, kind, `"status":{"phase":"Pending"}`)
		if err != nil || !strings.HasSuffix(got, `"status":{"observedGeneration":0,"phase":"Pending"}}`) {
			t.Errorf("%s: got %s, %v", kind, got, err)
		}
	}
}

func TestWire_PreservesProviderStatus(t *testing.T) {
	const own = `{"a":{"b":[1,null,{"c":"d"}]},"kind":"x"}`
	got, err := throughTheServer(t, "Cluster", `"status":{"providerStatus":`+own+`}`)
	if err != nil || !strings.Contains(got, `"providerStatus":`+own) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestWire_RejectsUnknownFields(t *testing.T) {
	for fields, kind := range map[string]string{
		`"spec":{"environment":"dev"}`: "Cluster", `"spec":{"permissions":[]}`: "AccessRequest",
		`"spec":{"oidc":{"groupClaim":"x"}}`: "AccessRequest", `"status":{"message":"x"}`: "ClusterRequest",
		`"spec":{"ttl":"soon"}`: "AccessRequest", `"spec":{"providerRef":{"namespace":"x"}}`: "ClusterProfile",
	} {
		if got, err := throughTheServer(t, kind, fields); err == nil {
			t.Errorf("%s: %s is taken: %s", kind, fields, got)
		}
	}
}

func TestFieldSelectors_MatchClients(t *testing.T) {
	for kind, known := range map[string]string{
		"ClusterProfile": "metadata.name spec.providerRef.name spec.providerConfigRef.name",
		"Cluster":        "metadata.name metadata.namespace spec.profile",
		"ClusterRequest": "metadata.name metadata.namespace spec.purpose status.phase",
		"AccessRequest":  "metadata.name metadata.namespace status.phase spec.clusterRef.name spec.clusterRef.namespace",
	} {
		gvk := v1alpha1.SchemeGroupVersion.WithKind(kind)
		for _, label := range strings.Fields(known) {
			if l, v, err := scheme.ConvertFieldLabel(gvk, label, "x"); err != nil || l != label || v != "x" {
				t.Errorf("%s by %s: %q, %q, %v", kind, label, l, v, err)
			}
		}
		_, _, err := scheme.ConvertFieldLabel(gvk, "spec.nothing", "x")
		if err == nil || !strings.Contains(err.Error(), `"spec.nothing" is not a field selector of `+strings.ToLower(kind)+"s") {
			t.Errorf("%s by spec.nothing: %v", kind, err)
		}
	}
}
