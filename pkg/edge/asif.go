// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import "fmt"

// AsIf is the node as it would be if it ran this pattern, for what is asked before it does.
func (n *Node) AsIf(pattern string) Node {
	as := *n
	as.pattern = pattern
	return as
}

// thereAlready says to what a placement loses its place.
func thereAlready(namespace string, to *Placement) string {
	by := "another deployment"
	if !to.Hidden {
		by = fmt.Sprintf("the node %s and the %s", to.Node.name, to.Deployment.what())
	}
	return fmt.Sprintf("the service comes to namespace %s of this cluster by %s, and can be there once", namespace, by)
}

// Spec is the deployment as it was written.
func (d *Deployment) Spec() *DeploymentSpec { return &d.spec }
