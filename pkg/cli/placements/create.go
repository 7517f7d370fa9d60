// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placements has the commands for placements: create, get and explain.
package placements

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

type createPlacementOptions struct {
	kit.NamespaceFlag
	kit.DryRun
	sets, labels, predicates, cel, prioritizers []string
	count                                       int32
	overwrite                                   bool
	out                                         *kit.Table
}

// NewCreateCommand returns the command create placement.
func NewCreateCommand(opts *kit.Options) *cobra.Command {
	o := &createPlacementOptions{NamespaceFlag: kit.NamespaceFlag{Options: opts}, out: kit.NewTable()}
	cmd := &cobra.Command{
		Use:     "placement PLACEMENT",
		Aliases: []string{"placements"},
		Short:   "Create a placement, which chooses clusters of the sets that a namespace is bound to",
		Long: "create placement creates a placement. A cluster must match one of the predicates, which are the values of --label-selectors and " +
			"--predicate, and all expressions of --cel. Without predicates and expressions, all clusters of the sets match. This needs the permission to create " +
			"placements in the namespace.",
		Example: kit.Example(`
kubectl hub create placement web -n dev --clustersets europe --count 2
kubectl hub create placement web -n dev --predicate 'env=prod,tier notin (gold)' --predicate env=test
kubectl hub create placement web -n dev --cel 'managedCluster.status.version.kubernetes.startsWith("v1.3")' --dry-run=server -o yaml
kubectl hub create placement web -n dev --count 2 --prioritizers BuiltIn:ResourceAllocatableMemory:3,AddOn:load:free:1`),
		Args: kit.OneArg("a placement"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.Flags().Changed("count"))
		},
	}
	o.NamespaceFlag.AddTo(cmd, "the placement")
	fs := cmd.Flags()
	fs.StringSliceVar(&o.sets, "clustersets", nil, "Sets to choose from. Defaults to all sets that the namespace is bound to.")
	fs.Int32Var(&o.count, "count", 0, "Number of clusters to choose, 0 or more. Defaults to all clusters that match.")
	fs.StringArrayVar(&o.labels, "label-selectors", nil, "Label selectors, such as region=eu or 'tier in (a,b)', separated by commas. A cluster must match one of them.")
	fs.StringArrayVar(&o.predicates, "predicate", nil, "Label selector such as 'env=prod,tier notin (gold)', all terms of which a cluster must match. Can be repeated: a cluster must match one of them.")
	fs.StringArrayVar(&o.cel, "cel", nil, "CEL expression about managedCluster that must be true. Can be repeated: all of them must be true.")
	fs.StringSliceVar(&o.prioritizers, "prioritizers", nil, "Prioritizers by which clusters are preferred: BuiltIn:NAME:WEIGHT or AddOn:RESOURCE:SCORE:WEIGHT, separated by commas.")
	fs.BoolVar(&o.overwrite, "overwrite", false, "Replace the spec of an existing placement.")
	kit.Must(cmd.RegisterFlagCompletionFunc("clustersets", opts.CompletionFunc(kit.SetNames)))
	o.DryRun.AddTo(cmd)
	o.out.AddObjectTo(cmd)
	return cmd
}

func (o *createPlacementOptions) run(ctx context.Context, name string, counted bool) error {
	if err := o.out.Validate(); err != nil {
		return err
	}
	namespace, err := o.Name()
	if err != nil {
		return err
	}
	p := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Placement"}
	p.Spec.ClusterSets = o.sets
	if counted {
		p.Spec.NumberOfClusters = &o.count
	}
	p.Spec.Predicates, err = o.predicatesOf()
	if err != nil {
		return err
	}
	for _, text := range o.prioritizers {
		one, err := parsePrioritizer(text)
		if err != nil {
			return err
		}
		p.Spec.PrioritizerPolicy.Configurations = append(p.Spec.PrioritizerPolicy.Configurations, one)
	}
	if o.IsClient() {
		return o.done(p, "created")
	}
	h, err := o.Hub()
	if err != nil {
		return err
	}
	o.warnOfUnbound(ctx, h, namespace)
	placements := h.Clusters.ClusterV1beta1().Placements(namespace)
	made, err := placements.Create(ctx, p, metav1.CreateOptions{DryRun: o.APIValue()})
	if apierrors.IsAlreadyExists(err) {
		if !o.overwrite {
			return fmt.Errorf("%w: --overwrite replaces its spec", err)
		}
		there, err := placements.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		there.Spec = p.Spec
		made, err = placements.Update(ctx, there, metav1.UpdateOptions{DryRun: o.APIValue()})
		if err != nil {
			return err
		}
		return o.done(made, "configured")
	}
	if err != nil {
		return err
	}
	return o.done(made, "created")
}

