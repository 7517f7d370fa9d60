// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
)

// held is a hub with one Secret that admits a cluster.
type held struct {
	*Provider
	t *testing.T
}

func newHeld(t *testing.T, namespaces string) *held {
	scheme := runtime.NewScheme()
	_, _ = corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openmcp-system", Name: "berlin", Labels: map[string]string{v1alpha1.ProviderLabel: "k"}},
		Type:       SecretType, Data: map[string][]byte{"kubeconfig": []byte("keep")},
	}
	if namespaces != "" {
		secret.Annotations = map[string]string{NamespacesAnnotation: namespaces, "keep": "this"}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).
		WithIndex(&v1alpha1.Cluster{}, "spec.profile", func(o client.Object) []string { return []string{o.(*v1alpha1.Cluster).Spec.Profile} }).Build()
	return &held{Provider: &Provider{hub: hub, name: "k", namespace: "openmcp-system"}, t: t}
}

func (h *held) cluster(namespace string, uid types.UID) *v1alpha1.Cluster {
	h.t.Helper()
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c-" + string(uid), UID: uid}}
	c.Spec.Profile = "default.k.berlin"
	if err := h.hub.Create(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
	return c
}

// asks returns the reason for a Cluster, and writes it to its status.
func (h *held) asks(c *v1alpha1.Cluster) string {
	h.t.Helper()
	secret, err := h.secret(h.t.Context(), "berlin")
	if err != nil {
		h.t.Fatal(err)
	}
	condition, err := h.hold(h.t.Context(), c, secret)
	if err != nil {
		h.t.Fatal(err)
	}
	meta.SetStatusCondition(&c.Status.Conditions, condition)
	return condition.Reason
}

func (h *held) holder() string {
	h.t.Helper()
	secret, err := h.secret(h.t.Context(), "berlin")
	if err != nil {
		h.t.Fatal(err)
	}
	if string(secret.Data["kubeconfig"]) != "keep" || secret.Annotations["keep"] != "this" {
		h.t.Errorf("the provider changed more than its annotations: %+v", secret)
	}
	return secret.Annotations[HolderAnnotation]
}

// TestHold_FirstHolderIsNotPreempted: a user who may create Clusters, with any creation time, must not take a cluster that has an
// owner.
func TestHold_FirstHolderIsNotPreempted(t *testing.T) {
	h := newHeld(t, "web, teams")
	owner, rival := h.cluster("teams", "2"), h.cluster("web", "1")
	if got := h.asks(owner); got != reasonHeld || h.holder() != "2" {
		t.Fatalf("the first is %s, the holder %s", got, h.holder())
	}
	if got := h.asks(rival); got != reasonTaken || h.holder() != "2" {
		t.Errorf("the second is %s, the holder %s", got, h.holder())
	}
	if gone, err := h.Remove(t.Context(), rival, clusterprovider.Profile{Config: "berlin"}); err != nil || !gone || h.holder() != "2" {
		t.Errorf("the end of the second: %v, the holder %s", err, h.holder())
	}
	// The owner recreates its Cluster, while the rival has been waiting.
	if gone, err := h.Remove(t.Context(), owner, clusterprovider.Profile{Config: "berlin"}); err != nil || !gone || h.holder() != "" {
		t.Errorf("the end of the first: %v, the holder %s", err, h.holder())
	}
	if got := h.asks(rival); got != reasonTaken || h.holder() != "" {
		t.Errorf("who has waited is %s, the holder %s", got, h.holder())
	}
	if got := h.asks(h.cluster("teams", "3")); got != reasonHeld || h.holder() != "3" {
		t.Errorf("the owner's new one is %s, the holder %s", got, h.holder())
	}
}

func TestHold_OnlyNamespacesOfSecret(t *testing.T) {
	for namespaces, want := range map[string]string{
		"": reasonNotAllowed, "web": reasonNotAllowed, "team": reasonNotAllowed, "teams2,": reasonNotAllowed, ",": reasonNotAllowed,
		"teams": reasonHeld, "web,teams": reasonHeld, " teams ,web": reasonHeld, "*": reasonHeld,
	} {
		h := newHeld(t, namespaces)
		c := h.cluster("teams", "1")
		if got := h.asks(c); got != want {
			t.Errorf("%q: %s, want %s", namespaces, got, want)
		}
		if message := c.Status.Conditions[0].Message; want == reasonNotAllowed && !strings.Contains(message,
			"kubectl annotate secret berlin -n openmcp-system --overwrite clusters.clusterhub.dev/namespaces=teams") {
			t.Errorf("%q does not describe the next step", message)
		}
	}
}

func TestHold_DeletedHolderReleases(t *testing.T) {
	h := newHeld(t, "teams")
	lost := h.cluster("teams", "1")
	h.asks(lost)
	if err := h.hub.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	next := h.cluster("teams", "2")
	if got := h.asks(next); got != reasonLeftovers || h.holder() != "1" {
		t.Errorf("it is handed on with all access in it: %s, the holder %s", got, h.holder())
	}
	// The remaining access is revoked, and the cluster is assigned with the version that was read before.
	state, err := h.Ensure(t.Context(), next, clusterprovider.Profile{Config: "berlin"})
	if err != nil || state.Former != "1" || state.Ready || state.Withdrawn || !strings.Contains(state.Info, "teams/c-1") {
		t.Fatalf("%+v, %v", state, err)
	}
	if err := state.Release(t.Context()); err != nil || h.holder() != "2" || h.asks(next) != reasonHeld {
		t.Errorf("%v, the holder %s", err, h.holder())
	}
}

// TestHold_OtherProfileWithSameConfiguration: a user who may create ClusterProfiles must not take a cluster with another name for its
// configuration.
func TestHold_OtherProfileWithSameConfiguration(t *testing.T) {
	h := newHeld(t, "*")
	h.asks(h.cluster("teams", "1"))
	rival := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "rival", UID: "2"}}
	rival.Spec.Profile = "second"
	if err := h.hub.Create(t.Context(), rival); err != nil {
		t.Fatal(err)
	}
	if got := h.asks(rival); got != reasonTaken || h.holder() != "1" {
		t.Errorf("a Cluster of another profile is %s, the holder %s", got, h.holder())
	}
}

