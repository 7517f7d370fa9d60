// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan has the desired objects of the agent of a Klusterlet, and which fields of its spec have no effect. It sends no requests.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Plan has the desired objects of a Klusterlet.
type Plan struct {
	deploy.Klusterlet
	// Managed has the objects for the managed cluster, and Management those for the cluster that runs the pods, except the pods. If both are the same
	// cluster, all are in Management.
	Managed, Management, Pods []*unstructured.Unstructured
	// PodNamespace is the namespace of the pods. It is also in Management.
	PodNamespace *unstructured.Unstructured
}

// AgentSpec is a Klusterlet as the specification of an agent.
type AgentSpec struct{ *operatorv1.Klusterlet }

// New returns the plan of a Klusterlet, or an error that reports which field must be changed.
func New(k *operatorv1.Klusterlet, image string) (*Plan, error) {
	return AgentSpec{k}.Plan(image, false)
}

// Plan returns the desired objects. The image is for pods whose image the spec does not name. isSame means that the source leads to the cluster that
// runs the pods. The objects are the same then.
func (k AgentSpec) Plan(image string, isSame bool) (*Plan, error) {
	if why := validation.IsDNS1123Label(k.Name); len(why) > 0 || len(k.Name) > operatorv1.MaxKlusterletName {
		return nil, fmt.Errorf("the name of a Klusterlet must be a DNS label of at most %d characters, not %q: create another one",
			operatorv1.MaxKlusterletName, k.Name)
	}
	for _, namespace := range []string{k.AgentNamespace(), k.ManagedNamespace()} {
		if why := validation.IsDNS1123Label(namespace); len(why) > 0 {
			return nil, fmt.Errorf("the namespace would be %q, which is not possible: %s", namespace, strings.Join(why, "; "))
		}
		if namespace == corev1.NamespaceDefault || strings.HasPrefix(namespace, "kube-") {
			return nil, fmt.Errorf("the namespace would be %q, which is the cluster's own: delete the Klusterlet and create it with another name or spec.namespace", namespace)
		}
	}
	if name := k.Spec.ClusterName; name != "" {
		if why := validation.IsDNS1123Label(name); len(why) > 0 {
			return nil, fmt.Errorf("spec.clusterName must be a DNS label, not %q: %s", name, strings.Join(why, "; "))
		}
		if err := registration.CheckName(name); err != nil {
			return nil, fmt.Errorf("spec.clusterName: %w", err)
		}
	}
	if r := k.Spec.RegistrationConfiguration; r != nil && r.RegistrationDriver.AuthType == operatorv1.GRPCAuthType {
		return nil, fmt.Errorf("spec.registrationConfiguration.registrationDriver.authType must be %s or %s, not %s, which agents of Open Cluster Management alone have",
			operatorv1.CSRAuthType, operatorv1.AwsIrsaAuthType, operatorv1.GRPCAuthType)
	}
	role, err := k.roleARN()
	if err != nil {
		return nil, err
	}
	several, _ := k.HubSecrets()
	d := deploy.Klusterlet{
		RoleARN: role, BootstrapSecrets: several,
		Name: k.Name, Namespace: k.ManagedNamespace(), Detached: k.IsDetached(), AgentNamespace: k.AgentNamespace(), Singleton: k.IsSingleton(),
		RegistrationImage: cmp.Or(k.Spec.RegistrationImagePullSpec, image), WorkImage: cmp.Or(k.Spec.WorkImagePullSpec, image),
		RegistrationArgs: k.registrationArgs(), WorkArgs: k.workArgs(), Works: deploy.Works{Role: "admin"}, SameCluster: isSame,
	}
	if d.Singleton {
		d.RegistrationImage = cmp.Or(k.Spec.ImagePullSpec, d.RegistrationImage)
	}
	if own := k.Spec.Clusterhub; own != nil {
		d.Works = deploy.Works{Role: cmp.Or(own.Works.Role, "admin"), Namespaces: own.Works.Namespaces}
		for _, namespace := range d.Works.Namespaces {
			if namespace == d.Namespace || isSame && namespace == d.AgentNamespace {
				return nil, fmt.Errorf("spec.clusterhub.works.namespaces must not have %s, which is the agent's own: works there could take its rights", namespace)
			}
		}
	}
	var failed error
	d.Pod = func(spec map[string]any) { failed = k.fillPod(spec) }
	p := &Plan{Klusterlet: d}
	objects, err := d.Objects()
	if err == nil && d.Detached {
		p.Managed, objects, err = d.Split()
	}
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	for _, o := range objects {
		switch {
		case o.GetKind() == Deployments.Kind:
			p.Pods = append(p.Pods, o)
			continue
		case o.GetKind() == Namespaces.Kind:
			p.PodNamespace = o
		}
		p.Management = append(p.Management, o)
	}
	return p, nil
}