func (o *createPlacementOptions) done(p *v1beta1.Placement, operation string) error {
	if !o.out.IsTable() {
		p.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Placement"}
		return o.out.PrintObjects(o.Out, p)
	}
	_, err := fmt.Fprintln(o.Out, o.Outcome("placement", p.Name, operation))
	return err
}

// warnOfUnbound warns about sets that have no binding in the namespace: no cluster can be chosen from them yet.
func (o *createPlacementOptions) warnOfUnbound(ctx context.Context, h *kit.HubClient, namespace string) {
	bindings, err := h.Clusters.ClusterV1beta2().ManagedClusterSetBindings(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return // this is a hint only
	}
	bound := make([]string, len(bindings.Items))
	for i := range bindings.Items {
		bound[i] = bindings.Items[i].Name
	}
	if len(bound) == 0 {
		o.Warn("the namespace %s is bound to no set, so there are no clusters to choose from: run kubectl hub bind SET --namespace %[1]s", namespace)
	}
	for _, set := range o.sets {
		if len(bound) > 0 && !slices.Contains(bound, set) {
			o.Warn("the namespace %s is not bound to the set %s: run kubectl hub bind %[2]s --namespace %[1]s", namespace, set)
		}
	}
}

// predicatesOf returns a predicate for each selector, each with all expressions.
func (o *createPlacementOptions) predicatesOf() (predicates []v1beta1.ClusterPredicate, err error) {
	add := func(flag, text string) error {
		selector, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			return fmt.Errorf("--%s: expected a label selector such as env=prod, got %q", flag, text)
		}
		p := v1beta1.ClusterPredicate{}
		p.RequiredClusterSelector.LabelSelector = *selector
		predicates = append(predicates, p)
		return nil
	}
	for _, texts := range o.labels {
		for _, text := range splitSelectors(texts) {
			if err := add("label-selectors", text); err != nil {
				return nil, err
			}
		}
	}
	for _, text := range o.predicates {
		if err := add("predicate", text); err != nil {
			return nil, err
		}
	}
	if len(o.cel) > 0 && len(predicates) == 0 {
		predicates = make([]v1beta1.ClusterPredicate, 1)
	}
	for i := range predicates {
		predicates[i].RequiredClusterSelector.CelSelector.CelExpressions = o.cel
	}
	return predicates, nil
}

// splitSelectors splits at the commas that are not within parentheses.
func splitSelectors(texts string) (selectors []string) {
	start, depth := 0, 0
	for i, c := range texts {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			selectors, start = append(selectors, texts[start:i]), i+1
		}
	}
	return append(selectors, texts[start:])
}

// parsePrioritizer parses the format of clusteradm.
func parsePrioritizer(text string) (config v1beta1.PrioritizerConfig, err error) {
	parts := strings.Split(text, ":")
	expected := fmt.Errorf("--prioritizers: expected BuiltIn:NAME:WEIGHT or AddOn:RESOURCE:SCORE:WEIGHT, got %q", text)
	coordinate := &v1beta1.ScoreCoordinate{Type: parts[0]}
	switch {
	case parts[0] == v1beta1.ScoreCoordinateTypeBuiltIn && len(parts) == 3:
		coordinate.BuiltIn = parts[1]
	case parts[0] == v1beta1.ScoreCoordinateTypeAddOn && len(parts) == 4:
		coordinate.AddOn = &v1beta1.AddOnScore{ResourceName: parts[1], ScoreName: parts[2]}
	default:
		return config, expected
	}
	weight, err := strconv.ParseInt(parts[len(parts)-1], 10, 32)
	if err != nil {
		return config, expected
	}
	return v1beta1.PrioritizerConfig{ScoreCoordinate: coordinate, Weight: new(int32(weight))}, nil
}
