// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
)

type cleanOptions struct {
	*kit.Options
	kit.WaitFlags
	management.ModeFlags
	out   *kit.Format
	name  string
	purge bool
}

// NewCleanCommand returns the command clean.
func NewCleanCommand(opts *kit.Options) *cobra.Command {
	o := &cleanOptions{Options: opts, ModeFlags: management.ModeFlags{Mode: management.ModeDetached}, out: kit.NewFormat("text", "json")}
	cmd := &cobra.Command{
		Use:   "clean --name NAME",
		Short: "Remove a hub whose servers run on a management cluster",
		Long: "clean deletes a ClusterManager that init created with --mode=detached, and waits until hub-operator has deleted what it created: the servers, " +
			"their data if it was on a volume of theirs, and its objects on the cluster that was the hub.",
		Example: kit.Example("kubectl hub clean --name blue --management-context mgmt"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.name, nameFlag, "", "Name of the ClusterManager on the management cluster.")
	o.AddManagementTo(fs)
	management.AddPurgeFlag(fs, &o.purge)
	o.AddTimeout(fs)
	o.out.AddTo(cmd)
	return cmd
}

func (o *cleanOptions) run(ctx context.Context) error {
	if o.name == "" {
		return fmt.Errorf("--%s must be set: the name of the ClusterManager on the management cluster", nameFlag)
	}
	if err := o.ValidateTimeout(); err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	m, err := management.Connect(ctx, o.Options, &o.ModeFlags)
	if err != nil {
		return err
	}
	c := &operatorv1.ClusterManager{}
	err = m.Get(ctx, client.ObjectKey{Name: o.name}, c)
	there := err == nil
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return m.Explain(err)
	}
	if there && !c.IsDetached() {
		return fmt.Errorf("the ClusterManager %s has the mode %s, so its servers run on the hub itself: kubectl delete clustermanager %[1]s removes it", o.name, c.Mode())
	}
	if there {
		if err := m.DeleteAndWait(ctx, c, "ClusterManager "+o.name, func() string { return management.DeletionState(c, c.Status.Conditions) }); err != nil {
			return err
		}
	}
	purged, err := m.PurgeOperator(ctx, o.purge)
	if err != nil {
		return err
	}
	result := struct {
		Name    string `json:"name"`
		Removed bool   `json:"removed"`
		Purged  bool   `json:"operatorRemoved"`
	}{o.name, there, purged}
	if there {
		return o.out.Print(o.Out, result, "The hub %s is removed.\n", o.name)
	}
	return o.out.Print(o.Out, result, "No ClusterManager %s found on the management cluster.\n", o.name)
}
