// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

const (
	foreignFinalizer = "conformance.clusterhub.dev/held"
	// reconcile is a patch that asks for a reconciliation.
	reconcile = `{"metadata":{"annotations":{"openmcp.cloud/operation":"reconcile"}}}`
)

func (s *suite) publishes(ctx context.Context) error {
	return s.await(ctx, "a profile", func() error {
		list := &v1alpha1.ClusterProfileList{}
		if err := s.client.List(ctx, list); err != nil {
			return err
		}
		for _, profile := range list.Items {
			if profile.Spec.ProviderRef.Name == s.Provider && (s.Profile == "" || s.Profile == profile.Name) {
				s.Profile = profile.Name
				return nil
			}
		}
		return fmt.Errorf("no ClusterProfile %q has the providerRef %q", s.Profile, s.Provider)
	})
}

func newCluster(meta metav1.ObjectMeta, profile string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: meta, Spec: v1alpha1.ClusterSpec{Profile: profile, Tenancy: v1alpha1.TENANCY_EXCLUSIVE}}
}

func (s *suite) leavesOthersClusters(ctx context.Context) error {
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: s.name("others").Name}}
	profile.Spec = v1alpha1.ClusterProfileSpec{
		ProviderRef:       v1alpha1.LocalObjectReference{Name: "nobody-" + s.suffix},
		ProviderConfigRef: v1alpha1.LocalObjectReference{Name: "none"}, SupportedVersions: []v1alpha1.SupportedK8sVersion{},
	}
	cluster := newCluster(s.name("others"), profile.Name)
	if err := s.client.Create(ctx, profile); err != nil {
		return err
	}
	if err := s.client.Create(ctx, cluster); err != nil {
		return err
	}
	if err := s.untouched(ctx, cluster, profile); err != nil {
		return err
	}
	return errors.Join(s.client.Delete(ctx, cluster), s.gone(ctx, cluster), s.client.Delete(ctx, profile))
}

func (s *suite) leavesIgnored(ctx context.Context) error {
	s.cluster = newCluster(s.name("cluster"), s.Profile)
	s.cluster.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationAnnotationValueIgnore}
	if err := s.client.Create(ctx, s.cluster); err != nil {
		return err
	}
	return errors.Join(s.untouched(ctx, s.cluster), s.patch(ctx, s.cluster, reconcile))
}

func (s *suite) makesReady(ctx context.Context) error {
	return s.await(ctx, "the cluster is Ready", func() error {
		if err := s.get(ctx, s.cluster); err != nil {
			return err
		}
		if s.cluster.Status.Phase != v1alpha1.StatusPhaseReady {
			return fmt.Errorf("its status is %+v", s.cluster.Status)
		}
		return nil
	})
}

func (s *suite) describes(context.Context) error {
	var errs []error
	c := s.cluster
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(len(c.Finalizers) > 0, "it has no finalizer")
	check(c.Annotations[v1alpha1.OperationAnnotation] == "", "the annotation that asks for a reconciliation is still there")
	check(c.Status.ObservedGeneration == c.Generation,
		"status.observedGeneration is %d, not %d", c.Status.ObservedGeneration, c.Generation)
	check(len(c.Status.Conditions) > 0, "it has no conditions")
	for _, condition := range c.Status.Conditions {
		check(condition.Status == metav1.ConditionTrue, "it is Ready, but its condition %s is %s", condition.Type, condition.Status)
	}
	check(len(c.Status.Endpoints) > 0 || c.Status.APIServer != "", "it has no endpoint")
	if own := c.Status.ProviderStatus; own != nil {
		check(!strings.Contains(string(own.Raw), "current-context"), "its status has a kubeconfig")
	}
	return errors.Join(errs...)
}

// request makes a request as the controller that prepares requests leaves it.
func (s *suite) request(
	ctx context.Context, what, provider string, adapt func(*v1alpha1.AccessRequestSpec),
) (*v1alpha1.AccessRequest, error) {
	ar := &v1alpha1.AccessRequest{ObjectMeta: s.name(what)}
	ar.Labels = map[string]string{v1alpha1.ProviderLabel: provider, v1alpha1.ProfileLabel: s.Profile}
	ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Name: s.cluster.Name, Namespace: s.cluster.Namespace}
	adapt(&ar.Spec)
	if err := s.client.Create(ctx, ar); err != nil {
		return nil, err
	}
	return ar, s.prepare(ctx, ar)
}

