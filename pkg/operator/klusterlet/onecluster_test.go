// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

var detachedModes = []operatorv1.InstallMode{operatorv1.InstallModeDetached, operatorv1.InstallModeHosted, operatorv1.InstallModeSingletonHosted}

// onOneCluster returns a world in which the managed cluster is the management cluster.
func onOneCluster(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.there = w.here
	var err error
	w.source, err = operatortest.Kubeconfig(operatortest.Shared.Config(t, "management"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// keepsTheSource rejects the deletion of the namespace with the source of a Klusterlet while the source is needed: a Secret in a terminating
// namespace may be gone at any time.
func (w *world) keepsTheSource(k **operatorv1.Klusterlet) func(client.Client) client.Client {
	return func(c client.Client) client.Client {
		return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			Delete: func(ctx context.Context, i client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if *k != nil && o.GetObjectKind().GroupVersionKind().Kind == "Namespace" && o.GetName() == (*k).AgentNamespace() &&
					slices.Contains(w.now(*k).Finalizers, operatorv1.KlusterletHostedFinalizer) {
					w.Errorf("the namespace with the source goes while the source is needed")
				}
				return i.Delete(ctx, o, options...)
			},
		})
	}
}

// TestOneCluster_KlusterletLifecycle: the source of a Klusterlet may lead to the cluster that has the Klusterlet.
func TestOneCluster_KlusterletLifecycle(t *testing.T) {
	for _, mode := range detachedModes {
		t.Run(string(mode), func(t *testing.T) {
			w := onOneCluster(t)
			var k *operatorv1.Klusterlet
			count := &writes{}
			keeps := w.keepsTheSource(&k)
			w.wrap = func(c client.Client) client.Client { return count.wrap(keeps(c)) }
			config := operatortest.Shared.Config(t, "management")
			before := operatortest.Objects(t, config)
			r := w.reconciler()
			k = w.applied(r, mode, nil)
			w.expectAll(k)
			// Everything that works could take there belongs to the agent, including the namespace with its secrets.
			list := &appsv1.DeploymentList{}
			if err := w.here.List(t.Context(), list, client.InNamespace(k.AgentNamespace())); err != nil || len(list.Items) == 0 {
				t.Fatalf("%d Deployments: %v", len(list.Items), err)
			}
			for _, d := range list.Items {
				if args := d.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--same-cluster") || !slices.Contains(args, "--namespace="+k.AgentNamespace()) {
					t.Errorf("the flags of %s are %q", d.Name, args)
				}
			}
			// Objects of both sides are not overwritten alternately.
			w.until(r, k, "nothing is written any more", func(*operatorv1.Klusterlet) bool {
				n := count.n
				w.once(r, k)
				w.once(r, k)
				return w.last == nil && count.n == n
			})
			n := count.n
			again := w.reconciler()
			for range 3 {
				w.once(again, k)
			}
			if count.n != n {
				t.Errorf("a new process wrote: %q", count.names[n:])
			}
			w.delete(k)
			w.until(again, k, "it is gone", isGone)
			if told := w.told(); strings.Contains(told, reasonUnreachable) || strings.Contains(told, reasonGivenUp) {
				t.Errorf("the events are %s", told)
			}
			operatortest.NothingSince(t, config, before)
		})
	}
}

func TestOneCluster_FinalizeResumesAfterCrashAtEachWrite(t *testing.T) {
	for _, mode := range []operatorv1.InstallMode{operatorv1.InstallModeDetached, operatorv1.InstallModeHosted} {
		t.Run(string(mode), func(t *testing.T) {
			w := onOneCluster(t)
			k := w.applied(w.reconciler(), mode, nil)
			w.delete(k)
			w.lives(k, 15, "it is gone", isGone)
			w.expectNothing(k)
			if told := w.told(); strings.Contains(told, reasonUnreachable) || strings.Contains(told, reasonGivenUp) {
				t.Errorf("the events are %s", told)
			}
		})
	}
}

