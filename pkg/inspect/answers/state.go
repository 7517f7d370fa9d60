// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/inspect"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
)

// Component is a program of the hub that runs in pods.
type Component struct {
	Name string `json:"name"`
	// Version is the tag of its image, or empty if the image has a digest.
	Version string `json:"version,omitempty"`
	// Health is that of its Deployment. The message has the numbers of pods.
	inspect.Health `json:",inline"`
}

// ComponentStates is the state of the parts of a hub.
type ComponentStates struct {
	Components []Component `json:"components"`
	// EtcdBytes is the size of the largest database behind the front.
	EtcdBytes int64 `json:"etcdBytes,omitempty"`
	// Unseen lists what could not be read.
	Unseen []string `json:"unseen,omitempty"`
}

// State reads which components of a hub run, and the size of its etcd, as far as the user may see it.
func (r *Reader) State(ctx context.Context) ComponentStates {
	s := ComponentStates{Components: []Component{}}
	deployments := Typed[appsv1.Deployment](r.List(ctx, GVR("apps", "v1", "deployments"), deploy.ManagerNamespace, metav1.ListOptions{}))
	for i := range deployments.Items {
		d := &deployments.Items[i]
		s.Components = append(s.Components, Component{Name: d.Name, Version: doctor.VersionOf(d), Health: inspect.Deployment(d)})
	}
	s.EtcdBytes = r.etcdSize(ctx)
	s.Unseen = r.Unseen
	return s
}
