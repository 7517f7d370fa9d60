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

// EdgeService is one version of a service for one architecture. Other versions and architectures of the service are other objects with the
// same spec.url.
type EdgeService struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is derived from url, version and arch, so that each combination exists once in a
	// namespace: <url>--<version>--<arch>, or, if that is not a valid name, a shortened form with a hash. If the name is wrong, the error of
	// the server contains the right one; "kubectl hub edge import" sets it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the service. Users write it. url, version and arch are immutable.
	Spec EdgeServiceSpec `json:"spec"`
	// status describes the content of the service's archive. Only the hub writes it, together with the spec.
	// +optional
	Status EdgeServiceStatus `json:"status,omitempty"`
}

// EdgeServiceSpec defines one version of a service for one architecture.
type EdgeServiceSpec struct {
	// label is a short human-readable name, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Label string `json:"label,omitempty"`
	// description is a human-readable description, at most 4096 characters.
	// +optional
	// +k8s:validation:maxLength=4096
	Description string `json:"description,omitempty"`
	// documentation is the location of the service's documentation, at most 2048 characters.
	// +optional
	// +k8s:validation:maxLength=2048
	Documentation string `json:"documentation,omitempty"`
	// public allows policies and patterns of all namespaces to use the service. The default is false: only those of its own namespace may use
	// it, and those written by users who may get the EdgeService.
	// +optional
	Public bool `json:"public,omitempty"`
	// url is the name of the service, 1 to 253 characters without spaces. It need not be a URL; a name such as my-service.example.com is
	// recommended.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	URL string `json:"url"`
	// version is the version of the service: 1 to 3 numbers separated by dots, such as 1.0.1, optionally with a suffix for a prerelease, such
	// as 1.0.1-rc1. 1.0 and 1.0.0 are equal in ranges, but are different services. 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Version string `json:"version"`
	// arch is the architecture of the images as in GOARCH, such as amd64: lower case letters and digits, 1 to 63 characters. "*" stands for
	// all architectures, and is used if no service has the architecture of the node.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Arch string `json:"arch"`
	// userInput are the variables of the service, at most 128, each name once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +k8s:validation:maxItems=128
	UserInput []Variable `json:"userInput,omitempty"`
	// deployment is the deployment for devices: any object of at most 65536 bytes, which the hub does not interpret. A service with this field
	// can be deployed to devices.
	// +optional
	Deployment *runtime.RawExtension `json:"deployment,omitempty"`
	// clusterDeployment is the deployment for clusters. A service with this field can be deployed to clusters. One of deployment and
	// clusterDeployment is required.
	// +optional
	ClusterDeployment *ClusterDeployment `json:"clusterDeployment,omitempty"`
	// policy is the service policy: properties of the service, and constraints on nodes.
	// +optional
	Policy *Policy `json:"policy,omitempty"`
}

// Variable is a parameter of a service.
type Variable struct {
	// name is the name of the variable, 1 to 128 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=128
	Name string `json:"name"`
	// label is a short human-readable name, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Label string `json:"label,omitempty"`
	// type is the type of the values: string (the default), int, float, boolean, or "list of strings".
	// +optional
	// +k8s:validation:maxLength=16
	Type PropertyType `json:"type,omitempty"`
	// defaultValue is the value if no other is set, as a string for every type, at most 4096 characters. The policy or the pattern must set a
	// variable that has no default.
	// +optional
	// +k8s:validation:maxLength=4096
	DefaultValue *string `json:"defaultValue,omitempty"`
}

// ClusterDeployment is the deployment of a service to clusters.
type ClusterDeployment struct {
	// operatorYamlArchive is a tar.gz of YAML files with Kubernetes objects, encoded in base64. At most 512000 bytes before the encoding. The
	// hub reads it when it is written, and rejects an archive that it cannot read or that is too large when unpacked.
	OperatorYamlArchive []byte `json:"operatorYamlArchive"`
}

// EdgeServiceStatus describes the content of a service's archive.
type EdgeServiceStatus struct {
	// observedGeneration is the metadata.generation of the archive that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// objects is the number of Kubernetes objects in the archive.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// embeddedNamespace is the only namespace that the archive names, if it names exactly one. It applies if neither policy nor pattern sets
	// clusterNamespace. It is recommended not to name a namespace in archives, so that the user who deploys the service chooses it.
	// +optional
	EmbeddedNamespace string `json:"embeddedNamespace,omitempty"`
	// namespaces are all namespaces that objects of the archive name, in alphabetical order, at most 64. All of them are replaced by the
	// target namespace.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// clusterScoped are the cluster-scoped objects of the archive, at most 64. A namespace-scoped agent cannot create them.
	// +optional
	// +listType=atomic
	ClusterScoped []ClusterScopedObject `json:"clusterScoped,omitempty"`
	// more is the number of namespaces and objects that these lists omit.
	// +optional
	More int32 `json:"more,omitempty"`
}

// ClusterScopedObject identifies a cluster-scoped object.
type ClusterScopedObject struct {
	// group is the API group of the object, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Group string `json:"group,omitempty"`
	// kind is the kind of the object, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Kind string `json:"kind"`
	// name is the name of the object, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgeServiceList is a list of EdgeServices.
type EdgeServiceList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items is the list of EdgeServices.
	Items []EdgeService `json:"items"`
}
