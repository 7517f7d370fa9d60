// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func workSpec(executor string) workv1.ManifestWorkSpec {
	spec := workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)}},
	}}}
	if executor != "" {
		spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "ops", Name: executor},
		}}
	}
	return spec
}

// bindRole binds a ClusterRole to a user in a namespace.
func bindRole(t *testing.T, who, role, namespace string) {
	t.Helper()
	harness.Must(harness.Kube(t, harness.Hub(t).AdminConfig()).RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(who+"-"+role, ":", "-")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: who}},
	}, metav1.CreateOptions{}))(t)
}

// TestWorks_NamespaceAdminHasReplicaSetsOnly verifies that Kubernetes' own roles grant no rights on works, by which their holders would have
// the power of an agent. Replica sets are applied with the rights of their author, which the server records.
func TestWorks_NamespaceAdminHasReplicaSetsOnly(t *testing.T) {
	namespace, create := harness.NewNamespace(t), metav1.CreateOptions{}
	for role, writes := range map[string]bool{"admin": true, "edit": true, "view": false} {
		t.Run(role, func(t *testing.T) {
			who := harness.Unique(role)
			bindRole(t, who, role, namespace)
			client := harness.Ours(t, harness.Hub(t).UserConfig(who))
			revisions := client.WorkV1alpha1().ManifestWorkReplicaSetRevisions(namespace)
			sets, works := client.WorkV1alpha1().ManifestWorkReplicaSets(namespace), client.WorkV1().ManifestWorks(namespace)
			// A right of all three roles shows that the binding is observed.
			harness.Eventually(t, "the right of "+who+" to list placements", func(ctx context.Context) (bool, error) {
				_, err := client.ClusterV1beta1().Placements(namespace).List(ctx, metav1.ListOptions{})
				return err == nil, err
			})
			set := &v1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: role, Annotations: map[string]string{
				"work.clusterhub.dev/author": `{"username":"admin","groups":["system:masters"]}`}},
				Spec: v1alpha1.ManifestWorkReplicaSetSpec{ManifestWorkTemplate: workSpec(""), PlacementRefs: []v1alpha1.LocalPlacementReference{{Name: "all"}}}}
			if writes {
				harness.Eventually(t, "the right of "+who+" to list replica sets", func(ctx context.Context) (bool, error) {
					_, err := sets.List(ctx, metav1.ListOptions{})
					return err == nil, err
				})
				made := harness.Must(sets.Create(t.Context(), set, create))(t)
				if author := made.Annotations["work.clusterhub.dev/author"]; !strings.HasPrefix(author, `{"username":"`+who+`"`) || strings.Contains(author, "masters") {
					t.Errorf("the author is %s", author)
				}
				_, err := sets.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
				harness.WantForbidden(t, err)
				harness.Must(revisions.List(t.Context(), metav1.ListOptions{}))(t)
			} else {
				_, err := revisions.List(t.Context(), metav1.ListOptions{})
				harness.WantForbidden(t, err)
				_, err = sets.List(t.Context(), metav1.ListOptions{})
				harness.WantForbidden(t, err)
				_, err = sets.Create(t.Context(), set, create)
				harness.WantForbidden(t, err)
			}
			_, err := revisions.Create(t.Context(), &v1alpha1.ManifestWorkReplicaSetRevision{ObjectMeta: metav1.ObjectMeta{Name: role}}, create)
			harness.WantForbidden(t, err)
			_, err = works.Create(t.Context(), &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: who}, Spec: workSpec("")}, create)
			harness.WantForbidden(t, err)
			_, err = works.List(t.Context(), metav1.ListOptions{})
			harness.WantForbidden(t, err)
		})
	}
}

