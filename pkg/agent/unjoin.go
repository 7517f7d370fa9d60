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

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/management"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/namespaces"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// unjoiner removes a cluster from its hub, with the cluster's own identity, and then removes that.
type unjoiner struct {
	store *state.Store
	// own is the managed cluster, whose namespaces are released; with force it may be nil.
	own     *spoke.Cluster
	drivers identity.Drivers
	connect hub.Connect
	random  func() float64
	out     io.Writer
	// force removes the state on the cluster even if the hub cannot be notified.
	force bool
}

func newUnjoinCommand() *cobra.Command {
	own := spoke.NewOptions()
	timeout, force := 5*time.Minute, false
	cmd := &cobra.Command{
		Use:   "unjoin",
		Short: "Unregister this cluster from its hub, and delete its identity",
		Long: "unjoin denies the cluster on the hub with the cluster's own identity, waits until the hub has revoked " +
			"the cluster's rights, and deletes the agent's secret. The agent itself must be deleted too: otherwise it " +
			"registers the cluster again when it restarts. The ManagedCluster stays on the hub, not accepted. It has the same flags for the clusters, and " +
			"needs the same rights, as the hub-agent that registers the cluster; one that only applies works cannot unregister the cluster.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if errs := own.Validate(true); len(errs) > 0 {
				return errors.Join(errs...)
			}
			if timeout <= 0 {
				return fmt.Errorf("--timeout must be above 0, not %s", timeout)
			}
			u := &unjoiner{drivers: drivers(), connect: hub.New, random: rand.Float64, out: cmd.OutOrStdout(), force: force}
			if err := u.reach(&own); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return u.run(ctx)
		},
	}
	own.AddFlags(cmd.Flags())
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "The maximum time to wait until the hub has revoked the cluster's rights.")
	cmd.Flags().BoolVar(&force, "force", force, "If true, the agent's Secret is deleted even if the hub cannot be notified.")
	return cmd
}

// reach connects to the clusters. The one that stores the identity is required, and without force both are.
func (u *unjoiner) reach(o *spoke.Options) error {
	way, err := o.Management()
	var home *management.Cluster
	if err == nil {
		home, err = spoke.NewManagement(way.Config, o.Namespace)
	}
	flag := "--spoke-kubeconfig"
	if o.Detached {
		flag = "--management-kubeconfig"
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", flag, err)
	}
	u.store = &state.Store{Client: home.Client, Namespace: home.Namespace}
	way, err = o.Managed()
	if err == nil {
		u.own, err = o.NewCluster(way.Config)
	}
	if err != nil {
		err = fmt.Errorf("reading --spoke-kubeconfig: %w", err)
		if !u.force {
			return err
		}
		u.printf("The managed cluster is not changed: %v.", err)
		u.own = nil
	}
	return nil
}

func (u *unjoiner) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(u.out, format+"\n", args...)
}

func (u *unjoiner) run(ctx context.Context) error {
	s, err := u.store.Load(ctx)
	if err != nil {
		return err
	}
	if s.ClusterName == "" {
		u.printf("This cluster is not registered with a hub: there is no secret %s/%s.", u.store.Namespace,
			registration.HubKubeconfigSecret)
		return nil
	}
	err = u.leave(ctx, s)
	switch {
	case err != nil && !u.force:
		return fmt.Errorf("could not notify the hub that cluster %s leaves: %w (--force deletes the agent's secret nevertheless)",
			s.ClusterName, err)
	case err != nil:
		u.printf("The hub could not be notified: %v. An admin must set hubAcceptsClient of ManagedCluster %s to false.", err,
			s.ClusterName)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // the hub has had all the time; the rest is on this cluster
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 3*spoke.Timeout)
			defer cancel()
		}
	}
	u.release(ctx, s)
	u.printf("Deleting secret %s/%s ...", u.store.Namespace, registration.HubKubeconfigSecret)
	if err := u.store.Remove(ctx); err != nil {
		return err
	}
	u.printf("Cluster %s has left the hub.", s.ClusterName)
	return nil
}

