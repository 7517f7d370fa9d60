// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/agent/work/withdraw"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
	sources "github.com/clusterhub/clusterhub/pkg/remote/mint"
)

// annotationWorks tells hub-operator what happens to the objects of works: see pkg/operator/klusterlet.
const annotationWorks = "operator.clusterhub.dev/works-on-deletion"

// leavingOptions are the flags of unjoin for a cluster whose agent runs on another one.
type leavingOptions struct {
	management.ModeFlags
	name  string
	purge bool
}

func (o *leavingOptions) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	o.AddModeTo(cmd, "Where the agent runs: "+management.ModeDefault+" is on the managed cluster, "+management.ModeDetached+" and "+management.ModeHosted+" are on the management cluster.")
	o.AddManagementTo(fs)
	fs.StringVar(&o.name, klusterletFlag, "", "Name of the Klusterlet on the management cluster. Defaults to the one with the --cluster-name.")
	management.AddPurgeFlag(fs, &o.purge)
}

func (o *leavingOptions) validate() error {
	if err := o.Validate(); err != nil {
		return err
	}
	if !o.IsOutside() && (o.name != "" || o.purge) {
		return fmt.Errorf("--%s and --%s are for --%s=%s", klusterletFlag, management.PurgeFlag, management.ModeFlag, management.ModeDetached)
	}
	return nil
}

// runDetached notifies the hub, and lets hub-operator delete everything. It can be run again wherever it was interrupted.
func (o *unjoinOptions) runDetached(ctx context.Context) error {
	m, err := management.Connect(ctx, o.Options, &o.leaving.ModeFlags)
	if err != nil {
		return err
	}
	k, err := findKlusterlet(ctx, m, o)
	if err != nil {
		return err
	}
	left := false
	if k != nil {
		left, err = unjoinKlusterlet(ctx, m, k, o)
		if err != nil {
			return err
		}
	}
	purged, err := m.PurgeOperator(ctx, o.leaving.purge)
	if err != nil {
		return err
	}
	result := struct {
		Name    string `json:"name"`
		Left    bool   `json:"left"`
		Removed bool   `json:"removed"`
		Purged  bool   `json:"operatorRemoved"`
	}{o.clusterName, left, k != nil, purged}
	switch {
	case left:
		return o.out.Print(o.Out, result, "Cluster %s has left its hub. Its ManagedCluster still exists; an admin can delete it:\n\n    kubectl delete managedcluster %[1]s\n", o.clusterName)
	case k != nil:
		return o.out.Print(o.Out, result, "The agent is removed. This run did not notify the hub; if it has a ManagedCluster %s, delete it there.\n", o.clusterName)
	}
	return o.out.Print(o.Out, result, "No agent of cluster %s found on the management cluster.\n", o.clusterName)
}

// findKlusterlet returns the Klusterlet of the cluster, or nil.
func findKlusterlet(ctx context.Context, m *management.Client, o *unjoinOptions) (*operatorv1.Klusterlet, error) {
	var found []*operatorv1.Klusterlet
	list, err := listKlusterlets(ctx, m)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		k := &list.Items[i]
		if o.leaving.name == k.Name || o.leaving.name == "" && k.IsDetached() && clusterOf(k) == o.clusterName {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	if len(found) > 1 {
		var names []string
		for _, k := range found {
			names = append(names, k.Name)
		}
		return nil, fmt.Errorf("the management cluster has several Klusterlets of clusters with the name %s: choose one by --%s: %s", o.clusterName, klusterletFlag, strings.Join(names, ", "))
	}
	switch k := found[0]; {
	case !k.IsDetached():
		return nil, fmt.Errorf("the Klusterlet %s has the mode %s: its agent runs on the cluster itself. kubectl delete klusterlet %[1]s removes it there", k.Name, k.Mode())
	case clusterOf(k) != o.clusterName:
		return nil, fmt.Errorf("the Klusterlet %s is for the cluster %q of its hub, not for %s: check --%s and --cluster-name", k.Name, clusterOf(k), o.clusterName, klusterletFlag)
	case !kit.Owner.Owns(k):
		return nil, fmt.Errorf("the Klusterlet %s was not created by kubectl hub: kubectl delete klusterlet %[1]s removes it, or let kubectl hub do so by adding the label %s", k.Name,
			metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: kit.Owner.Labels}))
	default:
		return k, nil
	}
}

