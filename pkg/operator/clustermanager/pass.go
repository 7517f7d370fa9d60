// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/kubeconfig"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

// pass is one reconcile of a ClusterManager, with what it observed.
type pass struct {
	*reconciler
	cm *operatorv1.ClusterManager

	plan *plan
	// hub and management are the same side in mode Default.
	hub, management *side
	hubHas, has     []*unstructured.Unstructured
	source          *kubeconfig.Source
	cluster         kubeconfig.Minter

	// unready, failed and reason are for the conditions ReadyToApply and Applied.
	unready error
	failed  error
	reason  string
	// pods are the observed Deployments, and served is the observed state of the APIServices on the hub.
	pods   []*appsv1.Deployment
	served []serviceState
	// observed reports that pods and served are known.
	observed bool
	next     time.Time
}

// fail records why not all objects were applied.
func (p *pass) fail(reason string, err error) error {
	p.reason, p.failed = reason, err
	return err
}

// again schedules the next reconcile at that time or earlier.
func (p *pass) again(at time.Time) {
	if p.next.IsZero() || at.Before(p.next) {
		p.next = at
	}
}

// run reconciles, and returns the first error. Waiting for others to act is not an error.
func (p *pass) run(ctx context.Context) error {
	cm := p.cm
	var err error
	// The address of the hub is not known yet. The rest of the spec can be checked already, and the namespace must exist for the user's Secret.
	p.plan, err = planOf(cm, p.images(), "unknown")
	if err != nil {
		return waits(p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, &kit.Outcome{Reason: operatorv1.ReasonRuntimeResourceApplyFailed, Message: err.Error()}))
	}
	p.management, err = p.reconciler.management(ctx, cm)
	if err != nil {
		return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
	}
	p.has, err = p.management.there(ctx)
	if err != nil {
		return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
	}
	p.hub, p.hubHas = p.management, p.has
	if !cm.IsDetached() {
		if err := p.begin(ctx, p.management.applier.Owner.Labels[labelManagement]); err != nil {
			return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
		}
	}
	way := ""
	if cm.IsDetached() {
		if err := p.makeNamespace(ctx); err != nil {
			return waits(p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err))
		}
		p.unready = p.connect(ctx)
		if p.unready != nil {
			return waits(p.unready)
		}
		way, err = wayOf(p.source)
		if err != nil {
			return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
		}
	}
	p.plan, err = planOf(cm, p.images(), way)
	if err != nil {
		return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
	}
	if err := p.apply(ctx); err != nil {
		return waits(err)
	}
	return p.observe(ctx)
}

// waits returns the error if it is not for a user to solve.
func waits(err error) error {
	var out *kit.Outcome
	if errors.As(err, &out) {
		return out.Err
	}
	return err
}

// makeNamespace creates the namespace of the servers, so that the user can create the Secret in it.
func (p *pass) makeNamespace(ctx context.Context) error {
	for _, o := range p.plan.management {
		if !namespaces.of(o) {
			continue
		}
		if err := p.management.apply(ctx, []*unstructured.Unstructured{o}, p.has); err != nil {
			return err
		}
		there, err := p.management.applier.Get(ctx, o)
		if err != nil {
			return p.management.failed("reading the", "namespace "+o.GetName(), err)
		}
		// Deleting the Klusterlet deletes the namespace, and the servers with it.
		if there != nil && isKlusterlets(there) {
			return kit.Outcomef(operatorv1.ReasonRuntimeResourceApplyFailed, "the namespace %s belongs to the agent of a Klusterlet: delete the ClusterManager and create it with another "+
				"name, or in mode Detached, which has its own namespaces", o.GetName())
		}
	}
	return nil
}

