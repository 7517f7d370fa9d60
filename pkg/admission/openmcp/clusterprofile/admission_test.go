// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// profiles are the profiles in a cache, and in the store below it.
type profiles struct {
	cached, stored map[string]*openmcp.ClusterProfile
	err            error
	live           int
}

func (p *profiles) Get(_ context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	from := p.cached
	if options.ResourceVersion != "0" {
		from = p.stored
		p.live++
	}
	if p.err != nil {
		return nil, p.err
	}
	if found, ok := from[name]; ok {
		return found, nil
	}
	return nil, apierrors.NewNotFound(openmcp.Resource("clusterprofiles"), name)
}

func profile(versions ...string) *openmcp.ClusterProfile {
	p := &openmcp.ClusterProfile{Spec: openmcp.ClusterProfileSpec{SupportedVersions: []openmcp.SupportedK8sVersion{}}}
	for _, v := range versions {
		version, deprecated := strings.CutSuffix(v, " deprecated")
		p.Spec.SupportedVersions = append(p.Spec.SupportedVersions, openmcp.SupportedK8sVersion{Version: version, Deprecated: deprecated})
	}
	return p
}

func synced(all map[string]*openmcp.ClusterProfile) *profiles {
	return &profiles{cached: all, stored: all}
}

func cluster(profile, version string) *openmcp.Cluster {
	return &openmcp.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"},
		Spec:       openmcp.ClusterSpec{Profile: profile, Kubernetes: openmcp.K8sConfiguration{Version: version}},
	}
}

func attributes(object, old runtime.Object, resource, subresource string) admission.Attributes {
	gv := openmcp.SchemeGroupVersion
	gv.Version = "v1alpha1"
	operation := admission.Update
	if old == nil {
		operation = admission.Create
	}
	return admission.NewAttributesRecord(object, old, gv.WithKind("Cluster"), "ns", "c", gv.WithResource(resource), subresource,
		operation, nil, false, at.User)
}

func validate(t *testing.T, p *profiles, a admission.Attributes) (at.Warnings, error) {
	t.Helper()
	plugin := New()
	if p != nil {
		plugin.Profiles = p
	}
	var warnings at.Warnings
	err := plugin.Validate(warning.WithWarningRecorder(t.Context(), &warnings), a, nil)
	return warnings, err
}

func TestValidate_NewClusterMustMatchProfile(t *testing.T) {
	all := synced(map[string]*openmcp.ClusterProfile{
		"some": profile("1.33.3", "1.32.8 deprecated"), "any": profile(),
	})
	for _, c := range []struct{ profile, version, says, warns string }{
		{profile: "some", version: "1.33.3"},
		{profile: "some"},
		{profile: "any", version: "1.2.3-x"},
		{profile: "some", version: "1.32.8", warns: `1.32.8 is deprecated in the ClusterProfile "some"`},
		{profile: "some", version: "1.33", says: `spec.kubernetes.version: Unsupported value: "1.33": supported values: "1.33.3", "1.32.8"`},
		{profile: "none", says: `spec.profile: Invalid value: "none": no ClusterProfile has this name`},
		{profile: "none", version: "1.33.3", says: `spec.profile: Invalid value: "none"`},
		{}, // the registry rejects it
	} {
		warnings, err := validate(t, all, attributes(cluster(c.profile, c.version), nil, "clusters", ""))
		if c.says == "" && err != nil || c.says != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q %q: got %v", c.profile, c.version, err)
		}
		if got := strings.Join(warnings, " "); !strings.Contains(got, c.warns) || (got == "") != (c.warns == "") {
			t.Errorf("%q %q: warned %q", c.profile, c.version, got)
		}
	}
}

func TestValidate_VersionChangeMustMatchProfile(t *testing.T) {
	all := synced(map[string]*openmcp.ClusterProfile{"some": profile("1.33.3")})
	for _, c := range []struct {
		profile, from, to string
		refused           bool
	}{
		{"some", "1.30.0", "1.30.0", false}, // no longer offered
		{"gone", "1.30.0", "1.30.0", false},
		{"gone", "1.30.0", "", false},
		{"some", "1.30.0", "1.33.3", false},
		{"some", "1.33.3", "1.30.0", true},
		{"some", "", "1.30.0", true},
		{"gone", "1.30.0", "1.33.3", true},
	} {
		_, err := validate(t, all, attributes(cluster(c.profile, c.to), cluster(c.profile, c.from), "clusters", ""))
		if c.refused != apierrors.IsInvalid(err) || c.refused != (err != nil) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func TestValidate_StaleCacheRejectsNothing(t *testing.T) {
	for what, p := range map[string]*profiles{
		"a new profile": {stored: map[string]*openmcp.ClusterProfile{"some": profile("1.33.3")}},
		"a new version": {cached: map[string]*openmcp.ClusterProfile{"some": profile("1.32.8")},
			stored: map[string]*openmcp.ClusterProfile{"some": profile("1.32.8", "1.33.3")}},
	} {
		if _, err := validate(t, p, attributes(cluster("some", "1.33.3"), nil, "clusters", "")); err != nil || p.live != 1 {
			t.Errorf("%s: %v after %d live reads", what, err, p.live)
		}
	}
	all := synced(map[string]*openmcp.ClusterProfile{"some": profile("1.33.3")})
	if _, err := validate(t, all, attributes(cluster("some", "1.33.3"), nil, "clusters", "")); err != nil || all.live != 0 {
		t.Errorf("what is in the cache: %v after %d live reads", err, all.live)
	}
}

func TestValidate_RejectsUnreadableObjects(t *testing.T) {
	for what, p := range map[string]*profiles{"no profiles yet": nil, "no store": {err: errors.New("etcd is away")}} {
		if _, err := validate(t, p, attributes(cluster("some", ""), nil, "clusters", "")); !apierrors.IsInternalError(err) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := validate(t, synced(nil), attributes(at.Cluster("c1"), nil, "clusters", "")); !apierrors.IsInternalError(err) {
		t.Errorf("what is no cluster: got %v", err)
	}
}

func TestValidate_IgnoresOtherResources(t *testing.T) {
	for what, a := range map[string]admission.Attributes{
		"the status":     attributes(cluster("none", "1"), cluster("none", ""), "clusters", "status"),
		"other clusters": at.Request{Object: at.Cluster("c1")}.Attributes(),
		"a request":      attributes(&openmcp.ClusterRequest{}, nil, "clusterrequests", ""),
	} {
		if _, err := validate(t, nil, a); err != nil {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if p := New(); p.Handles(admission.Delete) || p.Handles(admission.Connect) {
		t.Error("handles what it has no say in")
	}
}
