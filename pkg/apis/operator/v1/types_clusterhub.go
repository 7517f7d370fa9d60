// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// ClusterManagerClusterhub contains the settings of a hub that Open Cluster Management does not have.
// +kubebuilder:validation:XValidation:rule="has(self.etcd) && self.etcd.type == 'External' || !has(self.apiServer) || !has(self.apiServer.replicas) || self.apiServer.replicas == 1",fieldPath=".apiServer.replicas",message="with the embedded etcd there is one replica, which has its volume: for several, make a hub with an etcd of the type External"
type ClusterManagerClusterhub struct {
	// apiServer configures hub-apiserver: its image, its replicas, and the address at which the hub reaches it.
	// +optional
	APIServer HubAPIServer `json:"apiServer,omitzero"`

	// controllerManager configures hub-controller-manager: its image and its replicas.
	// +optional
	ControllerManager HubControllerManager `json:"controllerManager,omitzero"`

	// etcd defines the etcd that stores the objects of the hub. Its type is immutable.
	// +optional
	// +kubebuilder:default={type: Embedded}
	Etcd HubEtcd `json:"etcd,omitzero"`

	// components are the optional components of the hub to enable: auto-approval (the hub accepts clusters automatically), aws-auth
	// (identities of AWS, by the ConfigMap aws-auth), cluster-provider (ClusterRequests are granted clusters that exist), leftovers
	// (ManagedClusters without an agent are deleted), manual-certificates (the hub approves no certificate automatically), per-cluster-roles
	// (a role for each cluster) and upstream-agents (agents of Open Cluster Management can join).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Enum=auto-approval;aws-auth;cluster-provider;leftovers;manual-certificates;per-cluster-roles;upstream-agents
	Components []string `json:"components,omitempty"`
}

// HubAPIServer configures hub-apiserver.
type HubAPIServer struct {
	// image is the image of hub-apiserver. The default is the image of hub-operator's own version.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// replicas is the number of replicas, 1 to 16. With the embedded etcd it must be 1. The default is 1 with the embedded etcd and 3 with an
	// external one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Replicas *int32 `json:"replicas,omitempty"`

	// address is the address at which the kube-apiserver of the hub reaches hub-apiserver, in the modes Detached and Hosted. The default is
	// the name of the Service on the management cluster, which a kube-apiserver that runs there can resolve.
	// +optional
	Address *HubAPIServerAddress `json:"address,omitempty"`
}

