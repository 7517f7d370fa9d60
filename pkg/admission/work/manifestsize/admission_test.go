// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestsize

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/apis/work/validation"
)

// configMap returns a manifest of a ConfigMap of this size in bytes.
func configMap(name string, bytes int) work.Manifest {
	const form = `{"apiVersion":"v1","data":{"a":"%s"},"kind":"ConfigMap","metadata":{"name":"%s","namespace":"default"}}`
	fill := bytes - len(fmt.Sprintf(form, "", name))
	return work.Manifest{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil, form, strings.Repeat("x", fill), name)}}
}

func template(manifests ...work.Manifest) work.ManifestWorkSpec {
	return work.ManifestWorkSpec{Workload: work.ManifestsTemplate{Manifests: manifests}}
}

// kinds are the kinds that have manifests.
var kinds = map[string]func(...work.Manifest) runtime.Object{
	"manifestworks": func(m ...work.Manifest) runtime.Object {
		return &work.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web"}, Spec: template(m...)}
	},
	"manifestworkreplicasets": func(m ...work.Manifest) runtime.Object {
		s := &work.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web"}}
		s.Spec.ManifestWorkTemplate = template(m...)
		return s
	},
}

func validate(t *testing.T, most int, resource string, object, old runtime.Object, change ...func(*at.Request)) error {
	t.Helper()
	p := New()
	if most > 0 {
		p.Most = most
	}
	request := at.Request{Object: object, Old: old, Group: work.GroupName, Resource: resource}
	for _, c := range change {
		c(&request)
	}
	_, err := at.Validate(t, p, request.Attributes())
	return err
}

// TestValidate_NamesTheLargestManifests: the error is equal to upstream's, except for the names of the largest manifests.
func TestValidate_NamesTheLargestManifests(t *testing.T) {
	for resource, of := range kinds {
		if err := validate(t, 0, resource, of(configMap("a", 256_000), configMap("b", 256_000)), nil); err != nil {
			t.Errorf("%s up to the limit: %v", resource, err)
		}
		tooMuch := of(configMap("a", 100_000), configMap("b", 312_192), configMap("c", 100_000))
		const says = "the size of manifests is 512192 bytes which exceeds the 512000 limit: the largest are manifests[1] ConfigMap default/b (312192 bytes), " +
			"manifests[0] ConfigMap default/a (100000 bytes), manifests[2]"
		for name, err := range map[string]error{
			"create":        validate(t, 0, resource, tooMuch, nil),
			"update":        validate(t, 0, resource, tooMuch, of(configMap("a", 1_000))),
			"dry run":       validate(t, 0, resource, tooMuch, nil, func(r *at.Request) { r.DryRun = true }),
			"a subresource": validate(t, 0, resource, tooMuch, of(configMap("a", 1_000)), func(r *at.Request) { r.Subresource = "status" }),
		} {
			var status apierrors.APIStatus
			if !apierrors.IsBadRequest(err) || !errors.As(err, &status) || !strings.Contains(err.Error(), says) || len(status.Status().Details.Causes) != 1 ||
				!strings.HasSuffix(status.Status().Details.Causes[0].Field, "workload.manifests") {
				t.Errorf("%s, %s: got %v, want a 400 with the field that says %s", resource, name, err, says)
			}
		}
	}
	if err := validate(t, 0, "manifestworks", kinds["manifestworks"](work.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(strings.Repeat("x", 600_000))}}), nil); !apierrors.IsBadRequest(err) {
		t.Errorf("what is no object: %v", err)
	}
}

func TestValidate_LimitIsConfigurable(t *testing.T) {
	for resource, of := range kinds {
		if err := validate(t, 600_000, resource, of(configMap("a", 600_000)), nil); err != nil {
			t.Errorf("%s: %v", resource, err)
		}
		err := validate(t, 2_000, resource, of(configMap("a", 2_001)), nil)
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "the size of manifests is 2001 bytes which exceeds the 2000 limit") {
			t.Errorf("%s: %v", resource, err)
		}
		// What was stored under another limit may stay, so that its finalizers can be removed, and may shrink.
		stored := of(configMap("a", 3_000))
		for name, size := range map[string]int{"unchanged": 3_000, "smaller": 2_500} {
			if err := validate(t, 2_000, resource, of(configMap("a", size)), stored); err != nil {
				t.Errorf("%s, %s: %v", resource, name, err)
			}
		}
		if err := validate(t, 2_000, resource, of(configMap("a", 3_001)), stored); !apierrors.IsBadRequest(err) {
			t.Errorf("%s, larger: %v", resource, err)
		}
	}
}

// TestCheckMost_ReservesSpace verifies that the limit of other plugins has room for the largest manifests with the largest status.
func TestCheckMost_ReservesSpace(t *testing.T) {
	const others, etcd = 90 << 10, 1536 << 10
	if rest := objectsize.WorkLimit - GreatestMost - validation.StatusLimit; rest < others {
		t.Errorf("%d bytes are left of the bound on objects", rest)
	}
	if rest := validation.MostWeight - GreatestMost - validation.StatusLimit; rest < others {
		t.Errorf("%d bytes are left of what is looked at", rest)
	}
	if objectsize.WorkLimit+objectsize.Reserve+others > etcd {
		t.Error("etcd does not take what is let through")
	}
	for most, ok := range map[int]bool{-1: false, 0: false, MinMost - 1: false, MinMost: true, DefaultMost: true, GreatestMost: true, GreatestMost + 1: false} {
		if err := CheckMost(most); ok != (err == nil) {
			t.Errorf("%d: %v", most, err)
		}
	}
}