// prepare hands a request over to its provider. Where the hub prepares requests itself, it does the same.
func (s *suite) prepare(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	before := ar.DeepCopy()
	ar.Status.Phase, ar.Status.ObservedGeneration = v1alpha1.REQUEST_PENDING, ar.Generation
	return s.client.Status().Patch(ctx, ar, client.MergeFrom(before))
}

func (s *suite) leavesOthersRequests(ctx context.Context) error {
	ar, err := s.request(ctx, "others", "nobody-"+s.suffix, func(spec *v1alpha1.AccessRequestSpec) {
		spec.Token = &v1alpha1.TokenConfig{}
	})
	if err != nil {
		return err
	}
	return errors.Join(s.untouched(ctx, ar), s.client.Delete(ctx, ar), s.gone(ctx, ar))
}

func (s *suite) granted(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	return s.await(ctx, "the request is Granted", func() error {
		if err := s.get(ctx, ar); err != nil {
			return err
		}
		if !ar.Status.IsGranted() || ar.Status.SecretRef == nil || ar.Status.ObservedGeneration != ar.Generation {
			return fmt.Errorf("its status is %+v", ar.Status)
		}
		return nil
	})
}

func (s *suite) grantsToken(ctx context.Context) (err error) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "list"}}}
	s.access, err = s.request(ctx, "token", s.Provider, func(spec *v1alpha1.AccessRequestSpec) {
		spec.Token = &v1alpha1.TokenConfig{Permissions: []v1alpha1.PermissionsRequest{
			{Namespace: "conformance-" + s.suffix, Rules: rules},
			{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}}},
		}}
	})
	if err != nil {
		return err
	}
	if err := s.granted(ctx, s.access); err != nil {
		return err
	}
	s.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.access.Namespace, Name: s.access.Status.SecretRef.Name}}
	return s.get(ctx, s.secret)
}

func (s *suite) secretIsRight(context.Context) error {
	for _, key := range []string{
		v1alpha1.SecretKeyKubeconfig, v1alpha1.SecretKeyCreationTimestamp, v1alpha1.SecretKeyExpirationTimestamp,
	} {
		if len(s.secret.Data[key]) == 0 {
			return fmt.Errorf("it has no key %s", key)
		}
	}
	if !metav1.IsControlledBy(s.secret, s.access) {
		return fmt.Errorf("its owners are %v", s.secret.OwnerReferences)
	}
	return nil
}

// user is who has the Secret's kubeconfig.
func (s *suite) user() (kubernetes.Interface, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(s.secret.Data[v1alpha1.SecretKeyKubeconfig])
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

func (s *suite) rightsAreRight(ctx context.Context) error {
	user, err := s.user()
	if err != nil {
		return err
	}
	if err := s.await(ctx, "the rights", func() error {
		_, err1 := user.CoreV1().ConfigMaps("conformance-"+s.suffix).List(ctx, metav1.ListOptions{})
		_, err2 := user.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return errors.Join(err1, err2)
	}); err != nil {
		return err
	}
	_, err1 := user.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	_, err2 := user.CoreV1().Secrets("conformance-"+s.suffix).List(ctx, metav1.ListOptions{})
	for what, err := range map[string]error{"ConfigMaps of another namespace": err1, "Secrets": err2} {
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("list %s, which nobody has asked for: %v, instead of a 403", what, err)
		}
	}
	return nil
}

func (s *suite) makesSecretAgain(ctx context.Context) error {
	uid := s.secret.UID
	if err := s.client.Delete(ctx, s.secret); err != nil {
		return err
	}
	// Not every provider watches them.
	if err := s.patch(ctx, s.access, reconcile); err != nil {
		return err
	}
	return s.await(ctx, "the Secret", func() error {
		if err := s.get(ctx, s.secret); err != nil {
			return err
		}
		if s.secret.UID == uid {
			return errors.New("it is still the old one")
		}
		return nil
	})
}

