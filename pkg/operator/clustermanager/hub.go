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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
)

// readSource reads the user's Secret.
func (p *pass) readSource(ctx context.Context) error {
	key := types.NamespacedName{Namespace: p.cm.ServerNamespace(), Name: operatorv1.ExternalHubKubeconfig}
	secret := &corev1.Secret{}
	if err := p.live.Get(ctx, key, secret); kit.IsGone(err) {
		return kit.Outcomef(operatorv1.ReasonClusterManagerPrepareFailed, "Secret %s does not exist: create it, with a kubeconfig of an admin "+
			"of the hub under the key %s", key, operatorv1.KeyKubeconfig)
	} else if err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	var err error
	p.source, err = mint.Parse(secret.Data[operatorv1.KeyKubeconfig])
	if err != nil {
		return kit.Outcomef(operatorv1.ReasonClusterManagerPrepareFailed, "Secret %s, key %s: %v", key, operatorv1.KeyKubeconfig, err)
	}
	return nil
}

// connect connects to the hub. It sends no request.
func (p *pass) connect(context.Context) error {
	var err error
	p.connection, err = p.hubs.of(p.cm.Name, p.source)
	if err != nil {
		return err
	}
	onHub := kindsWhere(func(k kind) bool { return k.onHub })
	p.hub = newSide("hub", p.connection.client, onHub, p.management.applier.Owner, p.connection.cluster.Explain)
	p.hub.discovery = p.connection.discovery
	return nil
}

// identify rejects clusters that cannot be the hub: the management cluster, and a different cluster than before. It records the identity of the hub.
func (p *pass) identify(ctx context.Context) error {
	uid, err := p.checkIdentity(ctx)
	if err != nil {
		return err
	}
	return p.recordHub(ctx, uid)
}

// checkIdentity returns the identity of the hub, or an error if the cluster cannot be the hub.
func (p *pass) checkIdentity(ctx context.Context) (uid string, err error) {
	uid, err = identityOf(ctx, p.hub)
	if err != nil {
		return "", err
	}
	return uid, checkHub(p.cm, uid, p.management.applier.Owner)
}

// recordHub records the identity of the hub before anything is written to it.
func (p *pass) recordHub(ctx context.Context, uid string) error {
	_, err := kit.Patch(ctx, p.client, p.cm, func(cm *operatorv1.ClusterManager) {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, annotationHub, uid)
	})
	return err
}

// readHub reads the objects of the hub, and watches them from then on.
func (p *pass) readHub(ctx context.Context) error {
	name := p.cm.Name
	p.connection.watch(p.hub.applier.Owner, func() { p.enqueue(name) })
	var err error
	p.hubHas, err = p.hub.observed(ctx)
	return err
}

// identityOf returns the identity of a cluster: the UID of its namespace kube-system.
func identityOf(ctx context.Context, s *side) (string, error) {
	system := &corev1.Namespace{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", s.failed("reading the", "namespace "+metav1.NamespaceSystem, err)
	}
	if mint.IsUID(system.UID) {
		return string(system.UID), nil
	}
	return "", errors.New("the namespace kube-system of the hub has no UID, or none that can be one")
}

// checkHub returns an error if the cluster with the identity cannot be the hub.
func checkHub(cm *operatorv1.ClusterManager, uid string, owner apply.Owner) error {
	before := cm.Annotations[annotationHub]
	switch {
	case uid == owner.Labels[klusterlet.LabelManagement]:
		return kit.Outcomef(operatorv1.ReasonClusterManagerPrepareFailed, "Secret %s/%s leads to the management cluster itself: put the kubeconfig "+
			"of another cluster there, or create a ClusterManager in mode Default", cm.ServerNamespace(), operatorv1.ExternalHubKubeconfig)
	case before != "" && before != uid:
		return kit.Outcomef(operatorv1.ReasonClusterManagerPrepareFailed, "Secret %s/%s leads to another cluster than before (its kube-system has not "+
			"the UID %s): restore the former kubeconfig, or create a new ClusterManager", cm.ServerNamespace(), operatorv1.ExternalHubKubeconfig, kit.Message(before))
	}
	return nil
}

// connectionText returns a text for how the hub is reached and trusted. It has no password of a proxy, since the text is shown to users.
func connectionText(source *mint.Source) (string, error) {
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

// withoutPassword returns a URL without its password, for messages.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Redacted()
}
