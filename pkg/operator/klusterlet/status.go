// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Reasons of HubConnectionDegraded: the agent has no identity and no bootstrap kubeconfig to get one.
const (
	reasonBootstrapMissing = "BootstrapSecretMissing" // the Secret with the bootstrap kubeconfig does not exist
	// reasonBootstrapRefused: the Secret exists, and the agent cannot use its kubeconfig.
	reasonBootstrapRefused = "BootstrapSecretError"
)

// report is the observed state of a Klusterlet, for its status.
type report struct {
	detached    bool
	generation  int64
	conditions  []metav1.Condition
	generations []operatorv1.GenerationStatus
	// inventory is nil if it does not change.
	inventory   []operatorv1.RelatedResourceMeta
	clusterName string
	waitsFor    string
}

func newReport(k *operatorv1.Klusterlet) *report {
	s := &report{detached: k.IsDetached(), generation: k.Generation}
	status, reason, message := metav1.ConditionFalse, operatorv1.ReasonNoFieldsIgnored, "all fields of the spec have an effect"
	if ignored := (plan.AgentSpec{Klusterlet: k}).Ignored(); len(ignored) > 0 {
		status, reason, message = metav1.ConditionTrue, operatorv1.ReasonFieldsIgnored, strings.Join(ignored, "; ")
	}
	s.set(operatorv1.ConditionFieldsIgnored, status, reason, message)
	if without := (plan.AgentSpec{Klusterlet: k}).GatesWithoutEffect(); len(without) > 0 {
		s.set(operatorv1.ConditionValidFeatureGates, metav1.ConditionFalse, operatorv1.ReasonInvalidFeatureGatesExisting,
			"these feature gates have no effect: "+strings.Join(without, ", "))
	} else {
		s.set(operatorv1.ConditionValidFeatureGates, metav1.ConditionTrue, operatorv1.ReasonFeatureGatesAllValid, "all feature gates have an effect")
	}
	return s
}

func (s *report) set(conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.conditions, metav1.Condition{Type: conditionType, Status: status, Reason: reason,
		Message: kit.Message(message), ObservedGeneration: s.generation})
}

// applied sets whether all that the agent needs is applied.
func (s *report) applied(reason string, err error) {
	status, message := metav1.ConditionTrue, "all objects that the agent needs exist"
	if err != nil {
		status, message = metav1.ConditionFalse, err.Error()
		s.waitsFor = message
	}
	s.set(operatorv1.ConditionKlusterletApplied, status, reason, message)
}

// ready sets whether the secrets lead to the managed cluster.
func (s *report) ready(problem error) {
	if problem == nil {
		s.set(operatorv1.ConditionReadyToApply, metav1.ConditionTrue, operatorv1.ReasonKlusterletPrepared, "the secrets exist")
		return
	}
	s.waitsFor = problem.Error()
	s.set(operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed, problem.Error())
}

// hub sets the state of the hub connection that the Secrets contain. No request is sent to the hub: only the agent has its identity.
func (s *report) hub(secrets agentSecrets) {
	status, reason, message := metav1.ConditionFalse, operatorv1.ReasonHubConnectionFunctional, "the agent has an identity on the hub"
	problem, refused := secrets.bootstrapProblem(), secrets.refused()
	if name := secrets.clusterName(); secrets.hasIdentity() && len(validation.IsDNS1123Label(name)) == 0 {
		s.clusterName = name
	}
	switch {
	case secrets.hasIdentity() && refused != "":
		status, reason, message = metav1.ConditionTrue, operatorv1.ReasonHubKubeConfigUnauthorized, refused
	case secrets.hasIdentity():
	case problem != nil:
		status, reason, message = metav1.ConditionTrue, reasonBootstrapMissing, problem.Error()
		if secrets.bootstrap != nil && len(secrets.bootstrap.Data[operatorv1.KeyKubeconfig]) > 0 {
			reason = reasonBootstrapRefused
		}
	case secrets.identity == nil:
		status, reason, message = metav1.ConditionTrue, operatorv1.ReasonHubKubeConfigSecretMissing, "the agent has not started to register the cluster"
	default:
		status, reason, message = metav1.ConditionTrue, operatorv1.ReasonHubKubeConfigMissing,
			"the agent has no identity yet: the hub has to accept the cluster"
	}
	if using, givenUp := secrets.hub(); !secrets.hasIdentity() && using != "" {
		message = strings.Join(append(givenUp, "the agent has no identity yet: the hub of the Secret "+using+" has to answer and to accept the cluster"), "; ")
	}
	s.rebootstrap(secrets)
	s.set(operatorv1.ConditionHubConnectionDegraded, status, reason, message)
	if status == metav1.ConditionTrue {
		s.waitsFor = message
	}
}

func (s *report) unavailable(reason, message string) {
	s.set(operatorv1.ConditionKlusterletAvailable, metav1.ConditionFalse, reason, message)
}

// failed sets the condition of a reason to an error.
func (s *report) failed(reason string, err error) {
	if reason == operatorv1.ReasonKlusterletPrepareFailed {
		s.ready(err)
		return
	}
	s.applied(reason, err)
}