// unjoinKlusterlet reports whether the hub was notified that the cluster leaves.
func unjoinKlusterlet(ctx context.Context, m *management.Client, k *operatorv1.Klusterlet, o *unjoinOptions) (left bool, err error) {
	namespace := k.AgentNamespace()
	if err := m.CheckRights(ctx, []authorizationv1.ResourceAttributes{
		{Verb: "delete", Group: operatorv1.GroupName, Resource: "klusterlets"}, {Verb: "patch", Group: operatorv1.GroupName, Resource: "klusterlets"},
		{Verb: "get", Resource: "secrets", Namespace: namespace},
	}, "let a cluster leave", "have an admin of it run this command"); err != nil {
		return false, err
	}
	if o.works == "" && k.DeletionTimestamp.IsZero() {
		if err := checkNoWorks(ctx, m, k); err != nil {
			return false, err
		}
	}
	secret := &corev1.Secret{}
	err = m.Get(ctx, client.ObjectKey{Namespace: namespace, Name: operatorv1.HubKubeconfigSecret}, secret)
	if client.IgnoreNotFound(err) != nil {
		return false, m.Explain(err)
	}
	if len(secret.Data[registration.KeyKubeconfig]) > 0 {
		// Use half of the time, so that --force has the rest.
		if err := denyOnHub(ctx, m, secret, o.clusterName, o.Timeout/2); err == nil {
			left = true
		} else if ctx.Err() != nil || !o.force {
			return false, fmt.Errorf("notifying the hub that the cluster leaves: %w (--force removes the agent anyway; then run kubectl hub deny -c %s on the hub)", err, o.clusterName)
		} else {
			m.Warn("the hub was not notified that the cluster leaves: %v", err)
		}
	}
	if o.works != "" {
		if err := markKlusterlet(ctx, m, k, o.works); err != nil {
			return false, err
		}
	}
	return left, m.DeleteAndWait(ctx, k, "Klusterlet "+k.Name, func() string { return management.DeletionState(k, k.Status.Conditions) })
}

// markKlusterlet sets the annotation by which hub-operator knows what happens to the objects of works.
func markKlusterlet(ctx context.Context, m *management.Client, k *operatorv1.Klusterlet, fate string) error {
	said := map[withdraw.Fate]string{withdraw.Delete: "Delete", withdraw.Keep: "Keep"}[withdraw.Fate(fate)]
	if k.Annotations[annotationWorks] == said {
		return nil
	}
	before := k.DeepCopy()
	metav1.SetMetaDataAnnotation(&k.ObjectMeta, annotationWorks, said)
	if err := m.Patch(ctx, k, client.MergeFrom(before), kit.FieldOwner); err != nil {
		return fmt.Errorf("changing %s: %w", remote.IDOf(&metav1.PartialObjectMetadata{TypeMeta: k.TypeMeta, ObjectMeta: k.ObjectMeta}), m.Explain(err))
	}
	return nil
}

// checkNoWorks returns an error if there are works and the user has not chosen what happens to them.
func checkNoWorks(ctx context.Context, m *management.Client, k *operatorv1.Klusterlet) error {
	choose := fmt.Sprintf("choose by --%s=%s or --%[1]s=%[3]s what happens to the objects, or delete the works on the hub first, while the agent runs", worksFlag, withdraw.Delete, withdraw.Keep)
	secret := &corev1.Secret{}
	err := m.Get(ctx, client.ObjectKey{Namespace: k.AgentNamespace(), Name: operatorv1.ExternalManagedKubeconfig}, secret)
	if apierrors.IsNotFound(err) {
		return nil // hub-operator has not reached the cluster, and cannot
	}
	if err != nil {
		return m.Explain(err)
	}
	works, objects, err := worksOn(ctx, secret.Data[operatorv1.KeyKubeconfig], deploy.Klusterlet{Name: k.Name}.AgentID())
	if err != nil {
		return fmt.Errorf("checking whether the agent has applied works to the managed cluster: %w. If it has, %s", err, choose)
	}
	if works > 0 {
		return fmt.Errorf("the agent has applied %s with %s to the managed cluster: %s", counted(works, "work"), counted(objects, "object"), choose)
	}
	return nil
}