// TestHold_RefusalIsFinal: a rejected Cluster does not get another try because its namespace is removed from the list for a while.
func TestHold_RefusalIsFinal(t *testing.T) {
	h := newHeld(t, "teams, web")
	owner, rival := h.cluster("teams", "1"), h.cluster("web", "2")
	h.asks(owner)
	h.asks(rival)
	for _, namespaces := range []string{"teams", "teams, web"} {
		secret, err := h.secret(t.Context(), "berlin")
		if err != nil {
			t.Fatal(err)
		}
		secret.Annotations[NamespacesAnnotation] = namespaces
		if err := h.hub.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if got := h.asks(rival); got != reasonTaken {
			t.Errorf("with the namespaces %q: %s", namespaces, got)
		}
	}
	if err := h.release(t.Context(), owner, "berlin"); err != nil {
		t.Fatal(err)
	}
	if got := h.asks(rival); got != reasonTaken || h.holder() != "" {
		t.Errorf("%s, the holder %s", got, h.holder())
	}
}

// TestHold_UpgradePrefersCurrentHolder: Secrets of earlier versions do not record who has the cluster.
func TestHold_UpgradePrefersCurrentHolder(t *testing.T) {
	taken := []metav1.Condition{{Type: ConditionHeld, Status: metav1.ConditionFalse, Reason: reasonTaken}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Cluster)
		want   string
	}{
		"has it":         {func(*v1alpha1.Cluster) {}, reasonTaken},
		"may not":        {func(c *v1alpha1.Cluster) { c.Namespace = "web" }, reasonHeld},
		"was refused":    {func(c *v1alpha1.Cluster) { c.Status.Conditions = taken }, reasonHeld},
		"waits as well":  {func(c *v1alpha1.Cluster) { c.Status.Endpoints = nil }, reasonHeld},
		"of another one": {func(c *v1alpha1.Cluster) { c.Spec.Profile = "default.k.paris" }, reasonHeld},
	} {
		h := newHeld(t, "teams")
		user := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "user", UID: "1"}}
		user.Spec.Profile = "default.k.berlin"
		user.Status.Endpoints.Set(v1alpha1.APISERVER_ENDPOINT_EXTERNAL, "https://a:1")
		c.change(user)
		if err := h.hub.Create(t.Context(), user); err != nil {
			t.Fatal(err)
		}
		if got := h.asks(h.cluster("teams", "2")); got != c.want {
			t.Errorf("the other %s: %s, want %s", name, got, c.want)
		}
		if c.want == reasonTaken && h.asks(user) != reasonHeld {
			t.Errorf("the other %s, and does not get it", name)
		}
	}
}

// TestHold_Concurrently: two Clusters for which the same Secret was read do not both get the cluster.
func TestHold_Concurrently(t *testing.T) {
	h := newHeld(t, "*")
	secret, err := h.secret(t.Context(), "berlin")
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg   sync.WaitGroup
		lock sync.Mutex
		have []types.UID
	)
	for _, uid := range []types.UID{"1", "2", "3", "4", "5", "6", "7", "8"} {
		c := h.cluster("teams", uid)
		wg.Go(func() {
			condition, err := h.hold(context.WithoutCancel(t.Context()), c, secret.DeepCopy())
			if err == nil && condition.Status == metav1.ConditionTrue {
				lock.Lock()
				defer lock.Unlock()
				have = append(have, c.UID)
			}
		})
	}
	wg.Wait()
	if len(have) != 1 {
		t.Errorf("%v have the cluster", have)
	}
}