// observePods reads the Deployments of a plan, and sets the conditions of the pods.
func (s *report) observePods(ctx context.Context, c client.Reader, p *plan.Plan) error {
	var lacking []string
	for i, part := range p.Parts() {
		kinds := []string{operatorv1.ConditionRegistrationDesiredDegraded, operatorv1.ConditionWorkDesiredDegraded}
		if !p.Singleton {
			kinds = kinds[i : i+1]
		}
		namespace := p.Namespace
		if p.Detached {
			namespace = p.AgentNamespace
		}
		d := &appsv1.Deployment{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: part.Deployment}, d)
		status, reason, message := metav1.ConditionFalse, operatorv1.ReasonKlusterletDeploymentsFunctional, "its pods run"
		switch {
		case apierrors.IsNotFound(err):
			status, reason, message = metav1.ConditionTrue, operatorv1.ReasonKlusterletGetDeploymentFailed,
				fmt.Sprintf("Deployment %s/%s does not exist", namespace, part.Deployment)
		case err != nil:
			return err
		default:
			s.generations = append(s.generations, operatorv1.GenerationStatus{Group: plan.Deployments.Group, Version: plan.Deployments.Version,
				Resource: plan.Deployments.Resource, Namespace: namespace, Name: part.Deployment, LastGeneration: d.Generation})
			if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < 1 || d.Status.UnavailableReplicas > 0 {
				status, reason, message = metav1.ConditionTrue, operatorv1.ReasonKlusterletUnavailablePods,
					fmt.Sprintf("no pod of Deployment %s/%s is ready with the latest template", namespace, part.Deployment)
			}
		}
		if status == metav1.ConditionTrue {
			lacking = append(lacking, message)
		}
		for _, kind := range kinds {
			s.set(kind, status, reason, message)
		}
	}
	if len(lacking) == 0 {
		s.set(operatorv1.ConditionKlusterletAvailable, metav1.ConditionTrue, operatorv1.ReasonKlusterletAvailable, "the agent runs")
		return nil
	}
	message := strings.Join(lacking, "; ")
	if s.waitsFor != "" {
		message = s.waitsFor
	}
	s.unavailable(operatorv1.ReasonKlusterletNoAvailablePods, message)
	return nil
}

// into writes the report to a status.
func (s *report) into(k *operatorv1.Klusterlet) {
	k.Status.ObservedGeneration = s.generation
	for _, condition := range s.conditions {
		meta.SetStatusCondition(&k.Status.Conditions, condition)
	}
	if !s.detached {
		meta.RemoveStatusCondition(&k.Status.Conditions, operatorv1.ConditionReadyToApply)
	}
	if meta.FindStatusCondition(s.conditions, operatorv1.ConditionRebootstrapProgressing) == nil {
		meta.RemoveStatusCondition(&k.Status.Conditions, operatorv1.ConditionRebootstrapProgressing)
	}
	if s.inventory != nil {
		k.Status.RelatedResources = slices.Clone(s.inventory)
	}
	if s.generations != nil {
		k.Status.Generations = s.generations
	}
	if s.clusterName != "" {
		if k.Status.Clusterhub == nil {
			k.Status.Clusterhub = &operatorv1.KlusterletClusterhubStatus{}
		}
		k.Status.Clusterhub.ClusterName = s.clusterName
	}
}

// givenUpTexts maps the reasons that agents write to texts.
var givenUpTexts = map[string]string{
	registration.RefusalNotAccepted:         "it no longer accepts the cluster",
	registration.RefusalNoCluster:           "it forbids the agent to get its ManagedCluster",
	registration.RefusalUnknown:             "it does not know the identity of the agent",
	registration.GivenUpNoAnswer:            "it does not respond",
	registration.GivenUpNotAcceptedInTime:   "it has not accepted the cluster in time",
	registration.GivenUpBootstrapKubeconfig: "the Secret is missing, or its kubeconfig cannot be used",
	registration.GivenUpBootstrapRefused:    "it refuses the bootstrap token",
}

// rebootstrap sets RebootstrapProgressing from what the agent has written about its hubs. That selects texts and names of the spec, and is never
// quoted.
func (s *report) rebootstrap(secrets agentSecrets) {
	if len(secrets.hubs) == 0 {
		return
	}
	status, reason, message := metav1.ConditionFalse, operatorv1.ReasonRebootstrapCompleted, "the agent has not begun to choose a hub"
	using, tried := secrets.hub()
	if using != "" {
		message = "the agent uses the hub of the Secret " + using
	}
	if using != "" && (len(tried) > 0 || !secrets.hasIdentity()) {
		status, reason = metav1.ConditionTrue, operatorv1.ReasonRebootstrapStarted
		message = strings.Join(append(tried, "the agent tries the hub of the Secret "+using), "; ")
	}
	s.set(operatorv1.ConditionRebootstrapProgressing, status, reason, message)
}

// hub returns the Secret of the hub that the agent uses or tries, "" if that is not known, and texts about the hubs that the agent gave up on.
func (s agentSecrets) hub() (using string, givenUp []string) {
	if s.identity == nil {
		return "", nil
	}
	if name := string(s.identity.Data[registration.KeyHub]); slices.Contains(s.hubs, name) {
		using = name
	}
	for _, hub := range registration.ParseGivenUp(s.identity.Data[registration.KeyGivenUpHubs]) {
		if text := givenUpTexts[hub.Reason]; text != "" && slices.Contains(s.hubs, hub.Name) {
			givenUp = append(givenUp, fmt.Sprintf("the hub of the Secret %s was given up: %s", hub.Name, text))
		}
	}
	return using, givenUp
}
