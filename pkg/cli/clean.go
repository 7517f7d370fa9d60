// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

type cleanOptions struct {
	*global
	waiting
	outside
	out   *format
	name  string
	purge bool
}

func newCleanCommand(g *global) *cobra.Command {
	o := &cleanOptions{global: g, outside: outside{mode: modeDetached}, out: newFormat("text", "json")}
	cmd := &cobra.Command{
		Use:   "clean --name NAME",
		Short: "Remove a hub whose servers run on a management cluster",
		Long: "clean deletes a ClusterManager that init created with --mode=detached, and waits until hub-operator has deleted what it created: the servers, " +
			"their data if it was on a volume of theirs, and its objects on the cluster that was the hub.",
		Example: example("kubectl hub clean --name blue --management-context mgmt"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.name, nameFlag, "", "Name of the ClusterManager on the management cluster.")
	o.addManagementTo(fs)
	addPurgeTo(fs, &o.purge)
	o.addTimeout(fs)
	o.out.addTo(cmd)
	return cmd
}

func (o *cleanOptions) run(ctx context.Context) error {
	if o.name == "" {
		return fmt.Errorf("--%s must be set: the name of the ClusterManager on the management cluster", nameFlag)
	}
	if err := o.validateTimeout(); err != nil {
		return err
	}
	ctx, cancel := o.limit(ctx)
	defer cancel()
	m, err := managementCluster(ctx, o.global, &o.outside)
	if err != nil {
		return err
	}
	c := &operatorv1.ClusterManager{}
	err = m.Get(ctx, client.ObjectKey{Name: o.name}, c)
	there := err == nil
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return m.explain(err)
	}
	if there && !c.IsDetached() {
		return fmt.Errorf("the ClusterManager %s has the mode %s, so its servers run on the hub itself: kubectl delete clustermanager %[1]s removes it", o.name, c.Mode())
	}
	if there {
		if err := m.delete(ctx, c, "ClusterManager "+o.name, func() string { return deletionOf(c, c.Status.Conditions) }); err != nil {
			return err
		}
	}
	purged, err := m.purgeOperator(ctx, o.purge)
	if err != nil {
		return err
	}
	result := struct {
		Name    string `json:"name"`
		Removed bool   `json:"removed"`
		Purged  bool   `json:"operatorRemoved"`
	}{o.name, there, purged}
	if there {
		return o.out.print(o.Out, result, "The hub %s is removed.\n", o.name)
	}
	return o.out.print(o.Out, result, "No ClusterManager %s found on the management cluster.\n", o.name)
}
