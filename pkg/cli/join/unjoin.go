// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/agent/work/withdraw"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const (
	// unjoinJob is the name of the Job by which the cluster leaves.
	unjoinJob = "hub-agent-unjoin"
	// minUnjoinTime is the minimum time for leaving, and cleanupTimeout the time to clean up after it.
	minUnjoinTime  = 10 * time.Second
	cleanupTimeout = 15 * time.Second
)

type unjoinOptions struct {
	*kit.Options
	kit.WaitFlags
	out         *kit.Format
	clusterName string
	force       bool
	// works determines what happens to the objects of works. It is a withdraw.Fate, or empty.
	works string

	// namespace is the agent's.
	namespace string

	// leaving is for clusters whose agent runs elsewhere.
	leaving leavingOptions
}

// NewUnjoinCommand returns the command unjoin.
func NewUnjoinCommand(opts *kit.Options) *cobra.Command {
	o := &unjoinOptions{Options: opts, out: kit.NewFormat("text", "json"), namespace: registration.AgentNamespace}
	cmd := &cobra.Command{
		Use:   "unjoin --cluster-name NAME",
		Short: "Let the managed cluster leave its hub, and remove the agent",
		Long: "unjoin notifies the hub that the managed cluster leaves, waits until the hub has revoked its rights, and removes the agent " +
			"and all objects that join created. A Job in the cluster notifies the hub, because only the agent can use the cluster's identity, " +
			"and because this machine may not reach the hub. The ManagedCluster stays on the hub, not accepted, until an admin deletes it.\n\n" +
			"If the agent has applied works, --works must say what happens to their objects. To have the agent delete them while it runs, " +
			"delete the works, or the cluster, on the hub first.\n\n" +
			"With --mode=detached the agent runs on a management cluster. unjoin notifies the hub from this machine, and deletes the Klusterlet; " +
			"hub-operator then deletes what it created on both clusters.",
		Example: kit.Example("kubectl hub unjoin --cluster-name c1\nkubectl hub unjoin --cluster-name c1 --works=keep\n" +
			"kubectl hub unjoin --mode=detached --management-context mgmt --cluster-name c1"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.clusterName, "cluster-name", "", "Name of the cluster on the hub.")
	o.addTo(cmd)
	o.leaving.addTo(cmd)
	return cmd
}

// addTo adds the flags for all agents that run on their cluster.
func (o *unjoinOptions) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&o.force, "force", false, "Remove the agent even if the hub cannot be notified. Then delete the ManagedCluster on the hub.")
	fs.StringVar(&o.works, worksFlag, "", "What happens to the objects of works: delete or keep. Kept objects are not changed, "+
		"and no longer belong to a work.")
	kit.Must(cmd.RegisterFlagCompletionFunc(worksFlag,
		cobra.FixedCompletions([]string{string(withdraw.Delete), string(withdraw.Keep)}, cobra.ShellCompDirectiveNoFileComp)))
	o.AddTimeout(fs)
	o.out.AddTo(cmd)
}

func (o *unjoinOptions) validate() error {
	if o.clusterName == "" {
		return errors.New("--cluster-name must be set: the name of this cluster on its hub")
	}
	if err := o.validateFate(); err != nil {
		return err
	}
	return errors.Join(o.leaving.validate(), o.ValidateTimeout())
}

func (o *unjoinOptions) validateFate() error {
	if fate := withdraw.Fate(o.works); fate != "" && fate != withdraw.Delete && fate != withdraw.Keep {
		return fmt.Errorf("--%s must be %s or %s, not %q", worksFlag, withdraw.Delete, withdraw.Keep, o.works)
	}
	return nil
}

func (o *unjoinOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	if o.leaving.IsOutside() {
		return o.runDetached(ctx)
	}
	m, err := managedCluster(o.Options, o.namespace)
	if err != nil {
		return err
	}
	return o.leave(ctx, m)
}

