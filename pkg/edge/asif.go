// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import "fmt"

// AsIf returns the node as if it ran this pattern, for checks before it does.
func (n *Node) AsIf(pattern string) Node {
	as := *n
	as.pattern = pattern
	return as
}

// alreadyPlacedMessage returns the message of a placement that loses its place to another one.
func alreadyPlacedMessage(namespace string, to *Placement) string {
	by := "another deployment"
	if !to.Hidden {
		by = fmt.Sprintf("the node %s and the %s", to.Node.name, to.Deployment.what())
	}
	return fmt.Sprintf("the service comes to namespace %s of this cluster by %s, and can be there once", namespace, by)
}

// Spec returns the deployment as it was written.
func (d *Deployment) Spec() *DeploymentSpec { return &d.spec }
