// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/work/readiness"
)

// managed is the cluster that joins or leaves.
type managed struct {
	*kit.ClusterClient
	// namespace is the agent's. scoped limits its permissions to that namespace.
	namespace string
	scoped    bool
	// keep reports whether an object of ours stays when the agent is removed. It may be nil.
	keep func(o *unstructured.Unstructured) bool
}

// managedCluster returns the cluster that the flags select, with the agent in a namespace.
func managedCluster(opts *kit.Options, namespace string) (*managed, error) {
	t, err := opts.Cluster("the managed cluster", "check --context and --kubeconfig")
	if err != nil {
		return nil, err
	}
	return &managed{ClusterClient: t, namespace: namespace}, nil
}

func (m *managed) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: m.namespace, Name: name}
}

// agent returns the agent that is deployed here, without what depends on flags.
func (m *managed) agent(works deploy.Works) deploy.Agent {
	return deploy.Agent{Namespace: m.namespace, Scoped: m.scoped, Works: works}
}

// identity is the stored state of an agent: the cluster's name on the hub and, once it was accepted, the kubeconfig for the hub.
type identity struct {
	secret      *corev1.Secret
	clusterName string
	kubeconfig  []byte
}

// identity returns an empty identity if the agent's secret does not exist.
func (m *managed) identity(ctx context.Context) (identity, error) {
	secret := &corev1.Secret{}
	if err := m.Get(ctx, m.key(registration.HubKubeconfigSecret), secret); err != nil {
		return identity{}, m.Explain(client.IgnoreNotFound(err))
	}
	return identity{secret: secret, clusterName: string(secret.Data[registration.KeyClusterName]),
		kubeconfig: secret.Data[registration.KeyKubeconfig]}, nil
}

// server returns the URL of the hub, or "".
func (i *identity) server() string { return kit.ServerOf(i.kubeconfig) }

// checkFree returns an error if another agent exists in the namespace, and warns about likely mistakes.
func (m *managed) checkFree(ctx context.Context, o *joinOptions, known bool) error {
	have, err := m.identity(ctx)
	if err != nil {
		return err
	}
	if have.clusterName != "" && have.clusterName != o.clusterName {
		return fmt.Errorf("this cluster is already registered, as %s%s: run kubectl hub unjoin --cluster-name %[1]s first, or join "+
			"with that name", have.clusterName, kit.Prefixed(" with ", have.server()))
	}
	if err := m.checkEdge(ctx, o); err != nil {
		return err
	}
	if server := have.server(); server != "" && server != o.way.server {
		m.Warn("this cluster has joined the hub %s, and now joins %s: if it is another hub, the first one will show the cluster as unavailable", server,
			o.way.server)
	}
	if known && have.clusterName == "" {
		m.Warn("the hub already has a cluster %s: if it is another cluster, join with another name; if it is this cluster, from an "+
			"earlier join, delete it on the hub or approve the certificate request of the new agent", o.clusterName)
	}
	return nil
}

// checkEdge rejects a join that would remove an edge node because flags were left out.
func (m *managed) checkEdge(ctx context.Context, o *joinOptions) error {
	if o.isEdge() {
		return nil
	}
	deployment := &appsv1.Deployment{}
	if err := m.Get(ctx, m.key(deploy.AgentName), deployment); err != nil {
		return m.Explain(client.IgnoreNotFound(err))
	}
	if _, edge := kit.AgentFlag(deployment, deploy.EdgeFlag); edge {
		return errors.New("the agent of this cluster makes it an edge node: run kubectl hub agent install to change it, or kubectl hub agent uninstall before join")
	}
	return nil
}

// deploy creates missing objects, updates ours, and prunes those of ours that are no longer desired. It first checks that it can complete.
func (m *managed) deploy(ctx context.Context, objects []*unstructured.Unstructured) error {
	objects, err := m.withoutServed(ctx, objects)
	if err != nil {
		return err
	}
	have := make([]client.Object, len(objects))
	for i, o := range objects {
		have[i], err = m.Objects.Observe(ctx, o)
		if err != nil {
			return m.Explain(err)
		}
	}
	if err := m.tryRights(ctx, objects); err != nil {
		return err
	}
	if err := m.dropFormerWorks(ctx, objects); err != nil {
		return err
	}
	if err := pruneCredentials(ctx, m, objects); err != nil {
		return err
	}
	for i, o := range objects {
		if err := m.Objects.Apply(ctx, o, have[i]); err != nil {
			return fmt.Errorf("creating %s: %w", remote.IDOf(o), m.Explain(err))
		}
		if have[i] == nil {
			_, _ = fmt.Fprintln(m.ErrOut, kit.Created(o))
		}
	}
	return nil
}

// awaitJoined waits until the agent is ready, which it is while it can renew its lease on the hub, and no pod of an earlier template is left: it would
// renew the lease, too.
func (m *managed) awaitJoined(ctx context.Context, name, accept string) error {
	return m.Await(ctx, "cluster "+name+" to join", func(ctx context.Context) (bool, string, error) {
		deployment := &unstructured.Unstructured{}
		deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		if err := m.Get(ctx, m.key(deploy.AgentName), deployment); err != nil {
			return false, "", err
		}
		ready, why := readiness.Of(deployment)
		if ready == readiness.Ready {
			return true, "", nil
		}
		state, err := m.podState(ctx, deploy.AgentName)
		if state != "" || err != nil {
			return false, state, err
		}
		have, err := m.identity(ctx)
		if err != nil || len(have.kubeconfig) > 0 {
			return false, "the agent has its identity: " + why, err
		}
		return false, "the hub must accept it: " + accept, nil
	})
}

// podState returns what prevents a pod from running, or "".
func (m *managed) podState(ctx context.Context, name string) (string, error) {
	return m.PodState(ctx, m.namespace, name)
}