func (s *suite) followsChanges(ctx context.Context) error {
	user, err := s.user()
	if err != nil {
		return err
	}
	before := s.access.DeepCopy()
	s.access.Spec.Token.Permissions = []v1alpha1.PermissionsRequest{{
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}}},
	}}
	if err := s.client.Patch(ctx, s.access, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := errors.Join(s.prepare(ctx, s.access), s.granted(ctx, s.access), s.get(ctx, s.secret)); err != nil {
		return err
	}
	if err := s.await(ctx, "the rights that were taken back", func() error {
		_, err1 := user.CoreV1().ConfigMaps("conformance-"+s.suffix).List(ctx, metav1.ListOptions{})
		_, err2 := user.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err1) && apierrors.IsForbidden(err2) {
			return nil
		}
		return fmt.Errorf("list ConfigMaps: %v, list Nodes: %v, instead of a 403", err1, err2)
	}); err != nil {
		return err
	}
	user, err = s.user()
	if err != nil {
		return err
	}
	return s.await(ctx, "the new rights", func() error {
		_, err := user.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		return err
	})
}

func (s *suite) answersOIDC(ctx context.Context) error {
	ar, err := s.request(ctx, "oidc", s.Provider, func(spec *v1alpha1.AccessRequestSpec) {
		spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
			Name: "conformance", Issuer: "https://oidc.invalid", ClientID: "conformance", RoleBindings: []v1alpha1.RoleBindings{},
		}}
	})
	if err != nil {
		return err
	}
	err = s.await(ctx, "an answer", func() error {
		if err := s.get(ctx, ar); err != nil {
			return err
		}
		if ar.Status.IsGranted() || ar.Status.IsDenied() {
			return nil
		}
		for _, condition := range ar.Status.Conditions {
			if condition.Status == metav1.ConditionFalse && condition.Message != "" {
				return nil
			}
		}
		return fmt.Errorf("its status is %+v", ar.Status)
	})
	return errors.Join(err, s.client.Delete(ctx, ar), s.gone(ctx, ar))
}

func (s *suite) takesBack(ctx context.Context) error {
	user, err := s.user()
	if err != nil {
		return err
	}
	if err := errors.Join(s.client.Delete(ctx, s.access), s.gone(ctx, s.access), s.gone(ctx, s.secret)); err != nil {
		return err
	}
	return s.await(ctx, "the token is of no use", func() error {
		_, err := user.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("list namespaces: %v", err)
	})
}

func (s *suite) waitsForOthers(ctx context.Context) error {
	if err := s.changeFinalizer(ctx, controllerutil.AddFinalizer); err != nil {
		return err
	}
	if err := s.client.Delete(ctx, s.cluster); err != nil {
		return err
	}
	return s.await(ctx, "the cluster is Terminating", func() error {
		if err := s.get(ctx, s.cluster); err != nil {
			return err
		}
		if s.cluster.Status.Phase != v1alpha1.StatusPhaseTerminating || len(s.cluster.Finalizers) < 2 {
			return fmt.Errorf("its finalizers are %v, and its status %+v", s.cluster.Finalizers, s.cluster.Status)
		}
		return nil
	})
}

func (s *suite) runsWhileItIsHeld(ctx context.Context) error {
	user, err := s.user()
	if err != nil {
		return err
	}
	for end := time.Now().Add(s.Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, err := user.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("list namespaces: %w", err)
		}
	}
	return nil
}

func (s *suite) removes(ctx context.Context) error {
	if err := s.letGo(ctx); err != nil {
		return err // it would be waited for in vain
	}
	return errors.Join(client.IgnoreNotFound(s.client.Delete(ctx, s.cluster)), s.gone(ctx, s.cluster))
}

// letGo removes the finalizer that waitsForOthers has put on the cluster.
func (s *suite) letGo(ctx context.Context) error {
	return client.IgnoreNotFound(s.changeFinalizer(ctx, controllerutil.RemoveFinalizer))
}

// changeFinalizer adds a finalizer to the cluster, or removes it. The hub and the provider change theirs at any time: no patch may undo that.
func (s *suite) changeFinalizer(ctx context.Context, change func(client.Object, string) bool) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.get(ctx, s.cluster); err != nil {
			return err
		}
		before := s.cluster.DeepCopy()
		change(s.cluster, foreignFinalizer)
		return s.client.Patch(ctx, s.cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}
