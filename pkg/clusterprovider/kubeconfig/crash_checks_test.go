// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// given returns all objects that the provider has created for requests, on the hub and in the cluster, and the issuers that the cluster trusts.
func (w *world) given() sets.Set[string] {
	w.t.Helper()
	all := sets.New[string]()
	for _, kind := range rights.Kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		w.must(w.target.List(w.t.Context(), list, client.HasLabels{own.NameLabel()}))
		for _, object := range list.Items {
			object.SetGroupVersionKind(kind)
			all.Insert(apply.IDOf(&object).String())
		}
	}
	secrets := &corev1.SecretList{}
	w.must(w.client.List(w.t.Context(), secrets, own.OwnLabels()))
	for _, secret := range secrets.Items {
		all.Insert("Secret " + secret.Namespace + "/" + secret.Name)
	}
	for issuer := range w.trusted {
		all.Insert("issuer " + issuer)
	}
	return all
}

// wanted returns the objects and issuers that must exist for the requests of these names, and fails unless these are granted.
func (w *world) wanted(names ...string) sets.Set[string] {
	w.t.Helper()
	all := sets.New[string]()
	for _, name := range names {
		ar := named(name)
		w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(ar), ar))
		if !ar.Status.IsGranted() || ar.Status.ObservedGeneration != ar.Generation || ar.Status.SecretRef == nil || ar.Status.SecretRef.Name != hub.SecretName(name) {
			w.t.Errorf("%s is not granted: %+v", name, ar.Status)
		}
		given, err := rights.Of(ar, own.Hash(ar))
		w.must(err)
		for _, object := range given.Objects {
			all.Insert(apply.IDOf(object).String())
		}
		all.Insert("Secret " + hub.AnswerName(ar).String())
		if ar.Spec.OIDC != nil {
			all.Insert("issuer " + ar.Spec.OIDC.Issuer)
		} else {
			all.Insert("Secret " + hub.TokenSourceName(ar).String())
		}
	}
	return all
}

// granted fails unless the requests of these names have their access, and there is no other access.
func (w *world) granted(names ...string) {
	w.t.Helper()
	if got, want := w.given(), w.wanted(names...); !got.Equal(want) {
		w.t.Errorf("left are %q, and missing %q", sets.List(got.Difference(want)), sets.List(want.Difference(got)))
	}
	requests := &v1alpha1.AccessRequestList{}
	w.must(w.client.List(w.t.Context(), requests))
	for _, ar := range requests.Items {
		if !slices.Contains(names, ar.Name) && (ar.Status.IsGranted() || ar.Status.SecretRef != nil) {
			w.t.Errorf("%s has access in its status: %+v", ar.Name, ar.Status)
		} else if ar.Spec.Token != nil && ar.Status.IsGranted() {
			w.eventually("the kubeconfig of "+ar.Name+" is of use", func() string { return text(w.use(&ar)) })
		}
	}
}

// safe fails unless nothing gets lost while no provider runs: granted access is protected by the finalizer of its request, and is not in a cluster
// that others may get.
func (w *world) safe() {
	w.t.Helper()
	given, ar := w.given(), named("ann")
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(ar), ar)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if len(given) > 0 && !controllerutil.ContainsFinalizer(ar, own.AccessFinalizer()) {
		w.t.Errorf("no finalizer holds %q", sets.List(given))
	}
	for what := range given {
		if strings.HasPrefix(what, "Secret ") {
			given.Delete(what)
		}
	}
	if len(given) > 0 && w.holder() == "" {
		w.t.Errorf("others may have the cluster, with %q", sets.List(given))
	}
}

// ended fails unless all tokens of requests are rejected. The cluster caches accepted tokens for ten seconds.
func (w *world) ended() {
	w.t.Helper()
	c, err := kubernetes.NewForConfig(w.config)
	w.must(err)
	for token, path := range w.tokens {
		w.eventually("a token is refused that was created by "+path, func() string {
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
			review, err := c.AuthenticationV1().TokenReviews().Create(w.t.Context(), review, metav1.CreateOptions{})
			if err != nil || review.Status.Authenticated {
				return fmt.Sprint(review.Status, err)
			}
			return ""
		})
	}
}

// use uses a request's kubeconfig for what the request asks for.
func (w *world) use(ar *v1alpha1.AccessRequest) error {
	secret := &corev1.Secret{}
	if err := w.client.Get(w.t.Context(), hub.AnswerName(ar), secret); err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[v1alpha1.SecretKeyKubeconfig])
	if err != nil {
		return err
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	one := metav1.ListOptions{Limit: 1}
	for _, permission := range ar.Spec.Token.Permissions {
		switch permission.Rules[0].Resources[0] {
		case "configmaps":
			_, err = c.CoreV1().ConfigMaps(permission.Namespace).List(w.t.Context(), one)
		case "namespaces":
			_, err = c.CoreV1().Namespaces().List(w.t.Context(), one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holder returns the UID of the Cluster that has the cluster.
func (w *world) holder() string {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: providers, Name: "berlin"}, secret))
	return secret.Annotations[HolderAnnotation]
}

// ready fails unless the Cluster can be used.
func (w *world) ready() {
	w.t.Helper()
	c := newCluster()
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(c), c))
	if c.Status.Phase != v1alpha1.StatusPhaseReady || w.holder() != string(c.UID) {
		w.t.Errorf("the holder is %q, and the status %+v", w.holder(), c.Status)
	}
}

// gone fails unless the object is gone.
func (w *world) gone(object client.Object) {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
		w.t.Errorf("%s remains with the finalizers %q: %v", object.GetName(), object.GetFinalizers(), err)
	}
}
