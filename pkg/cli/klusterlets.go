// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
)

// notReconciled is shown for an object without a status of hub-operator.
const notReconciled = "hub-operator has not processed it yet"

// conditionNow returns the condition for the current spec, or one with status Unknown.
func conditionNow(conditions []metav1.Condition, generation int64, conditionType string) metav1.Condition {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil || c.ObservedGeneration != 0 && c.ObservedGeneration != generation {
		return metav1.Condition{Status: metav1.ConditionUnknown}
	}
	return *c
}

func saidBy(c metav1.Condition) string { return command.Printable(cmp.Or(c.Message, c.Reason)) }

// waitsFor returns what prevents a Klusterlet from being available, or "". It ignores conditions of an earlier spec.
func waitsFor(k *operatorv1.Klusterlet) string {
	now := func(conditionType string) metav1.Condition {
		return conditionNow(k.Status.Conditions, k.Generation, conditionType)
	}
	ready, applied := now(operatorv1.ConditionReadyToApply), now(operatorv1.ConditionKlusterletApplied)
	available, degraded := now(operatorv1.ConditionKlusterletAvailable), now(operatorv1.ConditionHubConnectionDegraded)
	rebootstraps := now(operatorv1.ConditionRebootstrapProgressing)
	switch {
	case !k.DeletionTimestamp.IsZero():
		return "it is being deleted" + after(": ", saidBy(available))
	case ready.Status == metav1.ConditionFalse:
		return saidBy(ready)
	case applied.Status == metav1.ConditionFalse:
		return saidBy(applied)
	case degraded.Status == metav1.ConditionTrue && rebootstraps.Status == metav1.ConditionTrue:
		return saidBy(degraded) // names which of several hubs must accept it
	case degraded.Status == metav1.ConditionTrue && degraded.Reason == operatorv1.ReasonHubKubeConfigMissing:
		// The agent has requested its identity, so the hub must act.
		return "the hub must accept it: " + acceptCommand(cmp.Or(k.Spec.ClusterName, "NAME"))
	case degraded.Status == metav1.ConditionTrue:
		return saidBy(degraded)
	case available.Status == metav1.ConditionTrue:
		return ""
	case available.Status == metav1.ConditionFalse:
		return saidBy(available)
	}
	return notReconciled
}

// awaitKlusterlet waits until the agent works with the hub, and prints what must happen next.
func awaitKlusterlet(ctx context.Context, m *management, name string) error {
	return m.await(ctx, "Klusterlet "+name+" to be available", func(ctx context.Context) (bool, string, error) {
		k := &operatorv1.Klusterlet{}
		if err := m.Get(ctx, client.ObjectKey{Name: name}, k); err != nil {
			return false, "", m.explain(err)
		}
		state := waitsFor(k)
		if state == "" {
			return true, "", nil
		}
		if k.Status.ObservedGeneration != k.Generation {
			why, err := m.operatorState(ctx)
			return false, cmp.Or(why, state), err
		}
		why, err := agentPodState(ctx, m, k)
		return false, cmp.Or(why, state), err
	})
}

// agentPodState returns what prevents the pod of the agent that registers the cluster from running, or "". The pod has more details than the conditions.
func agentPodState(ctx context.Context, m *management, k *operatorv1.Klusterlet) (string, error) {
	name := k.RegistrationDeployment()
	if k.IsSingleton() {
		name = k.AgentDeployment()
	}
	state, err := m.podOf(ctx, client.ObjectKey{Namespace: k.AgentNamespace(), Name: name})
	return after("its agent does not run: ", state), err
}

func newGetKlusterletsCommand(g *global) *cobra.Command {
	out, at := newTable(), &outside{mode: modeDetached}
	cmd := &cobra.Command{
		Use:     "klusterlets",
		Aliases: []string{"klusterlet"},
		Short:   "Show the agents that hub-operator runs on a management cluster, and what each waits for",
		Example: example("kubectl hub get klusterlets --management-context mgmt"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.validate(); err != nil {
				return err
			}
			m, err := managementCluster(cmd.Context(), g, at)
			if err != nil {
				return err
			}
			list, err := listKlusterlets(cmd.Context(), m)
			if err != nil {
				return err
			}
			if !out.isTable() {
				return out.printObjects(g.Out, list)
			}
			if len(list.Items) == 0 {
				_, err := fmt.Fprintln(g.ErrOut, "No klusterlets found.")
				return err
			}
			return out.printRows(g.Out, klusterletRows(list))
		},
	}
	at.addManagementTo(cmd.Flags())
	out.addTo(cmd)
	return cmd
}

// listKlusterlets lists all Klusterlets of the management cluster, in pages.
func listKlusterlets(ctx context.Context, m *management) (*operatorv1.KlusterletList, error) {
	all, err := paging.List(ctx, func(ctx context.Context, options metav1.ListOptions) (*operatorv1.KlusterletList, error) {
		page := &operatorv1.KlusterletList{}
		return page, m.List(ctx, page, client.Limit(options.Limit), client.Continue(options.Continue))
	}, metav1.ListOptions{})
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the management cluster %s does not serve klusterlets: hub-operator is not installed there, or --%s is another cluster",
			m.config.Host, managementContextFlag)
	}
	if err != nil {
		return nil, m.explain(err)
	}
	all.TypeMeta = metav1.TypeMeta{APIVersion: operatorv1.SchemeGroupVersion.String(), Kind: "KlusterletList"}
	for i := range all.Items {
		all.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: operatorv1.SchemeGroupVersion.String(), Kind: "Klusterlet"}
	}
	return all, nil
}

func klusterletRows(list *operatorv1.KlusterletList) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: columns("Name", "Mode", "Cluster", "Applied", "Available", "Waiting for", "+Namespace", "+Age")}
	for i := range list.Items {
		k := &list.Items[i]
		is := func(conditionType string) string {
			if condition := meta.FindStatusCondition(k.Status.Conditions, conditionType); condition != nil {
				return string(condition.Status)
			}
			return string(metav1.ConditionUnknown)
		}
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			k.Name, string(k.Mode()), orNone(clusterOf(k)), is(operatorv1.ConditionKlusterletApplied),
			is(operatorv1.ConditionKlusterletAvailable), orNone(waitsFor(k)), k.AgentNamespace(), age(k.CreationTimestamp),
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