// TestOneCluster_WorksAreFinalized: the objects of works are handled as the user asks for, with the rights of the source.
func TestOneCluster_WorksAreFinalized(t *testing.T) {
	w := onOneCluster(t)
	r := w.reconciler()
	k := w.applied(r, operatorv1.InstallModeHosted, func(k *operatorv1.Klusterlet) { k.Annotations = map[string]string{AnnotationWorks: FateDelete} })
	object := w.works(w.there, k)
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
	if err := w.there.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
		t.Errorf("the object is %+v: %v", object.ObjectMeta, err)
	}
}

// TestOneCluster_WorksAreNotInPodNamespace: an agent with rights in the namespace of its pods could read the source there, which is an
// admin's.
func TestOneCluster_WorksAreNotInPodNamespace(t *testing.T) {
	w := onOneCluster(t)
	r := w.reconciler()
	k := w.klusterlet(operatorv1.InstallModeHosted, func(k *operatorv1.Klusterlet) {
		k.Spec.Clusterhub = &operatorv1.KlusterletClusterhub{Works: operatorv1.KlusterletWorks{Role: "admin", Namespaces: []string{"default", k.Name}}}
	})
	w.given(r, k)
	w.until(r, k, "it says so", func(k *operatorv1.Klusterlet) bool {
		applied := condition(k, operatorv1.ConditionKlusterletApplied)
		return applied.Reason == operatorv1.ReasonKlusterletApplyFailed && strings.Contains(applied.Message, "must not have "+k.Name)
	})
	if now := w.now(k); slices.Contains(now.Finalizers, operatorv1.KlusterletHostedFinalizer) {
		t.Errorf("the finalizers are %q", now.Finalizers)
	}
	if got := w.of(w.here, k); len(got) != 1 {
		t.Errorf("there is %q, and not the namespace alone", got)
	}
	// On another cluster, a namespace of this name is not special.
	if _, err := plan.New(k, ""); err != nil {
		t.Error(err)
	}
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
}

// TestOneCluster_ForgedClusterIdentity: a cluster that does not report its identity gets nothing. One that claims to be the management cluster
// gets what others get, and is itself responsible for leftovers there.
func TestOneCluster_ForgedClusterIdentity(t *testing.T) {
	w := newWorld(t)
	says := func(r *Reconciler, uid string) *Reconciler {
		r.connections.wrap = func(c client.Client) client.Client {
			return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, i client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					err := i.Get(ctx, key, o, options...)
					if key.Name == "kube-system" && err == nil {
						o.SetUID(types.UID(uid))
					}
					return err
				},
			})
		}
		return r
	}
	r := says(w.reconciler(), "")
	k := w.klusterlet(operatorv1.InstallModeDetached, nil)
	w.given(r, k)
	w.until(r, k, "a cluster without an id is refused", func(k *operatorv1.Klusterlet) bool {
		return strings.Contains(condition(k, operatorv1.ConditionKlusterletApplied).Message, "has no UID")
	})
	if got := w.of(w.there, k); len(got) > 0 || slices.Contains(w.now(k).Finalizers, operatorv1.KlusterletHostedFinalizer) {
		t.Errorf("the managed cluster has %q", got)
	}
	r = w.reconciler()
	says(r, r.managementUID)
	w.until(r, k, "it is applied", isApplied)
	w.expectAll(k)
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	if got := w.of(w.here, k); len(got) > 0 {
		t.Errorf("on the cluster of the pods is left: %q", got)
	}
	if got := w.of(w.there, k); !slices.Equal(got, []string{"Namespace " + k.AgentNamespace()}) {
		t.Errorf("on the managed cluster is left: %q", got)
	}
	there := &cluster{client: w.there, owner: ownerOf(k, r.managementUID), mark: markOf(k.Name, k.UID, r.managementUID)}
	if err := there.finalize(t.Context(), r.newPass(k).inventory()); err != nil {
		t.Error(err)
	}
}
