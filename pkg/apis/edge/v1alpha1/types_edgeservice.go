// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgeService is one version of a service for one architecture. Other versions and architectures of the service are other objects,
// with the same spec.url.
type EdgeService struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name follows from url, version and arch, so that each is there once in a
	// namespace: <url>--<version>--<arch>, or, if that is no name, what is left of it and a hash. The server says which one it has to be;
	// "kubectl hub edge import" knows it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the service. Users write it. url, version and arch cannot be changed.
	Spec EdgeServiceSpec `json:"spec"`
	// status is the content that the hub found in the archive of the service. Only the hub writes it, together with the spec.
	// +optional
	Status EdgeServiceStatus `json:"status,omitempty"`
}

// EdgeServiceSpec is a version of a service.
type EdgeServiceSpec struct {
	// label is a short text for people, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Label string `json:"label,omitempty"`
	// description is a text for people, at most 4096 characters.
	// +optional
	// +k8s:validation:maxLength=4096
	Description string `json:"description,omitempty"`
	// documentation says where the service is documented, at most 2048 characters.
	// +optional
	// +k8s:validation:maxLength=2048
	Documentation string `json:"documentation,omitempty"`
	// public says that policies and patterns of all namespaces may use the service. The default is false: those of its own
	// namespace may, and those written by users who may get the EdgeService.
	// +optional
	Public bool `json:"public,omitempty"`
	// url is the name of the service, 1 to 253 characters without spaces. It need not be a URL; my-service.example.com is a good one.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	URL string `json:"url"`
	// version of the service: 1 to 3 numbers with dots between them, such as 1.0.1, or 1.0.1-rc1 before its release. 1.0 and 1.0.0 are
	// the same in ranges, and different services. 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Version string `json:"version"`
	// arch is the architecture that the images are for, as in GOARCH, such as amd64: lower case letters and digits, 1 to 63 characters. "*"
	// stands for all architectures, and is used if no service has the architecture of the node.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Arch string `json:"arch"`
	// userInput are the variables of the service, at most 128, each name once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=128
	UserInput []Variable `json:"userInput,omitempty"`
	// deployment is the deployment for devices: any object of at most 65536 bytes, which the hub does not interpret. A service with it is a
	// service for devices.
	// +optional
	Deployment *runtime.RawExtension `json:"deployment,omitempty"`
	// clusterDeployment is the deployment for clusters. A service with it is a service for clusters. One of deployment and
	// clusterDeployment is required.
	// +optional
	ClusterDeployment *ClusterDeployment `json:"clusterDeployment,omitempty"`
	// policy is the service policy: properties of the service, and constraints on nodes.
	// +optional
	Policy *Policy `json:"policy,omitempty"`
}

// Variable conditions how a service runs.
type Variable struct {
	// name of the variable, 1 to 128 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=128
	Name string `json:"name"`
	// label is a short text for people, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Label string `json:"label,omitempty"`
	// type of the values: string (the default), int, float, boolean, or "list of strings".
	// +optional
	// +k8s:validation:maxLength=16
	Type PropertyType `json:"type,omitempty"`
	// defaultValue is the value where none is set, written as text whatever the type, at most 4096 characters. A variable without it has
	// to be set by the policy or the pattern.
	// +optional
	// +k8s:validation:maxLength=4096
	DefaultValue *string `json:"defaultValue,omitempty"`
}

// ClusterDeployment is the deployment of a service to clusters.
type ClusterDeployment struct {
	// operatorYamlArchive is a tar.gz of YAML files with Kubernetes objects, in base64. At most 512000 bytes before base64. The hub reads
	// it when it is written, and refuses one that it cannot read, or that is too large when it is unpacked.
	OperatorYamlArchive []byte `json:"operatorYamlArchive"`
}

// EdgeServiceStatus is the content that the hub found in the archive of a service.
type EdgeServiceStatus struct {
	// observedGeneration is the metadata.generation of the archive that was read.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// objects is how many Kubernetes objects there are in the archive.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// embeddedNamespace is the namespace that the archive asks for: the only one that it names. It counts where neither policy nor pattern
	// has a clusterNamespace. Better leave it out of archives: the user who deploys decides where.
	// +optional
	EmbeddedNamespace string `json:"embeddedNamespace,omitempty"`
	// namespaces are all that objects of the archive name, in order, at most 64. All of them become the namespace that is deployed to.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// clusterScoped are the objects that are in no namespace, at most 64. An agent that has a namespace alone cannot make them.
	// +optional
	// +listType=atomic
	ClusterScoped []ClusterScopedObject `json:"clusterScoped,omitempty"`
	// more is how many namespaces and objects are not in these lists.
	// +optional
	More int32 `json:"more,omitempty"`
}

// ClusterScopedObject is an object that is in no namespace.
type ClusterScopedObject struct {
	// group of the object, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Group string `json:"group,omitempty"`
	// kind of the object, at most 63 characters.
	// +k8s:validation:maxLength=63
	Kind string `json:"kind"`
	// name of the object, at most 253 characters.
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgeServiceList is a list of EdgeService.
type EdgeServiceList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the services.
	Items []EdgeService `json:"items"`
}
