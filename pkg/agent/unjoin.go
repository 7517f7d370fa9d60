// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// unjoiner takes a cluster out of its hub, with the cluster's own identity, and then removes that.
type unjoiner struct {
	spoke   kubernetes.Interface
	store   *store
	connect func(*rest.Config) (*hub, error)
	random  func() float64
	out     io.Writer
	// force removes what is on the cluster even if the hub cannot be told.
	force bool
}

func newUnjoinCommand() *cobra.Command {
	spoke := &SpokeOptions{Namespace: registration.AgentNamespace}
	timeout, force := 5*time.Minute, false
	cmd := &cobra.Command{
		Use:   "unjoin",
		Short: "Take this cluster out of its hub, and remove its identity",
		Long: "unjoin tells the hub with the cluster's own identity that the cluster leaves, waits until the hub has taken " +
			"the cluster's rights away, and removes the agent's secret. The agent itself has to be removed too: otherwise it " +
			"registers the cluster again when it is started next. The ManagedCluster stays on the hub, not accepted.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if errs := spoke.validate(); len(errs) > 0 {
				return errors.Join(errs...)
			}
			if timeout <= 0 {
				return fmt.Errorf("--timeout must be above 0, not %s", timeout)
			}
			config, err := spoke.config()
			if err != nil {
				return fmt.Errorf("reading --spoke-kubeconfig: %w", err)
			}
			config.Timeout = spokeTimeout
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("reading --spoke-kubeconfig: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			u := &unjoiner{spoke: client, store: &store{client: client, namespace: spoke.Namespace}, connect: connect,
				random: rand.Float64, out: cmd.OutOrStdout(), force: force}
			return u.run(ctx)
		},
	}
	spoke.addFlags(cmd.Flags())
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "How long it may take until the hub has taken the cluster's rights away.")
	cmd.Flags().BoolVar(&force, "force", force, "Remove the agent's secret even if the hub cannot be told.")
	return cmd
}

func (u *unjoiner) say(format string, args ...any) { _, _ = fmt.Fprintf(u.out, format+"\n", args...) }

func (u *unjoiner) run(ctx context.Context) error {
	s, err := u.store.load(ctx)
	if err != nil {
		return err
	}
	if s.clusterName == "" {
		u.say("This cluster is registered with no hub: there is no secret %s/%s.", u.store.namespace,
			registration.HubKubeconfigSecret)
		return nil
	}
	err = u.leave(ctx, s)
	switch {
	case err != nil && !u.force:
		return fmt.Errorf("the hub was not told that cluster %s leaves: %w (--force removes the agent's secret all the same)",
			s.clusterName, err)
	case err != nil:
		u.say("The hub could not be told: %v. An admin has to set hubAcceptsClient of ManagedCluster %s to false.", err,
			s.clusterName)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // the hub has had all the time; the rest is on this cluster
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 3*spokeTimeout)
			defer cancel()
		}
	}
	u.release(ctx, s)
	if err := u.remove(ctx); err != nil {
		return err
	}
	u.say("Cluster %s has left the hub.", s.clusterName)
	return nil
}

// leave ends once the hub has taken the cluster's rights away.
func (u *unjoiner) leave(ctx context.Context, s state) error {
	if len(s.kubeconfig) == 0 {
		u.say("Cluster %s was never accepted: there is nothing to leave, an admin may delete its ManagedCluster.", s.clusterName)
		return nil
	}
	h, err := u.hub(s)
	if err != nil {
		return err
	}
	u.say("Telling the hub that cluster %s leaves ...", s.clusterName)
	return u.untilGone(ctx, h, s.clusterName)
}