// worksOn reads the work records of an agent in a managed cluster, with the credentials that hub-operator has.
func worksOn(ctx context.Context, data []byte, agentID string) (works, objects int, err error) {
	source, err := sources.Parse(data)
	if err != nil {
		return 0, 0, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return 0, 0, err
	}
	config.Timeout, config.QPS = kit.RequestTimeout, -1
	cluster, err := withdraw.New(rest.AddUserAgent(config, "kubectl-hub"))
	if err != nil {
		return 0, 0, err
	}
	own, _, err := cluster.Records(ctx, agentID)
	if err != nil {
		return 0, 0, errors.New(source.Redact(kit.ExplainUnreachable("the managed cluster "+config.Host, err, "check the Secret "+operatorv1.ExternalManagedKubeconfig).Error()))
	}
	for _, record := range own {
		objects += record.Objects
	}
	return len(own), objects, nil
}

// denyOnHub makes the cluster leave with the agent's own identity, from this machine.
func denyOnHub(ctx context.Context, m *management.Client, identity *corev1.Secret, name string, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s, half of --timeout", patience))
	defer cancel()
	config, err := configOf(identity)
	if err != nil {
		return err
	}
	h, err := kit.NewHub(config)
	if err != nil {
		return err
	}
	clusters, notified := h.Clusters.ClusterV1().ManagedClusters(), false
	return m.Await(ctx, "the hub to revoke the rights of cluster "+name, func(ctx context.Context) (bool, string, error) {
		cluster, err := clusters.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err), notified && apierrors.IsUnauthorized(err):
			return true, "", nil // it is gone, or has no permissions any more
		case err != nil:
			return false, "", kit.ExplainUnreachable("the hub "+config.Host, err, "this machine must be able to reach it")
		}
		if cluster.Spec.HubAcceptsClient {
			cluster.Spec.HubAcceptsClient = false
			cluster, err = clusters.Update(ctx, cluster, metav1.UpdateOptions{})
			if apierrors.IsConflict(err) {
				return false, "", nil
			}
			if err != nil {
				return false, "", err
			}
		}
		notified = true
		accepted := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted)
		return accepted == nil || accepted.Reason == registration.ReasonDenied, "it was notified", nil
	})
}

// configOf returns the configuration for the hub of an agent. It ignores names of files and programs in the agent's kubeconfig.
func configOf(secret *corev1.Secret) (*rest.Config, error) {
	stored, err := clientcmd.Load(secret.Data[registration.KeyKubeconfig])
	if err != nil {
		return nil, fmt.Errorf("the Secret %s/%s has no kubeconfig", secret.Namespace, secret.Name)
	}
	current := stored.Contexts[stored.CurrentContext]
	if current == nil || stored.Clusters[current.Cluster] == nil || len(secret.Data[registration.KeyTLSCert]) == 0 {
		return nil, fmt.Errorf("the Secret %s/%s has no client certificate of an agent that this machine can use without running a program", secret.Namespace, secret.Name)
	}
	from := stored.Clusters[current.Cluster]
	if err := kit.CheckServer(from.Server); err != nil {
		return nil, fmt.Errorf("the Secret %s/%s has an invalid server", secret.Namespace, secret.Name)
	}
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"hub": {Server: from.Server, CertificateAuthorityData: from.CertificateAuthorityData,
			ProxyURL: from.ProxyURL, TLSServerName: from.TLSServerName}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"hub": {ClientCertificateData: secret.Data[registration.KeyTLSCert],
			ClientKeyData: secret.Data[registration.KeyTLSKey]}},
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "hub"}},
		CurrentContext: "hub",
	}
	way, err := clientcmd.NewDefaultClientConfig(config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the Secret %s/%s has no valid configuration for the hub: %w", secret.Namespace, secret.Name, err)
	}
	way.Timeout, way.QPS = kit.RequestTimeout, -1
	return rest.AddUserAgent(way, "kubectl-hub"), nil
}