// HubAPIServerAddress is the address at which a hub's kube-apiserver reaches hub-apiserver.
type HubAPIServerAddress struct {
	// host is a DNS name in lower case, or an IPv4 or IPv6 address. Addresses of a single machine or link, such as 127.0.0.1, are invalid.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="isIP(self) ? ip(self).isGlobalUnicast() : self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?[.])*[a-z]([-a-z0-9]*[a-z0-9])?$') && self != 'localhost' && !self.endsWith('.localhost')",message="host must be a DNS name in lower case or an IP address, without a port, and not one of a single machine or link"
	Host string `json:"host"`

	// port is the port number, 1 to 65535. The default is 443.
	// +optional
	// +kubebuilder:default=443
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// HubControllerManager configures hub-controller-manager.
type HubControllerManager struct {
	// image is the image of hub-controller-manager. The default is the image of hub-operator's own version.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// replicas is the number of replicas, 1 to 16. One of them is active, and the others take over when it fails. The default is 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Replicas *int32 `json:"replicas,omitempty"`
}

// HubEtcdType is the type of a hub's etcd.
type HubEtcdType string

const (
	// HubEtcdEmbedded means that hub-apiserver runs the etcd, on a volume.
	HubEtcdEmbedded HubEtcdType = "Embedded"
	// HubEtcdExternal means that the user runs the etcd.
	HubEtcdExternal HubEtcdType = "External"
)

// HubEtcd defines the etcd that stores the objects of a hub.
// +kubebuilder:validation:XValidation:rule="self.type == 'External' ? has(self.external) && !has(self.embedded) : !has(self.external)",message="the type External needs external, and has no embedded; the type Embedded has no external"
// +kubebuilder:validation:XValidation:rule="quantity(has(self.embedded) && has(self.embedded.size) ? self.embedded.size : '10Gi').compareTo(quantity(has(oldSelf.embedded) && has(oldSelf.embedded.size) ? oldSelf.embedded.size : '10Gi')) >= 0",fieldPath=".embedded.size",message="a volume cannot shrink (without a size it has 10Gi)"
// +kubebuilder:validation:XValidation:rule="(has(self.embedded) && has(self.embedded.storageClassName) ? self.embedded.storageClassName : '-') == (has(oldSelf.embedded) && has(oldSelf.embedded.storageClassName) ? oldSelf.embedded.storageClassName : '-')",fieldPath=".embedded.storageClassName",message="storageClassName cannot be changed: the objects of the hub are on the volume that it has"
type HubEtcd struct {
	// type is Embedded (hub-apiserver runs an etcd on a volume) or External (the user runs the etcd). The default is Embedded. It is
	// immutable, because the objects of the hub would not move to the other etcd.
	// +optional
	// +kubebuilder:default=Embedded
	// +kubebuilder:validation:Enum=Embedded;External
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the type of the etcd cannot be changed, since the objects of the hub would be left behind: make a new ClusterManager"
	Type HubEtcdType `json:"type,omitempty"`

	// embedded defines the volume of an etcd of the type Embedded.
	// +optional
	Embedded *HubEtcdEmbeddedVolume `json:"embedded,omitempty"`

	// external defines the servers of an etcd of the type External. It is required for that type and invalid for the other.
	// +optional
	External *HubEtcdExternalServers `json:"external,omitempty"`
}

// HubEtcdEmbeddedVolume is the volume of an embedded etcd.
type HubEtcdEmbeddedVolume struct {
	// size is the size of the volume, at least 1Gi, such as 20Gi. The default is 10Gi. It can be increased if the storage class allows that,
	// and cannot be decreased.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]+([KMGTP]i|[kMGTP])?$`
	// +kubebuilder:validation:XValidation:rule="quantity(self).compareTo(quantity('1Gi')) >= 0",message="size must be at least 1Gi"
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClassName is the name of the StorageClass of the volume. The default is the default class of the cluster. It is immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// HubEtcdExternalServers defines an etcd that the user runs.
type HubEtcdExternalServers struct {
	// servers are the URLs of 1 to 9 members of one etcd, such as https://etcd-0.example.com:2379. No other hub may use this etcd.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MaxLength=300
	// +kubebuilder:validation:items:Pattern=`^https://([a-z0-9]([-a-z0-9.]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`
	Servers []string `json:"servers"`

	// secretName is the name of a Secret in the namespace of the servers with the keys ca.crt, tls.crt and tls.key. The default is
	// hub-apiserver-etcd.
	// +optional
	// +kubebuilder:default=hub-apiserver-etcd
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	SecretName string `json:"secretName,omitempty"`
}

// KlusterletClusterhub contains the settings of an agent that Open Cluster Management does not have.
type KlusterletClusterhub struct {
	// works defines the rights of the agent to the objects of works. By default it has the ClusterRole admin in all namespaces.
	// +optional
	Works KlusterletWorks `json:"works,omitzero"`

	// imagePullSecrets are the names of the Secrets with which the image of the agent is pulled, in the namespace of its pods.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
}

// KlusterletWorks defines the rights of a work agent on the managed cluster.
type KlusterletWorks struct {
	// role is the name of a ClusterRole of the managed cluster, such as admin or cluster-admin. The default is admin.
	// +optional
	// +kubebuilder:default=admin
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%\s]+$`
	Role string `json:"role,omitempty"`

	// namespaces are the namespaces of the managed cluster in which the agent has the role. If empty, the agent has it in all namespaces, and
	// works can also contain namespaces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`
}

// KlusterletClusterhubStatus contains the observed state that Open Cluster Management's status does not have.
type KlusterletClusterhubStatus struct {
	// clusterName is the name with which the agent has registered the cluster. Once it is set, spec.clusterName can be set only to this name.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`
}