func (u *unjoiner) hub(s state) (*hub, error) {
	var own identity = &csrIdentity{}
	if len(s.cert) == 0 {
		tokens, err := tokensOf(s.kubeconfig)
		if err != nil {
			return nil, err
		}
		own = &awsIdentity{tokens: tokens}
	}
	if err := own.usable(s); err != nil {
		return nil, fmt.Errorf("the cluster's identity cannot be used: %w", err)
	}
	config, err := own.config(s, s.kubeconfig)
	if err != nil {
		return nil, err
	}
	return u.connect(config)
}

// untilGone asks the hub, and looks until it has done as asked; what fails is tried again.
func (u *unjoiner) untilGone(ctx context.Context, h *hub, name string) error {
	wait := backoff{shortest: time.Second, longest: 10 * time.Second, random: u.random}
	said := ""
	told := false
	for {
		gone, asked, err := u.step(ctx, h, name, told)
		if gone {
			return nil
		}
		if asked && !told {
			told = true
			u.say("Waiting until the hub has taken the cluster's rights away ...")
		}
		if err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			u.say("Trying again: %v", err)
		}
		if !sleep(ctx, wait.next()) {
			return u.gaveUp(ctx, told, said)
		}
	}
}

func (u *unjoiner) gaveUp(ctx context.Context, told bool, said string) error {
	err := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("not done within --timeout")
	}
	switch {
	case said != "":
		return fmt.Errorf("%w: %s", err, said)
	case told:
		return fmt.Errorf("%w: the hub has been told, but has not taken the cluster's rights away yet", err)
	}
	return err
}

// step looks at the cluster on the hub: gone says that its rights are, asked that the hub has been told.
func (u *unjoiner) step(ctx context.Context, h *hub, name string, told bool) (gone, asked bool, err error) {
	clusters := h.clusters.ClusterV1().ManagedClusters()
	cluster, err := clusters.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		u.say("The hub has no cluster %s any more.", name)
		return true, told, nil
	case rightsGone(err, told):
		u.say("The hub does not let the cluster in any more.")
		return true, told, nil
	case err != nil:
		return false, told, err
	}
	if cluster.Spec.HubAcceptsClient {
		cluster = cluster.DeepCopy()
		cluster.Spec.HubAcceptsClient = false
		// That this is forbidden does not mean that the rights are gone: the next look tells.
		if cluster, err = clusters.Update(ctx, cluster, metav1.UpdateOptions{}); err != nil {
			return false, told, err
		}
	}
	accepted := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted)
	if accepted == nil || accepted.Reason == registration.ReasonDenied {
		u.say("The hub has taken the cluster's rights away.")
		return true, true, nil
	}
	return false, true, nil
}

// rightsGone says whether an error means that the cluster has no rights on the hub. Once the hub has been told, an
// identity that is none any more means that too: an IAM role is gone with the rights. Before, it may as well be that this
// process is not the agent for AWS.
func rightsGone(err error, told bool) bool {
	if told {
		return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	}
	refused := (*roleRefusedError)(nil)
	return apierrors.IsForbidden(err) && !errors.As(err, &refused)
}

// release marks the namespaces that the hub has asked for. A label that stays is no reason to stay in the hub.
func (u *unjoiner) release(ctx context.Context, s state) {
	if len(s.kubeconfig) == 0 {
		return
	}
	n, err := newNamespaces(u.spoke, s.kubeconfig, u.store.namespace)
	if err != nil {
		u.say("Labels of namespaces that the hub has asked for stay as they are: %v.", err)
		return
	}
	if _, err := n.sync(ctx, nil); err != nil {
		u.say("Namespaces may still have the label %s=true, although no hub asks for them: %v.", n.label, err)
	}
}

func (u *unjoiner) remove(ctx context.Context) error {
	u.say("Removing secret %s/%s ...", u.store.namespace, registration.HubKubeconfigSecret)
	err := u.spoke.CoreV1().Secrets(u.store.namespace).Delete(ctx, registration.HubKubeconfigSecret, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing secret %s/%s: %w", u.store.namespace, registration.HubKubeconfigSecret, err)
	}
	return nil
}