// leave makes the cluster leave the hub, and deletes the agent.
func (o *unjoinOptions) leave(ctx context.Context, m *managed) error {
	have, err := m.identity(ctx)
	if err != nil {
		return err
	}
	if have.clusterName != "" && have.clusterName != o.clusterName {
		return fmt.Errorf("this cluster is not %s on its hub, but %s%s: check --context and --cluster-name", o.clusterName,
			have.clusterName, kit.Prefixed(" on ", have.server()))
	}
	if _, err := m.brought(ctx, have, o.works); err != nil {
		return err
	}
	left, err := m.leave(ctx, have, o.force)
	if err != nil {
		return err
	}
	// The agent may have applied its first work before it was stopped.
	works, err := m.brought(ctx, have, o.works)
	if err != nil {
		return err
	}
	if err := m.finalizeWorks(ctx, works, withdraw.Fate(o.works)); err != nil {
		return err
	}
	removed, err := m.removeAgent(ctx, have)
	if err != nil {
		return err
	}
	result := struct {
		Name    string       `json:"name"`
		Left    bool         `json:"left"`
		Removed bool         `json:"removed"`
		Works   *worksEnding `json:"works,omitempty"`
	}{o.clusterName, left, removed, works.ending(o.works)}
	said := works.describe(o.works)
	switch {
	case left:
		return o.out.Print(o.Out, result, "%sCluster %s has left its hub. Its ManagedCluster still exists; an admin can delete "+
			"it:\n\n    kubectl delete managedcluster %[2]s\n", said, o.clusterName)
	case removed:
		return o.out.Print(o.Out, result, "%sThe agent is removed. The hub was not notified; if it has a ManagedCluster %s, delete it "+
			"there.\n", said, o.clusterName)
	}
	return o.out.Print(o.Out, result, "No agent found on this cluster.\n")
}

// leave makes the cluster leave by the agent's own identity. A cluster without an identity has nothing to leave.
func (m *managed) leave(ctx context.Context, have identity, force bool) (left bool, err error) {
	if len(have.kubeconfig) == 0 {
		return false, nil
	}
	deployment := &appsv1.Deployment{}
	err = m.Get(ctx, m.key(deploy.AgentName), deployment)
	switch {
	case apierrors.IsNotFound(err):
		err = fmt.Errorf("the agent's Deployment %s/%s does not exist: run %s again, and then this command", m.namespace, deploy.AgentName, m.deployCommand())
	case err != nil:
		return false, m.Explain(err)
	case !kit.Owner.Owns(deployment):
		err = fmt.Errorf("the Deployment %s/%s was not created by kubectl hub", m.namespace, deploy.AgentName)
	default:
		err = m.unjoinInPlaceOf(ctx, deployment)
	}
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil || !force {
		return false, fmt.Errorf("notifying the hub that the cluster leaves: %w (--force removes the agent anyway)", err)
	}
	m.Warn("the hub was not notified that the cluster leaves: %v", err)
	return false, nil
}

// unjoinInPlaceOf stops the agent, which would continue otherwise, and runs "hub-agent unjoin". It starts an agent again that could not leave.
func (m *managed) unjoinInPlaceOf(ctx context.Context, deployment *appsv1.Deployment) (err error) {
	replicas := 1
	if deployment.Spec.Replicas != nil {
		replicas = int(*deployment.Spec.Replicas)
	}
	job, err := m.unjoinJobFrom(ctx, deployment)
	if err != nil {
		return err
	}
	if err := m.scale(ctx, deployment, 0); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if err != nil {
			err = errors.Join(err, m.scale(ctx, deployment, replicas))
		}
	}()
	pods := client.MatchingLabels{deploy.AgentLabel: deploy.AgentName}
	if err := m.awaitGone(ctx, "the agent to stop", &corev1.PodList{}, pods); err != nil {
		return err
	}
	return m.runUnjoinJob(ctx, job)
}

func (m *managed) scale(ctx context.Context, deployment *appsv1.Deployment, replicas int) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := m.Patch(ctx, deployment.DeepCopy(), patch, kit.FieldOwner); err != nil {
		return fmt.Errorf("scaling the agent to %d: %w", replicas, m.Explain(err))
	}
	return nil
}

func (m *managed) runUnjoinJob(ctx context.Context, job *batchv1.Job) error {
	// Delete a Job of an earlier attempt, whose result does not count.
	if err := m.dropJob(ctx); err != nil {
		return err
	}
	if err := m.Create(ctx, job, kit.FieldOwner); err != nil {
		return fmt.Errorf("creating Job %s: %w", unjoinJob, m.Explain(err))
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if err := m.dropJob(ctx); err != nil {
			m.Warn("Job %s was not deleted: %v", unjoinJob, err)
		}
	}()
	return m.Await(ctx, "the cluster to leave the hub", func(ctx context.Context) (bool, string, error) {
		now := &batchv1.Job{}
		if err := m.Get(ctx, m.key(unjoinJob), now); err != nil {
			return false, "", err
		}
		state, err := m.podState(ctx, unjoinJob)
		if err != nil {
			return false, "", err
		}
		for _, c := range now.Status.Conditions {
			if c.Status == corev1.ConditionTrue && c.Type == batchv1.JobFailed {
				return false, "", fmt.Errorf("the Job %s failed: %s", unjoinJob, state)
			}
		}
		return now.Status.Succeeded > 0, state, nil
	})
}

