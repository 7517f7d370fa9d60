// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"fmt"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	inspector  = registration.InspectorClusterRole
	clusterMap = "open-cluster-management:managedcluster:" // the prefix of the names of clusters' roles and bindings
	apiService = "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1alpha1.view.clusterhub.dev}}"
)

func managedCluster(name string) string {
	return fmt.Sprintf("{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: %s}}", name)
}

func namespaceOf(name, labels, annotations string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}, annotations: {%s}}}", name, labels, annotations)
}

func clusterNamespace(name, cluster string) string {
	return namespaceOf(name, registration.ClusterNameLabel+": "+cluster, registration.AnnotationMade+": "+cluster)
}

// labelOf returns the label of the objects of a cluster by its name, or of all clusters.
func labelOf(name string) string {
	if cluster, ok := strings.CutPrefix(name, clusterMap); ok {
		return fmt.Sprintf("%s: %q", registration.ClusterNameLabel, cluster)
	}
	if name == agentroles.ClusterRole || name == agentroles.WorksClusterRole {
		return registration.ClusterNameLabel + ": managed-clusters"
	}
	return ""
}

func roleOf(name, rules string) string {
	return fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %q, labels: {%s}}, rules: [%s]}`,
		name, labelOf(name), rules)
}

func clusterBinding(name, role, subject string) string {
	return fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %q, labels: {%s}},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %q}, subjects: [%s]}`, name, labelOf(name), role, subject)
}

func bindingIn(namespace, name, role, subject string) string {
	return fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: %q, name: %q},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %q}, subjects: [%s]}`, namespace, name, role, subject)
}

// sharedBinding binds the role of all agents to a subject.
func sharedBinding(subject string) string {
	return clusterBinding(agentroles.ClusterRole, agentroles.ClusterRole, subject)
}

// worksBinding binds the role of all agents for works to a subject.
func worksBinding(subject string) string {
	return clusterBinding(agentroles.WorksClusterRole, agentroles.WorksClusterRole, subject)
}

func allAgents() string {
	return asGroup(registration.ManagedClustersGroup) + "," + asGroup(registration.AWSManagedClustersGroup)
}

// recordOf returns the hub's record of a cluster.
func recordOf(name, data string) string {
	return configMap(record.Namespace, name, fmt.Sprintf("%s: %q", registration.ClusterNameLabel, name), data)
}

func configMap(namespace, name, labels, data string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %q, labels: {%s}}, data: {%s}}`, namespace, name, labels, data)
}

func leaseOf(namespace, name string) string {
	return fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: %s, name: %s}}", namespace, name)
}

func secretOf(namespace, name, secretType, of string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: %s, annotations: {kubernetes.io/service-account.name: %q}},
		type: %s, stringData: {tls.crt: a, tls.key: a}}`, namespace, name, of, secretType)
}

// decisionOf returns a PlacementDecision in the namespace team. The owner is given by its kind and name.
func decisionOf(name, labels, ownerKind, owner string) string {
	return fmt.Sprintf(`{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: PlacementDecision,
		metadata: {namespace: team, name: %q, labels: {%s}, ownerReferences: [
		{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: %s, name: %q, uid: a, controller: true}]}}`, name, labels, ownerKind, owner)
}

// ofPlacement returns the label of the decisions of a placement.
func ofPlacement(name string) string { return v1beta1.PlacementLabel + ": " + name }

func asUser(name string) string {
	return fmt.Sprintf("{apiGroup: rbac.authorization.k8s.io, kind: User, name: %q}", name)
}
func asGroup(name string) string {
	return fmt.Sprintf("{apiGroup: rbac.authorization.k8s.io, kind: Group, name: %q}", name)
}
