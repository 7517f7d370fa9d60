// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const label, origin = "example.com/owner", "example.com/uid"

var us = Owner{Labels: map[string]string{label: "us"}, Origin: map[string]string{origin: "2"}}

// cluster is a cluster with other clients.
type cluster struct {
	client.WithWatch
	t *testing.T
	// behind is the cluster for other clients.
	behind client.WithWatch
	// writes are the requested writes.
	// meanwhile contains what other clients do before each of them.
	writes    []string
	meanwhile map[string]func()
	// selectsNone makes lists ignore selectors.
	selectsNone bool
	made        int
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	c := &cluster{t: t, meanwhile: map[string]func(){},
		behind: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithGlobalResourceVersionCounter().
			WithTypeConverters(managedfields.NewDeducedTypeConverter()).Build()}
	for _, object := range append([]client.Object{namespace("kube-system")}, objects...) {
		c.put(object)
	}
	c.WithWatch = interceptor.NewClient(c.behind, interceptor.Funcs{
		// Like servers, and unlike fakes: set UIDs, and require namespaces to exist.
		Create: func(ctx context.Context, behind client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			c.write("create", object)
			if err := c.hasNamespace(object); err != nil {
				return err
			}
			object.SetUID(c.newUID())
			return behind.Create(ctx, object, opts...)
		},
		Update: func(ctx context.Context, behind client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			c.write("update", object)
			return behind.Update(ctx, object, opts...)
		},
		Apply: func(ctx context.Context, behind client.WithWatch, given runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			object := &unstructured.Unstructured{}
			var err error
			object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(given)
			if err != nil {
				return err
			}
			c.write("apply", object)
			if err := c.hasNamespace(object); err != nil {
				return err
			}
			return behind.Apply(ctx, given, opts...)
		},
		Delete: func(ctx context.Context, behind client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			c.write("delete", object)
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			have := c.get(object)
			if options.Preconditions == nil || options.Preconditions.UID == nil {
				t.Errorf("%s is deleted whatever its UID is", IDOf(object))
			} else if have != nil && have.GetUID() != *options.Preconditions.UID {
				return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), errors.New("the UID"))
			}
			return behind.Delete(ctx, object, opts...)
		},
		List: func(ctx context.Context, behind client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if c.selectsNone {
				opts = nil
			}
			return behind.List(ctx, list, opts...)
		},
	})
	return c
}

func (c *cluster) write(verb string, object client.Object) {
	write := verb + " " + IDOf(object).String()
	c.writes = append(c.writes, write)
	if others := c.meanwhile[verb]; others != nil {
		delete(c.meanwhile, verb)
		others()
	}
}

func (c *cluster) newUID() types.UID {
	c.made++
	return types.UID(fmt.Sprint("uid-", c.made))
}

func (c *cluster) hasNamespace(object client.Object) error {
	if object.GetNamespace() == "" {
		return nil
	}
	return c.behind.Get(c.t.Context(), client.ObjectKey{Name: object.GetNamespace()}, &corev1.Namespace{})
}

// put is another client that creates an object, or replaces the existing one with that name.
func (c *cluster) put(object client.Object) {
	c.t.Helper()
	object = copyOf(object)
	object.SetUID(c.newUID())
	err := client.IgnoreNotFound(c.behind.Delete(c.t.Context(), copyOf(object)))
	if err == nil {
		err = c.behind.Create(c.t.Context(), object)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// change is another client that changes an object.
func (c *cluster) change(object client.Object, how func(client.Object)) {
	c.t.Helper()
	have := c.get(object)
	how(have)
	if err := c.behind.Update(c.t.Context(), have); err != nil {
		c.t.Fatal(err)
	}
}

// get returns the current object, or nil.
func (c *cluster) get(object client.Object) client.Object {
	c.t.Helper()
	have := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	have.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	err := c.behind.Get(c.t.Context(), client.ObjectKeyFromObject(object), have)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return have
}

func metaOf(name string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name}
	for _, value := range labels {
		m.Labels = map[string]string{label: value}
	}
	return m
}

// role returns a role that may use the verb on pods.
func role(verb string, labels ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metaOf("a", labels...), Rules: []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
}

// binding binds a role to ann.
func binding(to string, labels ...string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metaOf("a", labels...), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: to},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}}}
}

func account(labels ...string) *corev1.ServiceAccount {
	object := &corev1.ServiceAccount{ObjectMeta: metaOf("a", labels...)}
	object.Namespace = "default"
	return object
}

func namespace(name string, labels ...string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metaOf(name, labels...)}
}

// of sets the origin of an object.
func of[T client.Object](uid string, object T) T {
	object.SetAnnotations(map[string]string{origin: uid})
	return object
}

// given returns an object for server-side apply.
func given(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	var err error
	u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(kinds[0])
	return u
}