// TestWorks_ReadersSeeEvents verifies this as events report in the namespace of the cluster that a work cannot be applied.
func TestWorks_ReadersSeeEvents(t *testing.T) {
	namespace, other := harness.NewNamespace(t), harness.NewNamespace(t)
	for _, role := range []string{"clusterhub:works", "clusterhub:works-viewer"} {
		who := harness.Unique("reader")
		bindRole(t, who, role, namespace)
		events := harness.Kube(t, harness.Hub(t).UserConfig(who)).CoreV1()
		harness.Eventually(t, "the right of "+role+" to list events", func(ctx context.Context) (bool, error) {
			_, err := events.Events(namespace).List(ctx, metav1.ListOptions{})
			return err == nil, err
		})
		_, err := events.Events(other).List(t.Context(), metav1.ListOptions{})
		harness.WantForbidden(t, err)
		_, err = events.Events(namespace).Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "forged"}}, metav1.CreateOptions{})
		harness.WantForbidden(t, err)
	}
}

// TestWorks_ExecutorRequiresPermission tries every way to set an executor in a work, without the right and with it.
func TestWorks_ExecutorRequiresPermission(t *testing.T) {
	namespace := harness.NewNamespace(t)
	who := harness.User(t, harness.RuleIn(workGroup, "execute-as", "manifestworks", "system:serviceaccount:ops:mine"))
	bindRole(t, who, "clusterhub:works", namespace)
	works := harness.Ours(t, harness.Hub(t).UserConfig(who)).WorkV1().ManifestWorks(namespace)
	harness.Eventually(t, "the right of "+who+" to list works", func(ctx context.Context) (bool, error) {
		_, err := works.List(ctx, metav1.ListOptions{})
		return err == nil, err
	})
	const subject = `{"type":"ServiceAccount","serviceAccount":{"namespace":"ops","name":%q}}`
	made := func(ctx context.Context, name string) (*workv1.ManifestWork, error) {
		return works.Create(ctx, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: workSpec("")}, metav1.CreateOptions{})
	}
	applied := func(name, account string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"name":%q},"spec":{"executor":{"subject":`+subject+`},
			"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}}}`, name, account)
	}
	force := metav1.PatchOptions{FieldManager: "e2e", Force: new(true)}
	for way, write := range map[string]func(ctx context.Context, name, account string) error{
		"create": func(ctx context.Context, name, account string) error {
			_, err := works.Create(ctx, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: workSpec(account)}, metav1.CreateOptions{})
			return err
		},
		"apply a new one": func(ctx context.Context, name, account string) error {
			_, err := works.Patch(ctx, name, types.ApplyPatchType, applied(name, account), force)
			return err
		},
		"apply": func(ctx context.Context, name, account string) error {
			if _, err := made(ctx, name); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			_, err := works.Patch(ctx, name, types.ApplyPatchType, applied(name, account), force)
			return err
		},
		"update": func(ctx context.Context, name, account string) error {
			w, err := made(ctx, name)
			if err != nil {
				return err
			}
			w.Spec = workSpec(account)
			_, err = works.Update(ctx, w, metav1.UpdateOptions{})
			return err
		},
		"merge patch": func(ctx context.Context, name, account string) error {
			if _, err := made(ctx, name); err != nil {
				return err
			}
			_, err := works.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"executor":{"subject":`+subject+`}}}`, account), metav1.PatchOptions{})
			return err
		},
		"json patch": func(ctx context.Context, name, account string) error {
			if _, err := made(ctx, name); err != nil {
				return err
			}
			_, err := works.Patch(ctx, name, types.JSONPatchType,
				fmt.Appendf(nil, `[{"op":"add","path":"/spec/executor","value":{"subject":`+subject+`}}]`, account), metav1.PatchOptions{})
			return err
		},
	} {
		t.Run(way, func(t *testing.T) {
			name := strings.ReplaceAll(way, " ", "-")
			err := write(t.Context(), name+"-x", "theirs")
			if says := "user " + who + " cannot manipulate the Manifestwork with executor ops/theirs in namespace " + namespace; !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), says) {
				t.Errorf("without the right: got %v, want a 400 that says %s", err, says)
			}
			if w, err := works.Get(t.Context(), name+"-x", metav1.GetOptions{}); err == nil && w.Spec.Executor != nil {
				t.Errorf("stored: %+v", w.Spec.Executor)
			}
			harness.Eventually(t, "the right to execute as ops/mine by "+way, func(ctx context.Context) (bool, error) {
				err := write(ctx, harness.Unique(name), "mine")
				return err == nil, err
			})
		})
	}
}
