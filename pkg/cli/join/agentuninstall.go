// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// NewAgentUninstallCommand returns the command agent uninstall.
func NewAgentUninstallCommand(opts *kit.Options) *cobra.Command {
	o := &unjoinOptions{Options: opts, out: kit.NewFormat("text", "json"), namespace: registration.AgentNamespace}
	cmd := &cobra.Command{
		Use:   "uninstall --namespace NAMESPACE",
		Short: "Have the agent of a namespace leave its hub, and remove it",
		Long: "uninstall notifies the hub that the agent leaves, waits until the hub has revoked its rights, and removes what kubectl hub agent install created. " +
			"It does what kubectl hub unjoin does, for the agent in any namespace: the namespace stays, with all objects in it that others created. " +
			"An agent with rights in its namespace alone is removed by a user with such rights.\n\n" +
			"If the agent has deployed services, --works must say what happens to their objects. To have the agent delete them while it runs, " +
			"delete the deployment policies, or the cluster, on the hub first.",
		Example: kit.Example("kubectl hub agent uninstall --namespace team-a\nkubectl hub agent uninstall --namespace team-a --works=delete"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.uninstall(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.namespace, namespaceFlag, "n", o.namespace, "Namespace of the agent. It is not deleted.")
	fs.StringVar(&o.clusterName, "cluster-name", "", "Name of the agent's cluster on the hub. Optional: if set, the agent of another cluster is not removed.")
	o.addTo(cmd)
	return cmd
}

func (o *unjoinOptions) uninstall(ctx context.Context) error {
	if err := errors.Join(checkAgentNamespace(o.namespace), o.validateFate(), o.ValidateTimeout()); err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	m, err := managedCluster(o.Options, o.namespace)
	if err != nil {
		return err
	}
	there, err := m.find(ctx)
	m.scoped = there.scoped
	switch {
	case apierrors.IsForbidden(err):
		m.scoped = true
		return m.askFor(ctx, fmt.Sprintf("this user may not get the agent in namespace %s: %v", o.namespace, err))
	case err != nil:
		return err
	case there.clusterName != "" && o.clusterName != "" && there.clusterName != o.clusterName:
		return fmt.Errorf("the agent in namespace %s is the one of cluster %s, not of %s: check --context, --%s and --cluster-name", o.namespace, there.clusterName,
			o.clusterName, namespaceFlag)
	case !there.found:
		result := map[string]any{"name": o.clusterName, namespaceFlag: o.namespace, "left": false, "removed": false}
		return o.out.Print(o.Out, result, "No agent found in namespace %s.\n", o.namespace)
	}
	if o.clusterName == "" {
		o.clusterName = there.clusterName
	}
	if err := excludeOtherAgents(ctx, m); err != nil {
		return err
	}
	objects, err := m.removable(ctx)
	if err != nil {
		return err
	}
	if err := m.checkRemove(ctx, objects); err != nil {
		return err
	}
	if err := checkUnjoinJob(ctx, m); err != nil {
		return err
	}
	return o.leave(ctx, m)
}

// checkUnjoinJob returns an error if a Job of another owner has the name of the Job by which the agent leaves. It would be replaced.
func checkUnjoinJob(ctx context.Context, m *managed) error {
	job := &batchv1.Job{}
	err := m.Get(ctx, m.key(unjoinJob), job)
	if err == nil && !kit.Owner.Owns(job) {
		return fmt.Errorf("the Job %s/%s was not created by kubectl hub, which needs a Job of that name to have the agent leave: delete it first", m.namespace, unjoinJob)
	}
	return m.Explain(client.IgnoreNotFound(err))
}

// excludeOtherAgents excludes the namespace from deletion and, if an agent of the whole cluster exists in a different namespace, the objects of that
// agent.
func excludeOtherAgents(ctx context.Context, m *managed) error {
	elsewhere := ""
	if !m.scoped {
		var err error
		elsewhere, err = clusterAgentElsewhere(ctx, m)
		if err != nil {
			return err
		}
	}
	m.keep = func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Namespace" || elsewhere != "" && o.GetNamespace() != m.namespace
	}
	return nil
}
