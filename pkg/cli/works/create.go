// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package works has the commands for ManifestWorks and ManifestWorkReplicaSets: create, get, delete, work status, rollout and agent
// upgrade.
package works

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
)

type createWorkOptions struct {
	*kit.Options
	kit.DryRun
	kit.WaitFlags
	clusters, more, files []string
	recursive             bool
	placement             string
	replicaSet, overwrite bool
	out                   *kit.Table
}

// NewCreateCommand returns the command create work.
func NewCreateCommand(opts *kit.Options) *cobra.Command {
	o := &createWorkOptions{Options: opts, out: kit.NewTable()}
	cmd := &cobra.Command{
		Use:     "work WORK",
		Aliases: []string{"works"},
		Short:   "Create a work with the objects of files on clusters",
		Long: "create work creates a ManifestWork with the objects of files or folders, for each cluster that --clusters names or --placement has " +
			"chosen at this time. With --replicaset the hub does so, and follows the placement when its decisions change. This needs the permission to create " +
			"manifestworks in the namespaces of the clusters, or manifestworkreplicasets in that of the placement.",
		Example: kit.Example(`
kubectl hub create work web -f manifests/ --clusters c1,c2 --wait
kubectl hub create work web -f web.yaml --placement dev/web --replicaset
kubectl hub create work web -f web.yaml --clusters c1 --overwrite`),
		Args: kit.OneArg("a work"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	fs := cmd.Flags()
	fs.StringSliceVarP(&o.files, "filename", "f", nil, "File or folder with the objects, as YAML or JSON; - reads standard input.")
	fs.BoolVarP(&o.recursive, "recursive", "R", false, "Read the folders of --filename recursively.")
	kit.AddClusterFlags(opts, cmd, &o.clusters, &o.more)
	fs.StringVar(&o.placement, "placement", "", "Placement that has chosen the clusters, as NAMESPACE/NAME, or NAME in the namespace of the context.")
	fs.BoolVarP(&o.replicaSet, "replicaset", "r", false, "Create a ManifestWorkReplicaSet, which follows the placement.")
	fs.BoolVar(&o.overwrite, "overwrite", false, "Replace the spec of existing objects.")
	kit.Must(cmd.MarkFlagRequired("filename"))
	for _, name := range []string{"clusters", "cluster"} {
		cmd.MarkFlagsMutuallyExclusive("placement", name)
	}
	o.AddWait(fs, "the work is applied and available on all clusters")
	o.AddTo(cmd)
	o.out.AddObjectTo(cmd)
	return cmd
}

func (o *createWorkOptions) run(ctx context.Context, name string) error {
	if err := o.out.Validate(); err != nil {
		return err
	}
	if err := o.ValidateTimeout(); err != nil {
		return err
	}
	switch {
	case o.replicaSet && o.placement == "":
		return errors.New("--replicaset needs the clusters of a placement: --placement must be set")
	case o.Wait && o.Value != "none":
		return errors.New("--wait is for works that are created: it cannot be used with --dry-run")
	case o.Wait && o.replicaSet:
		return fmt.Errorf("--wait is for single works, which the hub creates from a replica set: omit it, and wait with kubectl hub rollout status %s --wait "+
			"in the namespace of the placement", name)
	}
	spec, err := o.spec()
	if err != nil {
		return err
	}
	namespace, placement, err := o.placementName()
	if err != nil {
		return err
	}
	if o.replicaSet {
		return o.createReplicaSet(ctx, namespace, placement, name, spec)
	}
	if o.placement == "" {
		if len(o.clusters)+len(o.more) == 0 {
			return errors.New("--clusters must name the clusters to create the work on, or --placement a placement that chooses them: kubectl hub get clusters shows clusters, " +
				"kubectl hub get placements -A placements")
		}
		o.clusters, err = kit.NamedClusters("create the work on", o.clusters, o.more)
		if err != nil {
			return err
		}
	}
	var h *kit.HubClient
	if !o.IsClient() || o.placement != "" {
		h, err = o.Hub()
		if err != nil {
			return err
		}
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	if o.placement != "" {
		o.clusters, err = chosenBy(ctx, h, namespace, placement)
		if err != nil {
			return err
		}
	}
	if err := o.createWorks(ctx, h, name, spec); err != nil || !o.Wait {
		return err
	}
	return awaitWorks(ctx, o.Options, h, o.clusters, name)
}

// placementName returns the namespace and the name of the placement, or "" if none is set.
func (o *createWorkOptions) placementName() (namespace, name string, err error) {
	namespace, name, found := strings.Cut(o.placement, "/")
	switch {
	case o.placement == "":
		return "", "", nil
	case !found:
		in := &kit.NamespaceFlag{Options: o.Options}
		name = namespace
		namespace, err = in.Name()
	case namespace == "" || name == "" || strings.Contains(name, "/"):
		err = fmt.Errorf("--placement: expected NAMESPACE/NAME, got %q", o.placement)
	}
	return namespace, name, err
}

// chosenBy returns the clusters that a placement currently chooses.
func chosenBy(ctx context.Context, h *kit.HubClient, namespace, placement string) (clusters []string, err error) {
	if _, err := h.Clusters.ClusterV1beta1().Placements(namespace).Get(ctx, placement, metav1.GetOptions{}); answers.IsMissing(err, "placements") {
		return nil, fmt.Errorf("there is no placement %s in the namespace %s: --placement takes NAMESPACE/NAME for one of another namespace", placement, namespace)
	} else if err != nil {
		return nil, err
	}
	decided, err := h.ListDecisions(ctx, namespace, []string{placement})
	if err != nil {
		return nil, err
	}
	for _, d := range decided[types.NamespacedName{Namespace: namespace, Name: placement}] {
		clusters = append(clusters, d.ClusterName)
	}
	slices.Sort(clusters)
	clusters = slices.Compact(clusters)
	if len(clusters) == 0 {
		return nil, fmt.Errorf("the placement %s/%s has chosen no cluster: kubectl hub explain placement %[2]s -n %[1]s says why", namespace, placement)
	}
	return clusters, nil
}

// spec returns a spec with the objects of the files.
func (o *createWorkOptions) spec() (spec workv1.ManifestWorkSpec, err error) {
	infos, err := resource.NewLocalBuilder().Unstructured().
		FilenameParam(false, &resource.FilenameOptions{Filenames: o.files, Recursive: o.recursive}).Flatten().Do().Infos()
	if err != nil {
		return spec, fmt.Errorf("--filename: %w", err)
	}
	if len(infos) == 0 {
		return spec, fmt.Errorf("--filename: no objects found in %s", strings.Join(o.files, ", "))
	}
	for _, info := range infos {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok || object.GetName() == "" {
			return spec, fmt.Errorf("--filename: expected objects with a name, got a %s without one in %s", object.GetKind(), info.Source)
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			return spec, err
		}
		spec.Workload.Manifests = append(spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return spec, nil
}

// createWorks creates the work in each cluster. If this fails for a cluster, it continues with the others.
func (o *createWorkOptions) createWorks(ctx context.Context, h *kit.HubClient, name string, spec workv1.ManifestWorkSpec) error {
	list, failed := &workv1.ManifestWorkList{}, []error{}
	for _, cluster := range o.clusters {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}, Spec: spec}
		done := "created"
		if !o.IsClient() {
			made, updated, err := o.createWork(ctx, h, work)
			if err != nil {
				failed = append(failed, fmt.Errorf("cluster %s: %w", cluster, err))
				continue
			}
			work = made
			if updated {
				done = "configured"
			}
		}
		work.TypeMeta = metav1.TypeMeta{APIVersion: workv1.SchemeGroupVersion.String(), Kind: "ManifestWork"}
		list.Items = append(list.Items, *work)
		if o.out.IsTable() {
			if _, err := fmt.Fprintln(o.Out, o.Outcome("manifestwork", name, done+" in cluster "+cluster)); err != nil {
				return err
			}
		}
	}
	if !o.out.IsTable() && len(list.Items) > 0 {
		failed = append(failed, o.out.PrintObjects(o.Out, list))
	}
	return errors.Join(failed...)
}

func (o *createWorkOptions) createWork(ctx context.Context, h *kit.HubClient, work *workv1.ManifestWork) (made *workv1.ManifestWork, updated bool, err error) {
	works := h.Clusters.WorkV1().ManifestWorks(work.Namespace)
	made, err = works.Create(ctx, work, metav1.CreateOptions{DryRun: o.APIValue()})
	if answers.IsMissing(err, "namespaces") {
		return nil, false, errors.New("there is no such cluster, or it has not been accepted yet: kubectl hub get clusters shows all")
	}
	if !apierrors.IsAlreadyExists(err) {
		return made, false, err
	}
	if !o.overwrite {
		return nil, false, fmt.Errorf("%w: --overwrite replaces its manifests", err)
	}
	there, err := works.Get(ctx, work.Name, metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	// The other fields of the spec, such as the executor, may have been set by users.
	there.Spec.Workload = work.Spec.Workload
	made, err = works.Update(ctx, there, metav1.UpdateOptions{DryRun: o.APIValue()})
	return made, true, err
}

// createReplicaSet creates the ManifestWorkReplicaSet.
func (o *createWorkOptions) createReplicaSet(ctx context.Context, namespace, placement, name string, spec workv1.ManifestWorkSpec) error {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	set.Spec.ManifestWorkTemplate = spec
	set.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: placement,
		RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}}}
	done := "created"
	if !o.IsClient() {
		h, err := o.Hub()
		if err != nil {
			return err
		}
		sets := h.Clusters.WorkV1alpha1().ManifestWorkReplicaSets(namespace)
		made, err := sets.Create(ctx, set, metav1.CreateOptions{DryRun: o.APIValue()})
		if apierrors.IsAlreadyExists(err) {
			if !o.overwrite {
				return fmt.Errorf("%w: --overwrite replaces its manifests", err)
			}
			there, getErr := sets.Get(ctx, name, metav1.GetOptions{})
			if getErr != nil {
				return getErr
			}
			there.Spec.ManifestWorkTemplate.Workload, done = spec.Workload, "configured"
			made, err = sets.Update(ctx, there, metav1.UpdateOptions{DryRun: o.APIValue()})
		}
		if err != nil {
			return err
		}
		set = made
	}
	if !o.out.IsTable() {
		set.TypeMeta = metav1.TypeMeta{APIVersion: workv1alpha1.SchemeGroupVersion.String(), Kind: "ManifestWorkReplicaSet"}
		return o.out.PrintObjects(o.Out, set)
	}
	_, err := fmt.Fprintln(o.Out, o.Outcome("manifestworkreplicaset", name, done))
	return err
}
