// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

type upgradeOptions struct {
	*createWorkOptions
	name, image    string
	agentNamespace string
	klusterlet     string

	maxConcurrency, maxFailures, progressDeadline, minSuccessTime string
}

// NewAgentUpgradeCommand returns the command agent upgrade.
func NewAgentUpgradeCommand(opts *kit.Options) *cobra.Command {
	o := &upgradeOptions{createWorkOptions: &createWorkOptions{Options: opts, out: kit.NewTable()}, image: kit.ImageOf(kit.AgentImage, opts.Version), agentNamespace: registration.AgentNamespace,
		maxConcurrency: "10%", maxFailures: "0", progressDeadline: "10m", minSuccessTime: "2m"}
	cmd := &cobra.Command{
		Use:   "upgrade --placement NAMESPACE/NAME --image IMAGE",
		Short: "Upgrade the agents of the clusters that a placement chooses",
		Long: "upgrade creates or changes a ManifestWorkReplicaSet that sets the image of the agents of the clusters that the placement has chosen, a few at a time. " +
			"It stops when an agent does not come back: a cluster is done when the new agent has renewed its lease and has reported the status of the work to the hub. " +
			"kubectl hub rollout status shows how far it is, kubectl hub top agents each agent, and kubectl hub rollout undo goes back.\n\n" +
			"The admin of a cluster decides whether the hub may do so: by kubectl hub join --upgradable, or for an agent of a Klusterlet (--klusterlet) by letting the agent " +
			"patch it. The placement must tolerate clusters that are unavailable or unreachable: otherwise a cluster that is lost would leave the rollout, " +
			"which would continue.",
		Example: kit.Example(`
kubectl hub agent upgrade --placement fleet/stores --image registry.example/clusterhub/hub-agent:v1.3.0
kubectl hub agent upgrade --placement fleet/stores --image … --max-concurrency 1 --min-success-time 1h
kubectl hub agent upgrade --placement fleet/stores --image … --klusterlet klusterlet
kubectl hub agent upgrade --placement fleet/stores --image … --dry-run=client --output=yaml`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.upgrade(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.placement, "placement", "", "Placement that has chosen the clusters, as NAMESPACE/NAME, or NAME in the namespace of the context.")
	fs.StringVar(&o.image, "image", o.image, "Image of hub-agent, with a tag or a digest.")
	fs.StringVar(&o.name, "name", "", "Name of the ManifestWorkReplicaSet. Defaults to agent-upgrade- followed by the name of the placement.")
	fs.StringVar(&o.agentNamespace, "agent-namespace", o.agentNamespace, "Namespace of the agents on their clusters.")
	fs.StringVar(&o.klusterlet, "klusterlet", "", "Klusterlet of the agents on their clusters, which hub-operator deploys.")
	fs.StringVar(&o.maxConcurrency, "max-concurrency", o.maxConcurrency, "How many clusters are upgraded at a time: a number, or a percentage.")
	fs.StringVar(&o.maxFailures, "max-failures", o.maxFailures, "How many clusters may fail before the rollout stops: a number, or a percentage.")
	fs.StringVar(&o.progressDeadline, "progress-deadline", o.progressDeadline, "Time after which a cluster that is not done counts as failed.")
	fs.StringVar(&o.minSuccessTime, "min-success-time", o.minSuccessTime, "How long a cluster must be available before it is done.")
	kit.Must(cmd.MarkFlagRequired("placement"))
	o.AddTo(cmd)
	o.out.AddObjectTo(cmd)
	return cmd
}

func (o *upgradeOptions) upgrade(ctx context.Context) error {
	if err := o.out.Validate(); err != nil {
		return err
	}
	set, err := o.replicaSet()
	if err != nil {
		return err
	}
	done := "created"
	if !o.IsClient() {
		set, done, err = o.write(ctx, set)
		if err != nil {
			return err
		}
	}
	if !o.out.IsTable() {
		set.TypeMeta = metav1.TypeMeta{APIVersion: workv1alpha1.SchemeGroupVersion.String(), Kind: "ManifestWorkReplicaSet"}
		return o.out.PrintObjects(o.Out, set)
	}
	_, err = fmt.Fprintln(o.Out, o.Outcome("manifestworkreplicaset", set.Name, done))
	if err == nil && o.Value == "none" {
		_, err = fmt.Fprintf(o.Out, "\nFollow it:\n\n    kubectl hub rollout status %s -n %s --wait\n    kubectl hub top agents\n", set.Name, set.Namespace)
	}
	return err
}

// replicaSet returns the replica set that the flags describe.
func (o *upgradeOptions) replicaSet() (*workv1alpha1.ManifestWorkReplicaSet, error) {
	namespace, placement, err := o.placementName()
	if err != nil {
		return nil, err
	}
	if _, version, err := registration.SplitImage(o.image); err != nil || version == "" {
		return nil, fmt.Errorf("--image must be an image of hub-agent with a tag or a digest, not %q", o.image)
	}
	if o.name == "" {
		o.name = "agent-upgrade-" + placement
	}
	soak, err := duration.Parse(o.minSuccessTime)
	if err != nil {
		return nil, fmt.Errorf("--min-success-time: %w", err)
	}
	manifest, config := o.manifest()
	raw, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.name,
		Labels: map[string]string{registration.LabelAgentUpgrade: "true"}}}
	set.Spec.ManifestWorkTemplate = workv1.ManifestWorkSpec{
		Workload:        workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}},
		ManifestConfigs: []workv1.ManifestConfigOption{config},
		// Agents of other versions and programs may delete the objects of a work together with it.
		DeleteOption: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan},
	}
	set.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: placement, RolloutStrategy: clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			MaxConcurrency: intstr.Parse(o.maxConcurrency), RolloutConfig: clusterv1alpha1.RolloutConfig{
				MinSuccessTime: soak, ProgressDeadline: o.progressDeadline, MaxFailures: intstr.Parse(o.maxFailures)}}}}}
	return set, nil
}