// connect connects to the hub. It returns a *kit.Outcome if the user must act.
func (p *pass) connect(ctx context.Context) error {
	source, err := p.readSource(ctx)
	if err != nil {
		return err
	}
	connection, err := p.hubs.of(p.cm.Name, source)
	if err != nil {
		return err
	}
	hub := newSide("hub", connection.client, kindsWhere(func(k kind) bool { return k.onHub }), p.management.applier.Owner, connection.cluster.Explain)
	hub.discovery = connection.discovery
	if err := p.recognize(ctx, hub); err != nil {
		return err
	}
	p.source, p.cluster, p.hub = source, connection.cluster, hub
	name := p.cm.Name
	connection.watch(hub.applier.Owner, func() { p.enqueue(name) })
	p.hubHas, err = hub.there(ctx)
	if err != nil {
		return err
	}
	return nil
}

// readSourceOf reads the user's Secret.
func (r *reconciler) readSourceOf(ctx context.Context, cm *operatorv1.ClusterManager) (*kubeconfig.Source, error) {
	key := types.NamespacedName{Namespace: cm.ServerNamespace(), Name: operatorv1.ExternalHubKubeconfig}
	secret := &corev1.Secret{}
	if err := r.live.Get(ctx, key, secret); kit.IsGone(err) {
		return nil, kit.Outcomef(operatorv1.ReasonClusterManagerPrepareFailed, "Secret %s does not exist: create it, with a kubeconfig of an admin "+
			"of the hub under the key %s", key, operatorv1.KeyKubeconfig)
	} else if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	source, err := kubeconfig.Parse(secret.Data[operatorv1.KeyKubeconfig])
	if err != nil {
		return nil, kit.Outcomef(operatorv1.ReasonClusterManagerPrepareFailed, "Secret %s, key %s: %v", key, operatorv1.KeyKubeconfig, err)
	}
	return source, nil
}

func (p *pass) readSource(ctx context.Context) (*kubeconfig.Source, error) {
	return p.readSourceOf(ctx, p.cm)
}

// recognize rejects clusters that cannot be the hub: the management cluster, and a different cluster than before. The identity of the hub is recorded
// before anything is written to it.
func (p *pass) recognize(ctx context.Context, hub *side) error {
	uid, err := identityOf(ctx, hub)
	if err != nil {
		return err
	}
	if err := checkHub(p.cm, uid, p.management.applier.Owner); err != nil {
		return err
	}
	return p.begin(ctx, uid)
}

// begin records the identity of the hub before anything is written to it.
func (p *pass) begin(ctx context.Context, uid string) error {
	_, err := kit.Patch(ctx, p.client, p.cm, func(cm *operatorv1.ClusterManager) {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, annotationHub, uid)
	})
	return err
}

// identityOf returns the identity of a cluster: the UID of its namespace kube-system.
func identityOf(ctx context.Context, s *side) (string, error) {
	system := &corev1.Namespace{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", s.failed("reading the", "namespace "+metav1.NamespaceSystem, err)
	}
	if kubeconfig.IsUID(system.UID) {
		return string(system.UID), nil
	}
	return "", errors.New("the namespace kube-system of the hub has no UID, or none that can be one")
}

func checkHub(cm *operatorv1.ClusterManager, uid string, owner remote.Owner) error {
	before := cm.Annotations[annotationHub]
	switch {
	case uid == owner.Labels[labelManagement]:
		return kit.Outcomef(operatorv1.ReasonClusterManagerPrepareFailed, "Secret %s/%s leads to the management cluster itself: put the kubeconfig "+
			"of another cluster there, or create a ClusterManager in mode Default", cm.ServerNamespace(), operatorv1.ExternalHubKubeconfig)
	case before != "" && before != uid:
		return kit.Outcomef(operatorv1.ReasonClusterManagerPrepareFailed, "Secret %s/%s leads to another cluster than before (its kube-system has not "+
			"the UID %s): restore the former kubeconfig, or create a new ClusterManager", cm.ServerNamespace(), operatorv1.ExternalHubKubeconfig, kit.Message(before))
	}
	return nil
}