// leave returns once the hub has revoked the cluster's rights.
func (u *unjoiner) leave(ctx context.Context, s state.State) error {
	if len(s.Kubeconfig) == 0 {
		u.printf("Cluster %s was never accepted: there is nothing to leave, an admin may delete its ManagedCluster.", s.ClusterName)
		return nil
	}
	h, err := u.hub(s)
	if err != nil {
		return err
	}
	u.printf("Notifying the hub that cluster %s leaves ...", s.ClusterName)
	return u.revoke(ctx, h, s.ClusterName)
}

func (u *unjoiner) hub(s state.State) (*hub.Hub, error) {
	own, err := u.drivers.Find(s)
	if err != nil {
		return nil, err
	}
	if err := own.Usable(s); err != nil {
		return nil, fmt.Errorf("the cluster's identity cannot be used: %w", err)
	}
	config, err := own.Config(s, s.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return u.connect(config)
}

// revoke asks the hub to revoke the rights, and waits until it has done so; errors are retried.
func (u *unjoiner) revoke(ctx context.Context, h *hub.Hub, name string) error {
	wait := repeat.Backoff{Shortest: time.Second, Longest: 10 * time.Second, Random: u.random}
	said := ""
	notified := false
	for {
		gone, asked, err := u.step(ctx, h, name, notified)
		if gone {
			return nil
		}
		if asked && !notified {
			notified = true
			u.printf("Waiting until the hub has revoked the cluster's rights ...")
		}
		if err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			u.printf("Retrying: %v", err)
		}
		if !repeat.Sleep(ctx, wait.Next()) {
			return u.gaveUp(ctx, notified, said)
		}
	}
}

func (u *unjoiner) gaveUp(ctx context.Context, notified bool, said string) error {
	err := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("not done within --timeout")
	}
	switch {
	case said != "":
		return fmt.Errorf("%w: %s", err, said)
	case notified:
		return fmt.Errorf("%w: the hub was notified, but has not revoked the cluster's rights yet", err)
	}
	return err
}

// step reads the cluster on the hub and denies it. gone reports that its rights are gone, and asked that the hub was notified.
func (u *unjoiner) step(ctx context.Context, h *hub.Hub, name string, notified bool) (gone, asked bool, err error) {
	clusters := h.Clusters.ClusterV1().ManagedClusters()
	cluster, err := clusters.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		u.printf("The hub no longer has cluster %s.", name)
		return true, notified, nil
	case isRevoked(err, notified):
		u.printf("The hub no longer accepts the cluster's identity.")
		return true, notified, nil
	case err != nil:
		return false, notified, err
	}
	if cluster.Spec.HubAcceptsClient {
		cluster = cluster.DeepCopy()
		cluster.Spec.HubAcceptsClient = false
		// A forbidden update does not mean that the rights are gone: the next read tells.
		cluster, err = clusters.Update(ctx, cluster, metav1.UpdateOptions{})
		if err != nil {
			return false, notified, err
		}
	}
	accepted := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted)
	if accepted == nil || accepted.Reason == registration.ReasonDenied {
		u.printf("The hub has revoked the cluster's rights.")
		return true, true, nil
	}
	return false, true, nil
}

// isRevoked reports whether an error means that the cluster has no rights on the hub. Once the hub was notified, an identity that no longer works
// also means that: an IAM role is gone with the rights. Before, it may also mean that this process is not the agent for AWS.
func isRevoked(err error, notified bool) bool {
	if notified {
		return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	}
	refused := (*identity.RefusedError)(nil)
	return apierrors.IsForbidden(err) && !errors.As(err, &refused)
}

// release updates the labels of the namespaces that the hub has asked for. A failure does not keep the cluster in the hub.
func (u *unjoiner) release(ctx context.Context, s state.State) {
	if len(s.Kubeconfig) == 0 || u.own == nil || u.own.NamespaceScoped {
		return
	}
	n, err := namespaces.Of(s.Kubeconfig, u.own.Client, u.own.Namespace, u.own.Home)
	if err != nil {
		u.printf("Labels of namespaces that the hub has requested are not changed: %v.", err)
		return
	}
	if err := n.Release(ctx); err != nil {
		u.printf("Namespaces may still have the label %s=true, although no hub requests them: %v.", n.Label, err)
	}
}
