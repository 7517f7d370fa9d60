// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeservice

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

// packed returns an archive of one file.
func packed(t *testing.T, manifests string) []byte {
	t.Helper()
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	archive := tar.NewWriter(zip)
	if err := archive.WriteHeader(&tar.Header{Name: "all.yaml", Mode: 0o644, Size: int64(len(manifests)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte(manifests)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s}
---
`

func service(t *testing.T, manifests string) *edge.EdgeService {
	s := &edge.EdgeService{
		ObjectMeta: metav1.ObjectMeta{Namespace: registrytest.Namespace},
		Spec: edge.EdgeServiceSpec{
			URL: "web", Version: "1.0.0", Arch: "amd64", Public: true,
			ClusterDeployment: &edge.ClusterDeployment{OperatorYamlArchive: packed(t, manifests)},
		},
	}
	s.Name = edge.ServiceName(s.Spec.URL, s.Spec.Version, s.Spec.Arch)
	return s
}

func TestStorage(t *testing.T) {
	// The suite creates objects with many names.
	anyName := *Kind
	anyName.Validate = func(object *edge.EdgeService) field.ErrorList {
		return slices.DeleteFunc(Kind.Validate(object), func(e *field.Error) bool { return strings.Contains(e.Detail, "is derived from") })
	}
	registrytest.Suite[*edge.EdgeService]{
		Kind:  &anyName,
		Valid: func() *edge.EdgeService { return service(t, fmt.Sprintf(configMap, "a", "blue")) },
		Invalid: []func(*edge.EdgeService){
			func(s *edge.EdgeService) { s.Spec.ClusterDeployment.OperatorYamlArchive = []byte("no archive") },
			func(s *edge.EdgeService) { s.Spec.ClusterDeployment.OperatorYamlArchive = make([]byte, 512_001) },
			func(s *edge.EdgeService) { s.Spec.ClusterDeployment = nil },
		},
		Change: func(s *edge.EdgeService) { s.Spec.Public = false },
		InvalidChanges: []func(*edge.EdgeService){
			func(s *edge.EdgeService) { s.Spec.Version = "2.0.0" },
			func(s *edge.EdgeService) { s.Spec.ClusterDeployment.OperatorYamlArchive = packed(t, "a: b") },
		},
		Matching: []fields.Set{{"spec.url": "web"}, {"spec.version": "1.0.0"}, {"spec.arch": "amd64"}},
		Others:   []fields.Set{{"spec.url": "web2"}, {"spec.version": "1.0"}, {"spec.arch": "arm64"}},
		Status: func(s *edge.EdgeService) {
			s.Status = edge.EdgeServiceStatus{ObservedGeneration: 1, Objects: 1, EmbeddedNamespace: "blue", Namespaces: []string{"blue"}}
		},
		BadStatus: func(s *edge.EdgeService) {
			s.Status = edge.EdgeServiceStatus{ObservedGeneration: 7, EmbeddedNamespace: "red"}
		},
		Columns:    "Name/0 Service/0 Version/0 Arch/0 Public/0 For/0 Age/0 Namespace/1 Objects/1",
		Cells:      "web--1.0.0--amd64|web|1.0.0|amd64|true|cluster|<unknown>|blue|1",
		ShortNames: "esvc",
	}.Run(t)
}

// TestStatus: decisions are based on the content of the stored archive, after every kind of write.
func TestStatus(t *testing.T) {
	r := registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, nil)
	ctx := registrytest.Context(r)
	want := func(what string, s *edge.EdgeService, generation int64, objects, more int32, embedded string, namespaces, others int) {
		t.Helper()
		got := s.Status
		if got.ObservedGeneration != generation || got.Objects != objects || got.More != more || got.EmbeddedNamespace != embedded ||
			len(got.Namespaces) != namespaces || len(got.ClusterScoped) != others {
			t.Errorf("%s: the status is %+v", what, got)
		}
	}
	s := registrytest.Create(t, ctx, r, service(t, fmt.Sprintf(configMap, "a", "blue")))
	want("created", s, 1, 1, 0, "blue", 1, 0)

	update := func(change func(*edge.EdgeService)) *edge.EdgeService {
		t.Helper()
		s = s.DeepCopy()
		change(s)
		updated, err := registrytest.Update(ctx, r, s)
		if err != nil {
			t.Fatal(err)
		}
		s = updated
		return s
	}
	want("with a label", update(func(s *edge.EdgeService) { s.Labels = map[string]string{"a": "b"} }), 1, 1, 0, "blue", 1, 0)
	want("with another policy", update(func(s *edge.EdgeService) { s.Spec.Public = false }), 1, 1, 0, "blue", 1, 0)

	var many strings.Builder
	for i := range 70 {
		fmt.Fprintf(&many, configMap, fmt.Sprint("a", i), fmt.Sprint("n", i))
		fmt.Fprintf(&many, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: c%d}\n---\n", i)
	}
	want("with many objects", update(func(s *edge.EdgeService) {
		s.Spec.ClusterDeployment.OperatorYamlArchive = packed(t, many.String())
	}), 3, 140, 12, "", 64, 64)
	want("for devices", update(func(s *edge.EdgeService) {
		s.Spec.Deployment, s.Spec.ClusterDeployment = &runtime.RawExtension{Raw: []byte(`{}`)}, nil
	}), 0, 0, 0, "", 0, 0)

	s.Spec.ClusterDeployment = &edge.ClusterDeployment{OperatorYamlArchive: []byte("password: secret")}
	s.Status.ObservedGeneration = 9
	_, err := registrytest.Update(ctx, r, s)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "operatorYamlArchive") || strings.Contains(err.Error(), "secret") {
		t.Errorf("an archive that cannot be read, with a status that says that it was: %v", err)
	}
	another := service(t, fmt.Sprintf(configMap, "a", "blue"))
	another.Name = "web"
	if _, err := r.Create(ctx, another, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "web--1.0.0--amd64") {
		t.Errorf("a service by another name: %v", err)
	}
}

// TestAuthor: users who may change a service decide what its policies deploy, so no user can set the author.
func TestAuthor(t *testing.T) {
	r := registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, nil)
	as := func(name string) context.Context {
		return request.WithUser(registrytest.Context(r), &user.DefaultInfo{Name: name})
	}
	s := service(t, fmt.Sprintf(configMap, "a", "blue"))
	s.Annotations = map[string]string{edge.AuthorAnnotation: `{"username":"admin"}`}
	s = registrytest.Create(t, as("ann"), r, s)
	for _, step := range []struct {
		user, want string
		change     func(*edge.EdgeService)
	}{
		{"ann", "ann", func(*edge.EdgeService) {}},
		{"eve", "ann", func(s *edge.EdgeService) { s.Labels = map[string]string{"a": "b"} }},
		{"eve", "ann", func(s *edge.EdgeService) { delete(s.Annotations, edge.AuthorAnnotation) }},
		{"eve", "eve", func(s *edge.EdgeService) { s.Spec.Public = false }},
		{"eve", "eve", func(s *edge.EdgeService) { s.Annotations[edge.AuthorAnnotation] = `{"username":"ann"}` }},
		{"bob", "bob", func(s *edge.EdgeService) {
			s.Spec.ClusterDeployment.OperatorYamlArchive = packed(t, fmt.Sprintf(configMap, "b", "blue"))
		}},
	} {
		updated := s.DeepCopy()
		step.change(updated)
		var err error
		s, err = registrytest.Update(as(step.user), r, updated)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := s.Annotations[edge.AuthorAnnotation], fmt.Sprintf(`{"username":%q}`, step.want); got != want {
			t.Errorf("after a write of %s the author is %s, expected %s", step.user, got, want)
		}
	}
}
