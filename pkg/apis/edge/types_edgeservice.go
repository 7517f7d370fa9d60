// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgeService is one version of a service for one architecture. Other versions and architectures of the service are other objects with the
// same spec.url.
type EdgeService struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is derived from url, version and arch, so that each combination exists once in a
	// namespace: <url>--<version>--<arch>, or, if that is not a valid name, a shortened form with a hash. If the name is wrong, the error of
	// the server contains the right one; "kubectl hub edge import" sets it.
	metav1.ObjectMeta

	// spec defines the service. Users write it. url, version and arch are immutable.
	Spec EdgeServiceSpec
	// status describes the content of the service's archive. Only the hub writes it, together with the spec.
	Status EdgeServiceStatus
}

// EdgeServiceSpec defines one version of a service for one architecture.
type EdgeServiceSpec struct {
	// label is a short human-readable name, at most 253 characters.
	Label string
	// description is a human-readable description, at most 4096 characters.
	Description string
	// documentation is the location of the service's documentation, at most 2048 characters.
	Documentation string
	// public allows policies and patterns of all namespaces to use the service. The default is false: only those of its own namespace may use
	// it, and those written by users who may get the EdgeService.
	Public bool
	// url is the name of the service, 1 to 253 characters without spaces. It need not be a URL; a name such as my-service.example.com is
	// recommended.
	URL string
	// version is the version of the service: 1 to 3 numbers separated by dots, such as 1.0.1, optionally with a suffix for a prerelease, such
	// as 1.0.1-rc1. 1.0 and 1.0.0 are equal in ranges, but are different services. 1 to 63 characters.
	Version string
	// arch is the architecture of the images as in GOARCH, such as amd64: lower case letters and digits, 1 to 63 characters. "*" stands for
	// all architectures, and is used if no service has the architecture of the node.
	Arch string
	// userInput are the variables of the service, at most 128, each name once.
	UserInput []Variable
	// deployment is the deployment for devices: any object of at most 65536 bytes, which the hub does not interpret. A service with this field
	// can be deployed to devices.
	Deployment *runtime.RawExtension
	// clusterDeployment is the deployment for clusters. A service with this field can be deployed to clusters. One of deployment and
	// clusterDeployment is required.
	ClusterDeployment *ClusterDeployment
	// policy is the service policy: properties of the service, and constraints on nodes.
	Policy *Policy
}

// Variable is a parameter of a service.
type Variable struct {
	// name is the name of the variable, 1 to 128 characters.
	Name string
	// label is a short human-readable name, at most 253 characters.
	Label string
	// type is the type of the values: string (the default), int, float, boolean, or "list of strings".
	Type PropertyType
	// defaultValue is the value if no other is set, as a string for every type, at most 4096 characters. The policy or the pattern must set a
	// variable that has no default.
	DefaultValue *string
}

// ClusterDeployment is the deployment of a service to clusters.
type ClusterDeployment struct {
	// operatorYamlArchive is a tar.gz of YAML files with Kubernetes objects, encoded in base64. At most 512000 bytes before the encoding. The
	// hub reads it when it is written, and rejects an archive that it cannot read or that is too large when unpacked.
	OperatorYamlArchive []byte
}

// EdgeServiceStatus describes the content of a service's archive.
type EdgeServiceStatus struct {
	// observedGeneration is the metadata.generation of the archive that this status describes.
	ObservedGeneration int64
	// objects is the number of Kubernetes objects in the archive.
	Objects int32
	// embeddedNamespace is the only namespace that the archive names, if it names exactly one. It applies if neither policy nor pattern sets
	// clusterNamespace. It is recommended not to name a namespace in archives, so that the user who deploys the service chooses it.
	EmbeddedNamespace string
	// namespaces are all namespaces that objects of the archive name, in alphabetical order, at most 64. All of them are replaced by the
	// target namespace.
	Namespaces []string
	// clusterScoped are the cluster-scoped objects of the archive, at most 64. A namespace-scoped agent cannot create them.
	ClusterScoped []ClusterScopedObject
	// more is the number of namespaces and objects that these lists omit.
	More int32
}

// ClusterScopedObject identifies a cluster-scoped object.
type ClusterScopedObject struct {
	// group is the API group of the object, at most 253 characters.
	Group string
	// kind is the kind of the object, at most 63 characters.
	Kind string
	// name is the name of the object, at most 253 characters.
	Name string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgeServiceList is a list of EdgeServices.
type EdgeServiceList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items is the list of EdgeServices.
	Items []EdgeService
}