// roleARN returns the IAM role of AWS that the agent assumes, if its identity is one. Pods on another cluster do not assume it: the role would have to
// trust the cluster of the pods.
func (k AgentSpec) roleARN() (string, error) {
	const at = "spec.registrationConfiguration.registrationDriver.awsIrsa"
	r := k.Spec.RegistrationConfiguration
	if r == nil || r.RegistrationDriver.AuthType != operatorv1.AwsIrsaAuthType {
		return "", nil
	}
	aws := r.RegistrationDriver.AwsIrsa
	if aws == nil {
		return "", fmt.Errorf("%s must be there for the authType %s, with the ARNs of the EKS clusters of the hub and of the agent", at, operatorv1.AwsIrsaAuthType)
	}
	hub, err := irsa.ParseClusterARN(aws.HubClusterArn)
	if err != nil {
		return "", fmt.Errorf("%s.hubClusterArn: %w", at, err)
	}
	managed, err := irsa.ParseClusterARN(aws.ManagedClusterArn)
	if err != nil {
		return "", fmt.Errorf("%s.managedClusterArn: %w", at, err)
	}
	identity, err := irsa.NewIdentity(hub, managed)
	if err != nil {
		return "", fmt.Errorf("%s.managedClusterArn: %w", at, err)
	}
	if k.IsDetached() {
		return "", nil
	}
	return identity.ManagedRoleARN(), nil
}

// Inventory returns all desired objects of both clusters.
func (p *Plan) Inventory() (all []operatorv1.RelatedResourceMeta) {
	for _, objects := range [][]*unstructured.Unstructured{p.Managed, p.Management, p.Pods} {
		for _, o := range objects {
			if r := resourceOf(o); !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

// fillPod sets the fields of a pod that the user specifies for the pods.
func (k AgentSpec) fillPod(spec map[string]any) error {
	if k.Spec.PriorityClassName != "" {
		spec["priorityClassName"] = k.Spec.PriorityClassName
	}
	if alias := k.Spec.HubApiServerHostAlias; alias != nil {
		spec["hostAliases"] = []any{map[string]any{"ip": alias.IP, "hostnames": []any{alias.Hostname}}}
	}
	if own := k.Spec.Clusterhub; own != nil && len(own.ImagePullSecrets) > 0 {
		spec["imagePullSecrets"] = deploy.References(own.ImagePullSecrets)
	}
	if selector := k.Spec.NodePlacement.NodeSelector; len(selector) > 0 {
		all := map[string]any{}
		for key, value := range selector {
			all[key] = value
		}
		spec["nodeSelector"] = all
	}
	if tolerations := k.Spec.NodePlacement.Tolerations; len(tolerations) > 0 {
		value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodSpec{Tolerations: tolerations})
		if err != nil {
			return err
		}
		spec["tolerations"] = value["tolerations"]
	}
	r := k.Spec.ResourceRequirement
	if r == nil || r.Type == operatorv1.ResourceQosClassDefault {
		return nil
	}
	container, ok := spec["containers"].([]any)[0].(map[string]any)
	if !ok {
		return fmt.Errorf("the pods have no container")
	}
	delete(container, "resources")
	if r.Type != operatorv1.ResourceQosClassResourceRequirement || r.ResourceRequirements == nil {
		return nil
	}
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.ResourceRequirements)
	if err == nil {
		container["resources"] = value
	}
	return err
}
