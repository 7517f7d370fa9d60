// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// waitsFor returns what prevents a Klusterlet from being available, or "". It ignores conditions of an earlier spec.
func waitsFor(k *operatorv1.Klusterlet) string {
	now := func(conditionType string) metav1.Condition {
		return management.CurrentCondition(k.Status.Conditions, k.Generation, conditionType)
	}
	ready, applied := now(operatorv1.ConditionReadyToApply), now(operatorv1.ConditionKlusterletApplied)
	available, degraded := now(operatorv1.ConditionKlusterletAvailable), now(operatorv1.ConditionHubConnectionDegraded)
	rebootstraps := now(operatorv1.ConditionRebootstrapProgressing)
	switch {
	case !k.DeletionTimestamp.IsZero():
		return "it is being deleted" + kit.Prefixed(": ", management.ConditionMessage(available))
	case ready.Status == metav1.ConditionFalse:
		return management.ConditionMessage(ready)
	case applied.Status == metav1.ConditionFalse:
		return management.ConditionMessage(applied)
	case degraded.Status == metav1.ConditionTrue && rebootstraps.Status == metav1.ConditionTrue:
		return management.ConditionMessage(degraded) // names which of several hubs must accept it
	case degraded.Status == metav1.ConditionTrue && degraded.Reason == operatorv1.ReasonHubKubeConfigMissing:
		// The agent has requested its identity, so the hub must act.
		return "the hub must accept it: " + acceptCommand(cmp.Or(k.Spec.ClusterName, "NAME"))
	case degraded.Status == metav1.ConditionTrue:
		return management.ConditionMessage(degraded)
	case available.Status == metav1.ConditionTrue:
		return ""
	case available.Status == metav1.ConditionFalse:
		return management.ConditionMessage(available)
	}
	return management.NotReconciled
}

// awaitKlusterlet waits until the agent works with the hub, and prints what must happen next.
func awaitKlusterlet(ctx context.Context, m *management.Client, name string) error {
	return m.Await(ctx, "Klusterlet "+name+" to be available", func(ctx context.Context) (bool, string, error) {
		k := &operatorv1.Klusterlet{}
		if err := m.Get(ctx, client.ObjectKey{Name: name}, k); err != nil {
			return false, "", m.Explain(err)
		}
		state := waitsFor(k)
		if state == "" {
			return true, "", nil
		}
		if k.Status.ObservedGeneration != k.Generation {
			why, err := m.OperatorState(ctx)
			return false, cmp.Or(why, state), err
		}
		why, err := agentPodState(ctx, m, k)
		return false, cmp.Or(why, state), err
	})
}

// agentPodState returns what prevents the pod of the agent that registers the cluster from running, or "". The pod has more details than the
// conditions.
func agentPodState(ctx context.Context, m *management.Client, k *operatorv1.Klusterlet) (string, error) {
	name := k.RegistrationDeployment()
	if k.IsSingleton() {
		name = k.AgentDeployment()
	}
	state, err := m.DeploymentState(ctx, client.ObjectKey{Namespace: k.AgentNamespace(), Name: name})
	return kit.Prefixed("its agent does not run: ", state), err
}

// NewGetKlusterletsCommand returns the command get klusterlets.
func NewGetKlusterletsCommand(opts *kit.Options) *cobra.Command {
	out, at := kit.NewTable(), &management.ModeFlags{Mode: management.ModeDetached}
	cmd := &cobra.Command{
		Use:     "klusterlets",
		Aliases: []string{"klusterlet"},
		Short:   "Show the agents that hub-operator runs on a management cluster, and what each waits for",
		Example: kit.Example("kubectl hub get klusterlets --management-context mgmt"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.Validate(); err != nil {
				return err
			}
			m, err := management.Connect(cmd.Context(), opts, at)
			if err != nil {
				return err
			}
			list, err := listKlusterlets(cmd.Context(), m)
			if err != nil {
				return err
			}
			if !out.IsTable() {
				return out.PrintObjects(opts.Out, list)
			}
			if len(list.Items) == 0 {
				_, err := fmt.Fprintln(opts.ErrOut, "No klusterlets found.")
				return err
			}
			return out.PrintRows(opts.Out, klusterletRows(list))
		},
	}
	at.AddManagementTo(cmd.Flags())
	out.AddTo(cmd)
	return cmd
}

// listKlusterlets lists all Klusterlets of the management cluster, in pages.
func listKlusterlets(ctx context.Context, m *management.Client) (*operatorv1.KlusterletList, error) {
	all, err := paging.List(ctx, func(ctx context.Context, options metav1.ListOptions) (*operatorv1.KlusterletList, error) {
		page := &operatorv1.KlusterletList{}
		return page, m.List(ctx, page, client.Limit(options.Limit), client.Continue(options.Continue))
	}, metav1.ListOptions{})
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the management cluster %s does not serve klusterlets: hub-operator is not installed there, or --%s is another cluster",
			m.Config.Host, management.ContextFlag)
	}
	if err != nil {
		return nil, m.Explain(err)
	}
	all.TypeMeta = metav1.TypeMeta{APIVersion: operatorv1.SchemeGroupVersion.String(), Kind: "KlusterletList"}
	for i := range all.Items {
		all.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: operatorv1.SchemeGroupVersion.String(), Kind: "Klusterlet"}
	}
	return all, nil
}

func klusterletRows(list *operatorv1.KlusterletList) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Name", "Mode", "Cluster", "Applied", "Available", "Waiting for", "+Namespace", "+Age")}
	for i := range list.Items {
		k := &list.Items[i]
		is := func(conditionType string) string { return string(inspect.Status(k.Status.Conditions, conditionType)) }
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			k.Name, string(k.Mode()), kit.OrNone(clusterOf(k)), is(operatorv1.ConditionKlusterletApplied),
			is(operatorv1.ConditionKlusterletAvailable), kit.OrNone(waitsFor(k)), k.AgentNamespace(), kit.Age(k.CreationTimestamp),
		}})
	}
	return rows
}

// clusterOf returns the name of the cluster on its hub, or "" as long as its agent has not chosen one.
func clusterOf(k *operatorv1.Klusterlet) string {
	if k.Spec.ClusterName == "" && k.Status.Clusterhub != nil {
		return k.Status.Clusterhub.ClusterName
	}
	return k.Spec.ClusterName
}
