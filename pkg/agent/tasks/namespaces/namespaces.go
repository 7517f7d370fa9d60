// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaces implements the task that creates the namespaces that the hub asks for.
package namespaces

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
)

// labelPrefix is the prefix of the label of namespaces that a hub asks for, as upstream. The hash of the hub's address follows.
const labelPrefix = "clusterset.open-cluster-management.io/"

// atOnce bounds how long namespaces are created before their state is reported, and the hub is read again for whether it still asks for the others.
const atOnce = 10 * time.Second

// New returns the task.
func New(cluster *spoke.Cluster, view *hub.View) task.Task {
	const what = "creating the namespaces that the hub requests"
	return task.Task{
		Name: what,
		Rights: rights.Rights{Own: rights.Rules{Cluster: []rbacv1.PolicyRule{
			rights.Rule("", "namespaces", "list", "create", "patch")}}},
		Run: func(ctx context.Context, s task.Session) error {
			n, err := Of(s.State.Kubeconfig, cluster.Client, cluster.Namespace, cluster.Home)
			if err != nil {
				return err
			}
			said := &repeat.Said{}
			for {
				select {
				case <-ctx.Done():
					return nil
				case names := <-view.RequestedNamespaces():
					said.Result(ctx, what, n.syncRequested(ctx, view, sets.New(names...)))
				}
			}
		},
	}
}

// syncRequested syncs the requested namespaces, and reports the results.
func (n *Namespaces) syncRequested(ctx context.Context, view *hub.View, asked sets.Set[string]) error {
	limited, cancel := context.WithTimeout(ctx, 2*hub.RequestTimeout)
	defer cancel()
	results, err := n.sync(limited, asked)
	if ctx.Err() != nil {
		return nil // the session is over
	}
	view.ReportNamespaces(results)
	if len(results) < len(asked) {
		view.Changed()
	}
	return err
}

// Namespaces creates the namespaces that the sets of this cluster on the hub ask for, and labels them "true". It labels namespaces that no set asks
// for any more "false". It never deletes a namespace, and changes nothing else of it.
type Namespaces struct {
	client kubernetes.Interface
	// Label is the label of this hub, as upstream.
	Label string
	// own are the agent's namespaces.
	own []string
}

// Of returns the Namespaces for the hub of a kubeconfig. own are the agent's own namespaces.
func Of(kubeconfig []byte, client kubernetes.Interface, own ...string) (*Namespaces, error) {
	url, err := hub.URL(kubeconfig)
	if err != nil {
		return nil, err
	}
	return &Namespaces{client: client, Label: labelOf(url), own: own}, nil
}

// labelOf returns the label of one hub, as a cluster may have several. A label's name has 63 characters at most, and the hash has 64.
func labelOf(hubURL string) string {
	sum := sha256.Sum256([]byte(hubURL))
	return labelPrefix + hex.EncodeToString(sum[:])[:63]
}

// Release labels all of them as namespaces that no hub asks for any more.
func (n *Namespaces) Release(ctx context.Context) error {
	_, err := n.sync(ctx, nil)
	return err
}

// sync returns the result for each requested namespace, as far as the time permits.
func (n *Namespaces) sync(ctx context.Context, asked sets.Set[string]) (results map[string]error, err error) {
	results = map[string]error{}
	wanted := sets.New[string]()
	for name := range asked {
		if refused := n.refuse(name); refused != nil {
			results[name] = refused
		} else {
			wanted.Insert(name)
		}
	}
	labelled, err := n.labelled(ctx)
	if err != nil {
		for name := range wanted {
			results[name] = err
		}
		return results, err
	}
	errs := []error{n.drop(ctx, labelled, wanted)}
	for i := range labelled {
		if name := labelled[i].Name; wanted.Has(name) {
			wanted.Delete(name)
			results[name] = beingDeleted(&labelled[i])
		}
	}
	until := time.Now().Add(atOnce)
	for _, name := range sets.List(wanted) {
		if time.Now().After(until) {
			break
		}
		results[name] = n.apply(ctx, name)
		errs = append(errs, results[name])
	}
	return results, utilerrors.NewAggregate(errs)
}

// refuse returns why a hub may not ask for a namespace: sets must not control the namespaces of the cluster itself, since policies of the cluster may
// select by labels.
func (n *Namespaces) refuse(name string) error {
	switch {
	case len(validation.IsDNS1123Label(name)) > 0:
		return fmt.Errorf("no namespace can have the name %q", name)
	case strings.HasPrefix(name, "kube-"), name == metav1.NamespaceDefault, slices.Contains(n.own, name):
		return fmt.Errorf("namespace %s belongs to the cluster itself: the agent does not change it", name)
	}
	return nil
}

func (n *Namespaces) labelled(ctx context.Context) ([]corev1.Namespace, error) {
	list, err := n.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: n.Label + "=true"})
	if err != nil {
		return nil, fmt.Errorf("listing the namespaces with the label %s: %w", n.Label, err)
	}
	return list.Items, nil
}

// apply creates a namespace, or sets the label of an existing one, which may have an owner, and is not changed otherwise.
func (n *Namespaces) apply(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{n.Label: "true"}}}
	_, err := n.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	switch {
	case err == nil:
		klog.FromContext(ctx).Info("Created a namespace that the hub requests", "namespace", name)
		return nil
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	namespace, err = n.set(ctx, name, "true")
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Labelled a namespace that the hub requests", "namespace", name)
	return beingDeleted(namespace)
}

// drop updates the label of the namespaces that are no longer desired.
func (n *Namespaces) drop(ctx context.Context, labelled []corev1.Namespace, wanted sets.Set[string]) error {
	var errs []error
	for i := range labelled {
		name := labelled[i].Name
		if wanted.Has(name) {
			continue
		}
		_, err := n.set(ctx, name, "false")
		switch {
		case err == nil:
			klog.FromContext(ctx).Info("The hub no longer requests a namespace: it is not deleted", "namespace", name)
		case !apierrors.IsNotFound(err):
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// set sets the label of a namespace, and nothing else.
func (n *Namespaces) set(ctx context.Context, name, value string) (*corev1.Namespace, error) {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, n.Label, value)
	namespace, err := n.client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("labelling namespace %s: %w", name, err)
	}
	return namespace, nil
}

func beingDeleted(namespace *corev1.Namespace) error {
	if namespace.DeletionTimestamp.IsZero() {
		return nil
	}
	return fmt.Errorf("namespace %s is being deleted: the agent creates it again after the deletion", namespace.Name)
}