// comesBack is true for a Klusterlet that hub-operator has observed and whose agents are running.
const comesBack = "has(object.status) && has(object.status.observedGeneration) && object.status.observedGeneration == object.metadata.generation && " +
	"has(object.status.conditions) && ['Applied', 'Available'].all(t, object.status.conditions.exists(c, c.type == t && c.status == 'True'))"

// manifest returns the manifest of the work for an agent, and its options for apply and completion.
func (o *upgradeOptions) manifest() (*unstructured.Unstructured, workv1.ManifestConfigOption) {
	config := workv1.ManifestConfigOption{UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply,
		ServerSideApply: &workv1.ServerSideApplyConfig{Force: true}}}
	if o.klusterlet != "" {
		config.ResourceIdentifier = workv1.ResourceIdentifier{Group: "operator.open-cluster-management.io", Resource: "klusterlets", Name: o.klusterlet}
		config.ConditionRules = []workv1.ConditionRule{{Type: workv1.CelConditionExpressionsType, Condition: workv1.ManifestProgressing,
			CelExpressions: []string{"!(" + comesBack + ")"}, MessageExpression: "result ? 'its agents have not come back yet' : 'its agents run'"}}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet",
			"metadata": map[string]any{"name": o.klusterlet}, "spec": map[string]any{"registrationImagePullSpec": o.image, "workImagePullSpec": o.image}}}, config
	}
	config.ResourceIdentifier = workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: o.agentNamespace, Name: registration.AgentDeployment}
	config.ConditionRules = []workv1.ConditionRule{{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestProgressing},
		{Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestDegraded}}
	return registration.AgentImage(o.agentNamespace, o.image), config
}

// write creates the replica set, or updates the existing one for the same placement.
func (o *upgradeOptions) write(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (_ *workv1alpha1.ManifestWorkReplicaSet, done string, err error) {
	h, err := o.Hub()
	if err != nil {
		return nil, "", err
	}
	placement, err := h.Clusters.ClusterV1beta1().Placements(set.Namespace).Get(ctx, set.Spec.PlacementRefs[0].Name, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	if err := checkTolerates(placement); err != nil {
		return nil, "", err
	}
	sets := h.Clusters.WorkV1alpha1().ManifestWorkReplicaSets(set.Namespace)
	made, err := sets.Create(ctx, set, metav1.CreateOptions{DryRun: o.APIValue()})
	if !apierrors.IsAlreadyExists(err) {
		return made, "created", err
	}
	there, err := sets.Get(ctx, set.Name, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	if there.Labels[registration.LabelAgentUpgrade] != "true" || len(there.Spec.PlacementRefs) != 1 || there.Spec.PlacementRefs[0].Name != placement.Name {
		return nil, "", fmt.Errorf("ManifestWorkReplicaSet %s/%s exists, but does not upgrade the agents of placement %s: set another name with --name",
			set.Namespace, set.Name, placement.Name)
	}
	executor := there.Spec.ManifestWorkTemplate.Executor
	there.Spec = set.Spec
	there.Spec.ManifestWorkTemplate.Executor = executor // set by a user: no flag does
	made, err = sets.Update(ctx, there, metav1.UpdateOptions{DryRun: o.APIValue()})
	return made, "configured", err
}

// checkTolerates returns an error if a cluster that becomes unreachable would leave the placement, and with it the rollout.
func checkTolerates(placement *clusterv1beta1.Placement) error {
	for _, taint := range []string{registration.TaintUnreachable, registration.TaintUnavailable} {
		if !slices.ContainsFunc(placement.Spec.Tolerations, func(t clusterv1beta1.Toleration) bool {
			return (t.Key == taint || t.Key == "") && t.Operator == clusterv1beta1.TolerationOpExists && t.TolerationSeconds == nil && t.Effect == ""
		}) {
			return errors.New("placement " + placement.Namespace + "/" + placement.Name + " does not tolerate the taint " + taint + ": a cluster whose agent does not come back " +
				"would leave the rollout, which would continue with the next ones. Add to spec.tolerations: {key: " + taint + ", operator: Exists}")
		}
	}
	return nil
}