// unjoinJobFrom returns a Job with the agent's pod: its image, its identity, and everything else that it needs.
func (m *managed) unjoinJobFrom(ctx context.Context, deployment *appsv1.Deployment) (*batchv1.Job, error) {
	labels := map[string]string{deploy.AgentLabel: unjoinJob, deploy.LabelManagedBy: deploy.ManagedBy}
	spec := deployment.Spec.Template.Spec.DeepCopy()
	agent := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == deploy.AgentName })
	if agent < 0 {
		return nil, fmt.Errorf("the Deployment %s has no container %[1]s", deployment.Name)
	}
	container := &spec.Containers[agent]
	container.Args = []string{"unjoin", "--namespace=" + m.namespace}
	if m.scoped {
		container.Args = append(container.Args, "--namespace-scoped")
	}
	if deadline, ok := ctx.Deadline(); ok {
		// The Job times out before this command does, so that its error can be printed.
		patience := max(time.Until(deadline)-cleanupTimeout, minUnjoinTime).Round(time.Second)
		container.Args = append(container.Args, "--timeout="+patience.String())
	}
	container.LivenessProbe, container.ReadinessProbe, container.StartupProbe, container.Ports = nil, nil, nil, nil
	spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: unjoinJob, Namespace: m.namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template:     corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: *spec},
		},
	}, nil
}

func (m *managed) dropJob(ctx context.Context) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: unjoinJob, Namespace: m.namespace}}
	err := m.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing Job %s: %w", unjoinJob, m.Explain(err))
	}
	which := client.MatchingLabels{deploy.AgentLabel: unjoinJob}
	return m.awaitGone(ctx, "the Job "+unjoinJob+" to be gone", &batchv1.JobList{}, which)
}

// awaitGone waits until none of the objects exists.
func (m *managed) awaitGone(ctx context.Context, what string, list client.ObjectList, which client.MatchingLabels) error {
	return m.Await(ctx, what, func(ctx context.Context) (bool, string, error) {
		if err := m.List(ctx, list, client.InNamespace(m.namespace), which); err != nil {
			return false, "", err
		}
		return meta.LenList(list) == 0, "", nil
	})
}

// removeAgent deletes the objects that join has created, in reverse order, and reports whether there were any.
func (m *managed) removeAgent(ctx context.Context, have identity) (removed bool, err error) {
	objects, err := m.removable(ctx)
	if err != nil {
		return false, err
	}
	slices.Reverse(objects)
	for _, o := range objects {
		gone, err := m.Remove(ctx, o)
		if err != nil {
			return removed, err
		}
		if !gone {
			continue
		}
		removed = true
		switch o.GetKind() {
		case "Deployment":
			err = m.dropIdentity(ctx, have)
		case "Namespace", "CustomResourceDefinition":
			err = m.Await(ctx, remote.IDOf(o).String()+" to be gone", func(ctx context.Context) (bool, string, error) {
				left, err := m.Objects.Get(ctx, o)
				return left == nil && err == nil, "", err
			})
		}
		if err != nil {
			return removed, err
		}
	}
	if m.keep != nil {
		return removed, m.deleteLeftovers(ctx)
	}
	return removed, nil
}

// deleteLeftovers deletes the objects that remain of an interrupted attempt, if they are not deleted with the namespace.
func (m *managed) deleteLeftovers(ctx context.Context) error {
	err := m.Get(ctx, m.key(deploy.AgentName), &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		return m.Explain(err) // it belongs to another owner, and so does the identity
	}
	have, err := m.identity(ctx)
	if err == nil && have.secret != nil {
		err = m.dropIdentity(ctx, have)
	}
	if err != nil {
		return err
	}
	job := &batchv1.Job{}
	if err := m.Get(ctx, m.key(unjoinJob), job); err != nil || !kit.Owner.Owns(job) {
		return m.Explain(client.IgnoreNotFound(err))
	}
	return m.dropJob(ctx)
}

// deployCommand returns the command that deploys the agent.
func (m *managed) deployCommand() string {
	if m.keep != nil {
		return "kubectl hub agent install"
	}
	return "kubectl hub join"
}

// dropIdentity deletes the agent's identity after the agent has stopped, which would create it again.
func (m *managed) dropIdentity(ctx context.Context, have identity) error {
	pods := client.MatchingLabels{deploy.AgentLabel: deploy.AgentName}
	if err := m.awaitGone(ctx, "the agent to stop", &corev1.PodList{}, pods); err != nil {
		return err
	}
	if have.secret == nil {
		return nil
	}
	if err := m.Delete(ctx, have.secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing Secret %s: %w", registration.HubKubeconfigSecret, m.Explain(err))
	}
	return nil
}