// wayOf returns a text for how the hub is reached and trusted. It has no password of a proxy, since the text is shown to users.
func wayOf(source *kubeconfig.Source) (string, error) {
	data, err := source.Minted()
	if err != nil {
		return "", err
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return "", errors.New("the kubeconfig that was made of the source cannot be read")
	}
	sum := sha256.New()
	for _, cluster := range config.Clusters {
		fmt.Fprintf(sum, "%q %q %q %q", cluster.Server, cluster.TLSServerName, cluster.CertificateAuthorityData, withoutPassword(cluster.ProxyURL))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// apply applies all desired objects. On the hub the accounts come first, then their kubeconfigs, then the pods, and the APIServices once a server
// runs: a hub with an APIService that is not served deletes no namespace.
func (p *pass) apply(ctx context.Context) error {
	if p.cm.IsDetached() {
		if err := p.hub.apply(ctx, p.plan.hub, p.hubHas); err != nil {
			return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
		}
		if err := p.mint(ctx); err != nil {
			return p.fail(operatorv1.ReasonServiceAccountSyncFailed, err)
		}
	}
	if err := p.management.apply(ctx, p.plan.management, p.has); err != nil {
		return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
	}
	if err := p.readPods(ctx); err != nil {
		return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
	}
	if p.serves() {
		if err := p.hub.apply(ctx, p.plan.services, p.hubHas); err != nil {
			return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
		}
	}
	if err := p.prune(ctx); err != nil {
		return p.fail(operatorv1.ReasonRuntimeResourceApplyFailed, err)
	}
	return nil
}

// serves reports whether APIServices must exist: from the first running server on.
func (p *pass) serves() bool {
	for _, o := range p.hubHas {
		if apiServices.of(o) {
			return true
		}
	}
	for _, d := range p.pods {
		if d.Name == deploy.APIServer && d.Status.AvailableReplicas > 0 {
			return true
		}
	}
	return false
}

// mint reconciles the kubeconfigs with which the pods reach the hub.
func (p *pass) mint(ctx context.Context) error {
	for _, account := range p.plan.accounts {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(accounts.GroupVersionKind)
		if err := p.hub.client.Get(ctx, client.ObjectKey{Namespace: account.namespace, Name: account.name}, o); err != nil {
			return p.hub.failed("reading", "ServiceAccount "+account.namespace+"/"+account.name, err)
		}
		state, err := p.minter.Ensure(ctx, kubeconfig.Wanted{
			Secret: p.minted(account), Labels: p.management.applier.Owner.Labels, Source: p.source, Cluster: p.cluster,
			Account: kubeconfig.Account{Namespace: account.namespace, Name: account.name, UID: o.GetUID()},
		})
		p.again(state.Next)
		if err != nil && !state.Usable {
			return kit.Outcomef(operatorv1.ReasonRuntimeResourceApplyFailed, "the kubeconfig in Secret %s: %v", p.minted(account), err)
		}
	}
	return nil
}

func (p *pass) minted(a account) types.NamespacedName {
	return types.NamespacedName{Namespace: p.cm.ServerNamespace(), Name: deploy.KubeconfigSecret(a.name)}
}

// prune deletes what the ClusterManager no longer asks for.
func (p *pass) prune(ctx context.Context) error {
	keep := map[remote.ID]bool{}
	for _, o := range p.wanted() {
		keep[remote.IDOf(o)] = true
	}
	err := p.management.prune(ctx, p.has, keep)
	if p.cm.IsDetached() {
		err = errors.Join(err, p.hub.prune(ctx, p.hubHas, keep))
	}
	return err
}

// wanted returns all desired objects of both clusters.
func (p *pass) wanted() (all []*unstructured.Unstructured) {
	all = append(all, p.plan.hub...)
	all = append(all, p.plan.management...)
	for _, a := range p.plan.accounts {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(secrets.GroupVersionKind)
		o.SetNamespace(p.minted(a).Namespace)
		o.SetName(p.minted(a).Name)
		all = append(all, o)
	}
	return append(all, p.plan.services...)
}

// readPods reads the Deployments.
func (p *pass) readPods(ctx context.Context) error {
	objects, err := p.management.list(ctx, deployments)
	if err != nil {
		return err
	}
	p.pods = nil
	for _, o := range objects {
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
			return err
		}
		p.pods = append(p.pods, d)
	}
	return nil
}

// withoutPassword returns a URL without its password, for messages.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Redacted()
}
