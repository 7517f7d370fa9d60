// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// componentProvider is the component that has a Deployment of its own.
const componentProvider = "cluster-provider"

// providerAccount is its ServiceAccount on the hub.
const providerAccount = "cluster-provider-kubeconfig"

// leftoverTTL is the time after which a ManagedCluster without an agent is deleted, if the component leftovers is enabled.
const leftoverTTL = "24h"

// Images in the manifests.
const (
	imageAPIServer = "clusterhub/hub-apiserver"
	imageManager   = "clusterhub/hub-controller-manager"
	imageProvider  = "clusterhub/cluster-provider"
)

// plan has the desired objects of a hub, grouped by cluster. If all is on one cluster, hub has only the APIServices.
type plan struct {
	// hub has the objects that must exist before the servers, and services the APIServices, which are created once a server runs.
	hub, services []*unstructured.Unstructured
	// management has the objects that the servers need to run.
	management []*unstructured.Unstructured
	// accounts are the ServiceAccounts of the hub for pods that reach it from elsewhere.
	accounts []account
}

// account is a ServiceAccount of the hub.
type account struct{ namespace, name string }

// planOf returns the plan of a ClusterManager. way is as in deploy.Pods; it is empty if the servers run on the hub.
func planOf(cm *operatorv1.ClusterManager, images map[string]string, way string) (*plan, error) {
	spec := cm.Spec.Clusterhub
	if spec == nil {
		spec = &operatorv1.ClusterManagerClusterhub{}
	}
	if err := checkNamespace(cm); err != nil {
		return nil, err
	}
	pods, err := podsOf(cm, spec, way)
	if err != nil {
		return nil, err
	}
	hub := deploy.Hub{
		ExternalEtcd: spec.Etcd.Type == operatorv1.HubEtcdExternal,
		Components:   componentsOf(cm, spec),
		Changes: deploy.Changes{Images: map[string]string{
			imageAPIServer: cmp.Or(spec.APIServer.Image, images[imageAPIServer]),
			imageManager:   cmp.Or(spec.ControllerManager.Image, images[imageManager]),
		}},
		Pods: pods,
	}
	provider := deploy.ClusterProvider{
		Changes: deploy.Changes{Images: map[string]string{imageProvider: images[imageProvider]}}, Pods: pods,
	}
	p := &plan{}
	if !cm.IsDetached() {
		p.management, err = hub.Objects()
		if err == nil && slices.Contains(spec.Components, componentProvider) {
			var more []*unstructured.Unstructured
			more, err = provider.Objects()
			p.management = append(p.management, more...)
		}
	} else {
		hub.Address = addressOf(cm, spec)
		p.hub, p.management, err = hub.Split(cm.ServerNamespace())
		if err == nil && slices.Contains(spec.Components, componentProvider) {
			var there, here []*unstructured.Unstructured
			there, here, err = provider.Split(cm.ServerNamespace())
			p.hub, p.management = append(p.hub, there...), append(p.management, here...)
		}
	}
	if err != nil {
		return nil, err
	}
	p.arrange(cm)
	return p, nil
}

// checkNamespace rejects names that do not result in a valid namespace, or in one that must not be used for a hub's servers.
func checkNamespace(cm *operatorv1.ClusterManager) error {
	namespace := cm.ServerNamespace()
	if problems := append(validation.IsDNS1123Label(namespace), validation.IsValidLabelValue(cm.Name)...); len(problems) > 0 {
		return fmt.Errorf("the name %q cannot be used: the namespace of its servers would be %s: %s", cm.Name, namespace, problems[0])
	}
	if namespace == metav1.NamespaceDefault || strings.HasPrefix(namespace, "kube-") {
		return fmt.Errorf("the servers of a hub cannot be in the namespace %s, which is Kubernetes' own: give the ClusterManager another name", namespace)
	}
	return nil
}

// arrange separates the APIServices, removes duplicates, and collects the accounts.
func (p *plan) arrange(cm *operatorv1.ClusterManager) {
	isService := func(o *unstructured.Unstructured) bool { return apiServices.of(o) }
	for _, side := range []*[]*unstructured.Unstructured{&p.hub, &p.management} {
		seen := map[apply.ID]bool{}
		var pods []*unstructured.Unstructured
		*side = slices.DeleteFunc(*side, func(o *unstructured.Unstructured) bool {
			id := apply.IDOf(o)
			twice := seen[id]
			seen[id] = true
			switch {
			case twice:
			case isService(o):
				p.services = append(p.services, o)
			case o.GetKind() == kindDeployment:
				pods = append(pods, o)
			default:
				return false
			}
			return true
		})
		*side = append(*side, pods...) // of both deployments, after what they need
	}
	if !cm.IsDetached() {
		return
	}
	for _, o := range p.management {
		name, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName")
		if o.GetKind() != kindDeployment || name == "" {
			continue
		}
		for _, on := range p.hub {
			if on.GetKind() == "ServiceAccount" && on.GetName() == name {
				p.accounts = append(p.accounts, account{on.GetNamespace(), name})
			}
		}
	}
}

const kindDeployment = "Deployment"

// addressOf returns the address at which the hub reaches hub-apiserver.
func addressOf(cm *operatorv1.ClusterManager, spec *operatorv1.ClusterManagerClusterhub) deploy.Address {
	if a := spec.APIServer.Address; a != nil {
		return deploy.Address{Host: a.Host, Port: cmp.Or(int64(a.Port), 443)}
	}
	return deploy.ServiceAddress(cm.ServerNamespace())
}

