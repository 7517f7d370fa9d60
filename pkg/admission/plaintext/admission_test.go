// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package plaintext_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/plaintext"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// run runs admission for a request.
func run(request at.Request) error {
	p, a := plaintext.New(), request.Attributes()
	if err := p.Admit(nil, a, nil); err != nil { //nolint:staticcheck // it is not used
		return err
	}
	return p.Validate(nil, a, nil) //nolint:staticcheck // it is not used
}

func TestAdmission_RejectsControlCharacters(t *testing.T) {
	annotated := func(text string) *cluster.ManagedCluster {
		c := at.Cluster("c1")
		c.Annotations = map[string]string{"a": text}
		return c
	}
	for name, c := range map[string]struct {
		now, before runtime.Object
		want        string // part of the error; empty if the request is admitted
	}{
		"plain":            {now: annotated("Größe\n\tя"), before: at.Cluster("c1")},
		"an escape":        {now: annotated("\x1b[2J"), before: at.Cluster("c1"), want: `metadata.annotations[a]: Invalid value: "\\x1b[2J": must not have the control character U+001B: remove it`},
		"C1":               {now: annotated("\u009b2J"), want: "U+009B"},
		"bidi":             {now: annotated("\u202e"), want: "U+202E"},
		"invalid UTF-8":    {now: annotated("\xff"), want: "U+FFFD"},
		"one that is kept": {now: annotated("\x1b"), before: annotated("\x1b")},
		"one that changes": {now: annotated("\x1b1"), before: annotated("\x1b"), want: "U+001B"},
		"in a key": {now: func() runtime.Object {
			c := at.Cluster("c1")
			c.Annotations = map[string]string{"a\x1b": ""}
			return c
		}(), want: `metadata.annotations[a\x1b]`},
		"in a list": {now: func() runtime.Object {
			c := at.Cluster("c1")
			c.Spec.ManagedClusterClientConfigs = []cluster.ClientConfig{{}, {URL: "https://\u2028"}}
			return c
		}(), want: "spec.managedClusterClientConfigs[1].url"},
		"many": {now: func() runtime.Object {
			c := at.Cluster("c1")
			for range 1000 {
				c.Spec.Taints = append(c.Spec.Taints, cluster.Taint{Value: "\x00"})
			}
			return c
		}(), want: "spec.taints[7].value"},
	} {
		t.Run(name, func(t *testing.T) {
			request := at.Request{Object: c.now, Old: c.before}
			err := run(request)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\x00\x1b\u009b\u2028\u202e")) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Count(err.Error(), "Invalid value") > 8 {
				t.Errorf("it is too long: %v", err)
			}
		})
	}
}

// TestAdmission_ReplacesInStatus: the writers of a status report what other users have written, and cannot change it.
func TestAdmission_ReplacesInStatus(t *testing.T) {
	now, before := at.Cluster("c1"), at.Cluster("c1")
	now.Status.ClusterClaims = []cluster.ManagedClusterClaim{{Name: "a", Value: "x\u009by"}}
	now.Status.Conditions = []metav1.Condition{{Type: "T", Message: "1\n2\x1b"}}
	now.Status.Capacity = cluster.ResourceList{"cpu\u202e": {}}
	if err := run(at.Request{Object: now, Old: before, Subresource: "status"}); err != nil {
		t.Fatal(err)
	}
	_, ok := now.Status.Capacity["cpu\ufffd"]
	if now.Status.ClusterClaims[0].Value != "x\ufffdy" || now.Status.Conditions[0].Message != "1\n2\ufffd" || !ok || len(now.Status.Capacity) != 1 {
		t.Errorf("it is %+v", now.Status)
	}
}

// TestAdmission_Manifests: an object in a work may have an escape sequence in a script, but no character that YAML parsers reject.
func TestAdmission_Manifests(t *testing.T) {
	for text, refused := range map[string]bool{`"\u001b[1m"`: false, `"\u009b"`: false, "\"\u0085\u2028\"": false, "\"\u009b\"": true, "\"\x7f\"": true, "\"\xff\"": true} {
		w := &work.ManifestWork{}
		w.Spec.Workload.Manifests = []work.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"data":{"k":` + text + `}}`)}}}
		err := run(at.Request{Object: w})
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "spec.workload.manifests[0]") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// TestAdmission_IgnoresUnstoredRequests verifies that requests that are not stored are ignored, such as a request for a token.
func TestAdmission_IgnoresUnstoredRequests(t *testing.T) {
	c := at.Cluster("c1")
	c.Annotations = map[string]string{"a": "\x1b"}
	a := admission.NewAttributesRecord(c, nil, cluster.SchemeGroupVersion.WithKind("ManagedCluster"), "", "c1", cluster.Resource("managedclusters").WithVersion("v1"), "token",
		admission.Create, nil, false, nil)
	if err := plaintext.New().Validate(t.Context(), a, nil); err != nil {
		t.Error(err)
	}
}
