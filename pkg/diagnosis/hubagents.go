// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// AgentVersionSkew means that the version of an agent does not work with the hub's.
	AgentVersionSkew ID = "AgentVersionSkew"
	// AgentTrustsOtherCA means that an agent does not renew its lease, and does not trust the current certificate of the hub.
	AgentTrustsOtherCA ID = "AgentTrustsOtherCA"
)

// claim returns what an agent reports about itself. Other clients could have written it.
func claim(c *clusterv1.ManagedCluster, name string) string {
	for i := range c.Status.ClusterClaims {
		if c.Status.ClusterClaims[i].Name == name {
			return c.Status.ClusterClaims[i].Value
		}
	}
	return ""
}

// VersionOf returns the tag of the image of a component, or "" if its image has no tag or has a digest.
func VersionOf(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		image, _, digest := strings.Cut(c.Image, "@")
		name := image[strings.LastIndex(image, "/")+1:]
		if _, tag, ok := strings.Cut(name, ":"); ok && !digest && c.Name == d.Name {
			return tag
		}
	}
	return ""
}

// agents finds agents whose versions do not work with the hub's.
func (h *Hub) agents() (found []Finding) {
	ours := h.tags()[apiServer]
	for i := range h.Clusters.Items {
		c := &h.Clusters.Items[i]
		version := registration.AgentVersion(claim(c, registration.ClaimAgentVersion))
		skew := registration.AgentSkew(ours, version)
		if skew == "" || !c.DeletionTimestamp.IsZero() {
			continue
		}
		found = append(found, Finding{ID: AgentVersionSkew, Severity: Warning, Object: "managedcluster/" + c.Name, Turn: "an admin of " + c.Name,
			Cause: fmt.Sprintf("Its agent has version %s, and the hub %s: it is %s. An agent may be two minor versions older than its hub, and not newer.", version, ours, skew),
			Fix: []string{fmt.Sprintf("kubectl -n %s set image deployment/%s %[2]s=<IMAGE OF %[2]s %s> --context <CONTEXT OF %s>", registration.AgentNamespace, agentName,
				oneLine(ours), c.Name)}})
	}
	return found
}

// trustsOther returns the certificates by which an agent trusts the hub if none of them verifies the hub's current certificate, and "" otherwise.
func (h *Hub) trustsOther(c *clusterv1.ManagedCluster) string {
	trusted := registration.HubCAHashes(claim(c, registration.ClaimHubCA))
	if len(trusted) == 0 || len(h.Authorities) == 0 || slices.ContainsFunc(trusted, func(t string) bool { return slices.Contains(h.Authorities, t) }) {
		return ""
	}
	return strings.Join(trusted, ", ")
}
