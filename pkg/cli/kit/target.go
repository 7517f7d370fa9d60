// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// FieldOwner is the field manager of what commands create.
const FieldOwner = client.FieldOwner(deploy.ManagedBy)

// RequestTimeout is the time limit for a request that is tried before anything is changed.
const RequestTimeout = 15 * time.Second

// CRDKind is the kind of CustomResourceDefinitions.
var CRDKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

const (
	// SystemNamespacePrefix is the prefix of the names of Kubernetes' own namespaces.
	SystemNamespacePrefix = "kube-"
	// HubNamespacePrefix is the prefix of the names of the namespaces of a hub.
	HubNamespacePrefix = "clusterhub-"
)

// ClusterClient is a cluster in which a command creates objects.
type ClusterClient struct {
	client.Client
	*Options
	// Config is the configuration of the client.
	Config *rest.Config
	// Objects applies the objects of this program.
	Objects *remote.Applier
	// what describes the cluster for the user, and next says what to check if it cannot be reached.
	what, next string
}

// Scheme has all kinds that commands read and write as typed objects.
var Scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	Must(kubescheme.AddToScheme(scheme))
	Must(operatorv1.AddToScheme(scheme))
	return scheme
}()

// Owner is the owner of objects with the label.
var Owner = remote.Owner{Labels: map[string]string{deploy.LabelManagedBy: deploy.ManagedBy}}

// Cluster returns the cluster that the flags select.
func (o *Options) Cluster(what, next string) (*ClusterClient, error) {
	config, err := o.RESTConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: %s. kubectl config get-contexts shows all contexts", err, next)
	}
	return o.targetAt(config, what, next)
}

func (o *Options) targetAt(config *rest.Config, what, next string) (*ClusterClient, error) {
	// All requests except watches have a time limit.
	if config.Timeout == 0 {
		config.Timeout = 30 * time.Second
	}
	c, err := client.New(rest.CopyConfig(config), client.Options{Scheme: Scheme})
	if err != nil {
		return nil, fmt.Errorf("configuring the connection to %s: %w", what, err)
	}
	objects := &remote.Applier{Client: c, Owner: Owner, Strategy: remote.ServerSideApply(deploy.ManagedBy)}
	return &ClusterClient{Client: c, Options: o, Config: config, Objects: objects, what: what, next: next}, nil
}

// Explain explains the error of a request to the cluster.
func (t *ClusterClient) Explain(err error) error {
	if theirs := (*remote.NotOurs)(nil); errors.As(err, &theirs) {
		return fmt.Errorf("%s already exists and was not created by kubectl hub: delete it, or let kubectl hub change it by adding the label %s",
			theirs.Object, labels.Set(theirs.Owner.Labels))
	}
	return ExplainUnreachable(t.what+" "+t.Config.Host, err, t.next)
}

// Remove deletes an object that this program has created, and reports whether it did.
func (t *ClusterClient) Remove(ctx context.Context, o client.Object) (bool, error) {
	have, err := t.Objects.Get(ctx, o)
	if err != nil {
		return false, t.Explain(err)
	}
	ours, err := t.Objects.Delete(ctx, have)
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", remote.IDOf(o), t.Explain(err))
	}
	if ours {
		_, _ = fmt.Fprintln(t.ErrOut, Outcome(o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), "deleted"))
	}
	return ours, nil
}

// PodState returns the state of the first pod with the agent label of that name that is not being deleted.
func (t *ClusterClient) PodState(ctx context.Context, namespace, name string) (string, error) {
	pods := &corev1.PodList{}
	err := t.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{deploy.AgentLabel: name})
	if err != nil {
		return "", err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() {
			return stateOf(&pods.Items[i]), nil
		}
	}
	return "its pod does not exist yet", nil
}

func stateOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			return ""
		case c.State.Waiting != nil:
			last := ""
			if t := c.LastTerminationState.Terminated; t != nil {
				last = lastLine(t.Message)
			}
			return command.Printable("its container is waiting: " + c.State.Waiting.Reason + Prefixed(": ", c.State.Waiting.Message) + Prefixed(": ", last))
		case c.State.Terminated != nil:
			return "its container has terminated: " + command.Printable(lastLine(c.State.Terminated.Message))
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			return "its pod is not scheduled" + Prefixed(": ", command.Printable(c.Message))
		}
	}
	return "its pod has not started yet"
}

// lastLine returns the last line of a log.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return lines[len(lines)-1]
}

// ServerOf returns the URL of the server in the current context of a kubeconfig, or "".
func ServerOf(kubeconfig []byte) string {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return ""
	}
	if current, ok := config.Contexts[config.CurrentContext]; ok && config.Clusters[current.Cluster] != nil {
		return config.Clusters[current.Cluster].Server
	}
	return ""
}