func componentsOf(cm *operatorv1.ClusterManager, spec *operatorv1.ClusterManagerClusterhub) []string {
	components := []string{"bootstrap"}
	for _, name := range spec.Components {
		if name != componentProvider && !slices.Contains(components, name) {
			components = append(components, name)
		}
	}
	if gates(cm)[gateAutoApproval] && !slices.Contains(components, "auto-approval") {
		components = append(components, "auto-approval")
	}
	slices.Sort(components)
	return components
}

func podsOf(cm *operatorv1.ClusterManager, spec *operatorv1.ClusterManagerClusterhub, way string) (deploy.Pods, error) {
	pods := deploy.Pods{Way: way, Replicas: map[string]int64{}, Args: argsOf(cm, spec)}
	if r := spec.ControllerManager.Replicas; r != nil {
		pods.Replicas[deploy.Manager] = int64(*r)
	}
	switch etcd := spec.Etcd; etcd.Type {
	case operatorv1.HubEtcdExternal:
		if etcd.External == nil || len(etcd.External.Servers) == 0 {
			return pods, fmt.Errorf("spec.clusterhub.etcd.external.servers must name the servers of the external etcd")
		}
		pods.EtcdServers, pods.EtcdSecret = etcd.External.Servers, cmp.Or(etcd.External.SecretName, "hub-apiserver-etcd")
		if r := spec.APIServer.Replicas; r != nil {
			pods.Replicas[deploy.APIServer] = int64(*r)
		}
	default:
		if e := etcd.Embedded; e != nil {
			if e.Size != nil {
				pods.Volume = *e.Size
			}
			if e.StorageClassName != nil {
				pods.StorageClass = *e.StorageClassName
			}
		}
		if r := spec.APIServer.Replicas; r != nil && *r != 1 {
			return pods, fmt.Errorf("spec.clusterhub.apiServer.replicas must be 1 with the embedded etcd, not %d: "+
				"several replicas need spec.clusterhub.etcd.type External", *r)
		}
	}
	for key, value := range cm.Spec.NodePlacement.NodeSelector {
		if pods.NodeSelector == nil {
			pods.NodeSelector = map[string]any{}
		}
		pods.NodeSelector[key] = value
	}
	for i := range cm.Spec.NodePlacement.Tolerations {
		toleration, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&cm.Spec.NodePlacement.Tolerations[i])
		if err != nil {
			return pods, err
		}
		pods.Tolerations = append(pods.Tolerations, toleration)
	}
	var err error
	pods.Resources, err = resourcesOf(cm.Spec.ResourceRequirement)
	return pods, err
}

func resourcesOf(asked *operatorv1.ResourceRequirement) (map[string]any, error) {
	if asked == nil {
		return nil, nil
	}
	switch asked.Type {
	case operatorv1.ResourceQosClassBestEffort:
		return map[string]any{}, nil
	case operatorv1.ResourceQosClassResourceRequirement:
		requirements := asked.ResourceRequirements
		if requirements == nil {
			requirements = &corev1.ResourceRequirements{}
		}
		return runtime.DefaultUnstructuredConverter.ToUnstructured(requirements)
	}
	return nil, nil
}

// argsOf returns the flags of the servers for the ClusterManager's settings of registration.
func argsOf(cm *operatorv1.ClusterManager, spec *operatorv1.ClusterManagerClusterhub) map[string][]string {
	args := map[string][]string{}
	add := func(flag string, deployments ...string) {
		for _, name := range deployments {
			args[name] = append(args[name], flag)
		}
	}
	for _, name := range knownGates {
		on, named := gates(cm)[name]
		if !named {
			continue
		}
		flag := fmt.Sprintf("--feature-gates=%s=%t", name, on)
		add(flag, deploy.Manager, deploy.Approver)
		if name != gateAutoApproval {
			add(flag, deploy.APIServer)
		}
	}
	config := cm.Spec.RegistrationConfiguration
	if config == nil {
		config = &operatorv1.RegistrationHubConfiguration{}
	}
	users := slices.Clone(config.AutoApproveUsers)
	var drivers []string
	for _, driver := range config.RegistrationDrivers {
		switch driver.AuthType {
		case operatorv1.AwsIrsaAuthType:
			drivers = append([]string{driver.AuthType}, drivers...) // must come before csr, which accepts every cluster
			if aws := driver.AwsIrsa; aws != nil {
				add("--hub-cluster-arn="+aws.HubClusterArn, deploy.Manager)
				// Without the gate hub-controller-manager does not start with the flag.
				if gates(cm)[gateAutoApproval] {
					add("--auto-approved-arn-patterns="+deploy.ListFlag(aws.AutoApprovedIdentities), deploy.Manager)
				}
				add("--aws-resource-tags="+deploy.ListFlag(aws.Tags), deploy.Manager)
			}
			if slices.Contains(spec.Components, "aws-auth") {
				add("--eks-access=aws-auth", deploy.Manager)
			}
		case operatorv1.CSRAuthType, "":
			drivers = append(drivers, operatorv1.CSRAuthType)
			if driver.CSR != nil {
				users = append(users, driver.CSR.AutoApprovedIdentities...)
			}
		}
	}
	if len(drivers) > 0 {
		add("--registration-drivers="+strings.Join(drivers, ","), deploy.Manager, deploy.Approver)
	}
	if gates(cm)[gateAutoApproval] && len(users) > 0 {
		add("--auto-approved-csr-identities="+deploy.ListFlag(users), deploy.Manager, deploy.Approver)
	}
	if slices.Contains(spec.Components, "per-cluster-roles") {
		add("--agent-roles=per-cluster", deploy.Manager)
	}
	if slices.Contains(spec.Components, "leftovers") {
		add("--leftover-ttl="+leftoverTTL, deploy.Manager)
	}
	if slices.Contains(spec.Components, "upstream-agents") {
		add("--agents-list-csrs", deploy.Manager)
	}
	return args
}