func TestRelease_WithoutSecret(t *testing.T) {
	h := newHeld(t, "*")
	c := h.cluster("teams", "1")
	h.asks(c)
	secret, err := h.secret(t.Context(), "berlin")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.hub.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if gone, err := h.Remove(t.Context(), c, clusterprovider.Profile{Config: "berlin"}); err != nil || !gone {
		t.Errorf("%t, %v", gone, err)
	}
}

func (h *held) names(namespaces string) {
	h.t.Helper()
	secret, err := h.secret(h.t.Context(), "berlin")
	if err != nil {
		h.t.Fatal(err)
	}
	secret.Annotations[NamespacesAnnotation] = namespaces
	if err := h.hub.Update(h.t.Context(), secret); err != nil {
		h.t.Fatal(err)
	}
}

// withdrawn returns why access to a Cluster is revoked; an error is one more reason to grant none.
func (h *held) withdrawn(c *v1alpha1.Cluster) string {
	why, err := h.Withdrawn(h.t.Context(), c)
	switch {
	case err != nil:
		return "not known"
	case why != "":
		return "yes"
	}
	return "no"
}

// TestHold_RemovedNamespaceReleases: the cluster must be withdrawn from a namespace before another gets it, whatever the caches have.
func TestHold_RemovedNamespaceReleases(t *testing.T) {
	h := newHeld(t, "teams, web")
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: "default.k.berlin"}}
	profile.Spec.ProviderConfigRef.Name = "berlin"
	if err := h.hub.Create(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	ensure := func(c *v1alpha1.Cluster) clusterprovider.State {
		t.Helper()
		state, err := h.Ensure(t.Context(), c, clusterprovider.Profile{Config: "berlin"})
		if err != nil {
			t.Fatal(err)
		}
		meta.SetStatusCondition(&c.Status.Conditions, state.Conditions[0])
		return state
	}
	c := h.cluster("teams", "1")
	if h.asks(c) != reasonHeld || h.withdrawn(c) != "no" {
		t.Fatalf("the holder is %s", h.holder())
	}
	c.Status.Phase = v1alpha1.StatusPhaseReady
	h.names("web")
	outdated := c.DeepCopy()
	state := ensure(c)
	if !state.Withdrawn || state.Release == nil || state.Ready || c.Status.Conditions[0].Reason != reasonWithdrawn || h.holder() != "1" {
		t.Fatalf("%+v, the holder %s", state, h.holder())
	}
	if h.withdrawn(outdated) != "yes" {
		t.Error("access is granted until the status reports it")
	}
	// A crash here: all steps are repeated.
	state = ensure(c)
	if state.Release == nil {
		t.Fatalf("%+v", state)
	}
	h.names("teams")
	if err := state.Release(t.Context()); err != nil || h.holder() != "1" {
		t.Errorf("what is allowed again is released: %v, the holder %q", err, h.holder())
	}
	h.names("web")
	if err := state.Release(t.Context()); err != nil || h.holder() != "" {
		t.Fatalf("%v, the holder %q", err, h.holder())
	}
	if h.withdrawn(c) != "yes" || h.withdrawn(outdated) != "yes" {
		t.Errorf("after the release: %s, by an outdated status %s", h.withdrawn(c), h.withdrawn(outdated))
	}
	h.names("web,teams")
	if h.withdrawn(outdated) != "not known" {
		t.Error("access is granted before the Secret records the Cluster again")
	}
	h.names("web")
	state = ensure(c)
	if !state.Withdrawn || state.Release != nil {
		t.Errorf("%+v", state)
	}
	c.Status.Phase = v1alpha1.StatusPhaseProgressing

	h.names("web,teams")
	if got := h.asks(c); got != reasonHeld || h.holder() != "1" || h.withdrawn(c) != "no" {
		t.Errorf("named again, it is %s, the holder %q", got, h.holder())
	}
	h.names("web")
	if err := ensure(c).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := h.cluster("web", "2")
	if got := h.asks(next); got != reasonHeld || h.holder() != "2" || h.withdrawn(c) != "yes" {
		t.Errorf("the next one is %s, the holder %q", got, h.holder())
	}
	h.names("web,teams")
	if got := h.asks(c); got != reasonTaken || h.withdrawn(c) != "yes" || h.withdrawn(next) != "no" {
		t.Errorf("named again, after the next one: %s", got)
	}
}
