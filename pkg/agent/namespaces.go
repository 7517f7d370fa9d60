// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// Upstream's: the label of namespaces that a hub asks for, before the hash of the hub's address, and the condition of each.
const (
	namespaceLabelPrefix        = "clusterset.open-cluster-management.io/"
	conditionNamespaceAvailable = "NamespaceAvailable"
	reasonNamespaceApplied      = "NamespaceApplied"
	reasonNamespaceApplyFailed  = "NamespaceApplyFailed"
)

// namespacesFor is how long one look at the status may make namespaces. What is left is for the next, so that no number of
// them keeps the hub from hearing of the cluster.
const namespacesFor = 10 * time.Second

// namespaces makes the namespaces of this cluster that its sets on the hub ask for, and labels them "true". Those that nobody
// asks for any more it labels "false"; it never removes one, nor changes anything else of it.
type namespaces struct {
	client kubernetes.Interface
	label  string
	// own is the agent's namespace.
	own string
}

func newNamespaces(client kubernetes.Interface, kubeconfig []byte, own string) (*namespaces, error) {
	url, err := hubURL(kubeconfig)
	if err != nil {
		return nil, err
	}
	return &namespaces{client: client, label: namespaceLabel(url), own: own}, nil
}

// namespaceLabel is of one hub, as a cluster may have several. A label's name has 63 characters at most, and the hash one more.
func namespaceLabel(hubURL string) string {
	sum := sha256.Sum256([]byte(hubURL))
	return namespaceLabelPrefix + hex.EncodeToString(sum[:])[:63]
}

// syncNamespaces has the cluster have the namespaces that it is asked for, and puts into the status which of them it has.
func (a *agent) syncNamespaces(ctx context.Context, cluster *clusterv1.ManagedCluster, status *clusterv1.ManagedClusterStatus) error {
	n, err := newNamespaces(a.spoke, a.store.get().kubeconfig, a.settings.namespace)
	if err != nil {
		return err
	}
	asked := sets.New[string]()
	// A hub that has denied the cluster, or is giving it up, asks it for nothing any more.
	if cluster.Spec.HubAcceptsClient && cluster.DeletionTimestamp.IsZero() {
		for _, namespace := range status.ManagedNamespaces {
			asked.Insert(namespace.Name)
		}
	}
	results, err := n.sync(ctx, asked)
	if len(results) < len(asked) {
		a.kick()
	}
	for i := range status.ManagedNamespaces {
		result, known := results[status.ManagedNamespaces[i].Name]
		if !known {
			continue
		}
		condition := metav1.Condition{Type: conditionNamespaceAvailable, Status: metav1.ConditionTrue,
			Reason: reasonNamespaceApplied, Message: "The namespace is there, with the hub's label"}
		if result != nil {
			condition.Status, condition.Reason = metav1.ConditionFalse, reasonNamespaceApplyFailed
			condition.Message = shorten(result.Error(), 1024)
		}
		meta.SetStatusCondition(&status.ManagedNamespaces[i].Conditions, condition)
	}
	return err
}

// sync returns what has become of each namespace that is asked for, as far as there was time.
func (n *namespaces) sync(ctx context.Context, asked sets.Set[string]) (results map[string]error, err error) {
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
	errs := []error{n.release(ctx, labelled, wanted)}
	for i := range labelled {
		if name := labelled[i].Name; wanted.Has(name) {
			wanted.Delete(name)
			results[name] = beingDeleted(&labelled[i])
		}
	}
	until := time.Now().Add(namespacesFor)
	for _, name := range sets.List(wanted) {
		if time.Now().After(until) {
			break
		}
		results[name] = n.apply(ctx, name)
		errs = append(errs, results[name])
	}
	return results, utilerrors.NewAggregate(errs)
}

// refuse says why a hub may not ask for a namespace: those of the cluster itself are nothing that a set decides about, and
// policies of the cluster may go by labels.
func (n *namespaces) refuse(name string) error {
	switch {
	case len(validation.IsDNS1123Label(name)) > 0:
		return fmt.Errorf("no namespace can have the name %q", name)
	case strings.HasPrefix(name, "kube-"), name == metav1.NamespaceDefault, name == n.own:
		return fmt.Errorf("namespace %s belongs to the cluster itself: the agent leaves it alone", name)
	}
	return nil
}

func (n *namespaces) labelled(ctx context.Context) ([]corev1.Namespace, error) {
	list, err := n.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: n.label + "=true"})
	if err != nil {
		return nil, fmt.Errorf("listing the namespaces with the label %s: %w", n.label, err)
	}
	return list.Items, nil
}

// apply makes a namespace, or labels the one that there is: it may be somebody's, and stays so.
func (n *namespaces) apply(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{n.label: "true"}}}
	_, err := n.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	switch {
	case err == nil:
		klog.FromContext(ctx).Info("Made a namespace that the hub asks for", "namespace", name)
		return nil
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("making namespace %s: %w", name, err)
	}
	namespace, err = n.set(ctx, name, "true")
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Labelled a namespace that the hub asks for", "namespace", name)
	return beingDeleted(namespace)
}

// release labels the namespaces that are not wanted any more.
func (n *namespaces) release(ctx context.Context, labelled []corev1.Namespace, wanted sets.Set[string]) error {
	var errs []error
	for i := range labelled {
		name := labelled[i].Name
		if wanted.Has(name) {
			continue
		}
		_, err := n.set(ctx, name, "false")
		switch {
		case err == nil:
			klog.FromContext(ctx).Info("The hub does not ask for a namespace any more: it stays", "namespace", name)
		case !apierrors.IsNotFound(err):
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// set writes the label, and nothing else.
func (n *namespaces) set(ctx context.Context, name, value string) (*corev1.Namespace, error) {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, n.label, value)
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
	return fmt.Errorf("namespace %s is being deleted: it is made anew when it is gone", namespace.Name)
}
