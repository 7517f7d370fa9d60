// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package states

import (
	"cmp"
	"strconv"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// kinds are the resources with states.
var kinds = map[string]func([]byte) (*States, error){
	"managedclusters.cluster.open-cluster-management.io":           decoded(cluster),
	"managedclusters.clusterview.open-cluster-management.io":       decoded(cluster),
	"clustersetmembers.view.clusterhub.dev":                        decoded(member),
	"managedclustersets.cluster.open-cluster-management.io":        decoded(set),
	"managedclustersets.clusterview.open-cluster-management.io":    decoded(set),
	"managedclustersetbindings.cluster.open-cluster-management.io": decoded(binding),
	"placements.cluster.open-cluster-management.io":                decoded(placement),
	"manifestworks.work.open-cluster-management.io":                decoded(work),
	"manifestworkreplicasets.work.open-cluster-management.io":      decoded(replicaSet),
	"accessrequests.clusters.openmcp.cloud":                        decoded(accessRequest),
	"edgeplacements.edge.clusterhub.dev":                           decoded(edgePlacement),
	"edgenodes.edge.clusterhub.dev":                                decoded(edgeNode),
	"certificatesigningrequests.certificates.k8s.io":               decoded(certificateRequest),
	"apiservices.apiregistration.k8s.io":                           decoded(apiService),
}

var (
	available = words{"Available", "Not available", "Unknown"}
	joined    = words{"Yes", "No", "Not known"}
	accepted  = map[bool]Cell{true: {Text: "Yes", Tone: Good}, false: {Text: "No", Tone: Wait}}
)

const waitsToBeAccepted = "Waits to be accepted"

// cluster returns the states of a cluster. What its agent reported before it was denied does not count.
func cluster(c *clusterv1.ManagedCluster) *States {
	of := c.Status.Conditions
	s := &States{Conditions: tones(of), Cells: map[string]Cell{
		"available": available.cell(meta.FindStatusCondition(of, clusterv1.ManagedClusterConditionAvailable)),
		"accepted":  accepted[c.Spec.HubAcceptsClient],
		"joined":    joined.cell(meta.FindStatusCondition(of, clusterv1.ManagedClusterConditionJoined)),
	}}
	if !c.Spec.HubAcceptsClient {
		s.Cells["available"] = Cell{Text: waitsToBeAccepted, Tone: Wait, Since: since(c.CreationTimestamp)}
	}
	return s
}

func since(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func member(m *viewv1alpha1.ClusterSetMember) *States {
	s := &States{Cells: map[string]Cell{
		"available": available.status(m.Status.Available),
		"accepted":  accepted[m.Status.Accepted],
		"joined":    words{"Yes", "No", "Unknown"}.status(m.Status.Joined),
	}}
	if !m.Status.Accepted {
		s.Cells["available"] = Cell{Text: waitsToBeAccepted, Tone: Wait}
	}
	return s
}

// set returns what the hub counted in a set. A set without clusters is neither good nor bad.
func set(s *v1beta2.ManagedClusterSet) *States {
	c := meta.FindStatusCondition(s.Status.Conditions, v1beta2.ManagedClusterSetConditionEmpty)
	if c == nil || inspect.FromStatus(c.Status) == inspect.Unknown {
		return state(Cell{Text: "Not counted yet", Tone: NotKnown})
	}
	text := "Has clusters"
	if c.Status == metav1.ConditionTrue {
		text = "No clusters"
	}
	return state(Cell{Text: cmp.Or(c.Message, text), Since: since(c.LastTransitionTime)})
}

// state returns the states of an object with one cell.
func state(c Cell) *States { return &States{Cells: map[string]Cell{"state": c}} }

func binding(b *v1beta2.ManagedClusterSetBinding) *States {
	return state(words{"Bound", "Not bound", "Unknown"}.cell(meta.FindStatusCondition(b.Status.Conditions, v1beta1.ClusterSetBindingBoundType)))
}

func placement(p *v1beta1.Placement) *States {
	cell := words{"Satisfied", "Not satisfied", "Not decided yet"}.shown(inspect.Placement(p))
	if meta.IsStatusConditionTrue(p.Status.Conditions, v1beta1.PlacementConditionMisconfigured) {
		cell.Text = "Misconfigured"
	}
	if len(p.Status.Conditions) == 0 {
		cell.More = ""
	}
	return &States{Cells: map[string]Cell{"state": cell}, Conditions: tones(p.Status.Conditions)}
}

func work(w *workv1.ManifestWork) *States {
	of := w.Status.Conditions
	s := &States{Conditions: tones(of), Cells: map[string]Cell{
		"applied":   words{"Applied", "Not applied", "Not known yet"}.cell(inspect.Current(of, workv1.WorkApplied, w.Generation)),
		"available": words{"Available", "Not available", "Not known yet"}.cell(inspect.Current(of, workv1.WorkAvailable, w.Generation)),
	}}
	for i := range w.Status.ResourceStatus.Manifests {
		of := w.Status.ResourceStatus.Manifests[i].Conditions
		s.Manifests = append(s.Manifests, map[string]Cell{
			"applied":   words{"Applied", "Not applied", "Unknown"}.cell(meta.FindStatusCondition(of, workv1.ManifestApplied)),
			"available": available.cell(meta.FindStatusCondition(of, workv1.ManifestAvailable)),
		})
	}
	return s
}

func replicaSet(r *workv1alpha1.ManifestWorkReplicaSet) *States {
	of, h := r.Status.Conditions, inspect.ReplicaSet(r)
	cell := words{"Rolled out", "Not rolled out", "Not known yet"}.shown(h)
	switch {
	case h.State == inspect.Unknown:
		cell.More = ""
	case h.Reason == inspect.ReasonDeleting:
		cell.Text = "Being deleted"
	case meta.IsStatusConditionFalse(of, workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified):
		cell.Text = "No clusters"
	case h.State == inspect.Progressing:
		cell.Text = "Rolling out"
	}
	s := &States{Cells: map[string]Cell{"state": cell}, Conditions: tones(of)}
	if n := r.Status.Summary.Degraded; n > 0 {
		s.Cells["degraded"] = Cell{Text: strconv.Itoa(n), Tone: Bad}
	}
	return s
}

func accessRequest(r *openmcpv1alpha1.AccessRequest) *States {
	s := state(Cell{Text: "Not processed yet", Tone: NotKnown})
	s.Conditions = tones(r.Status.Conditions)
	if r.Status.Phase != "" {
		s.Cells["state"] = Cell{Text: r.Status.Phase, Tone: ToneOf(inspect.AccessRequest(r).State)}
	}
	if c := inspect.Waits(r); c != nil && !r.Status.IsGranted() {
		s.Cells["waits"] = Cell{Text: inspect.FromCondition(inspect.Progressing, c).Explanation()}
	}
	return s
}

func edgePlacement(p *edgev1alpha1.EdgePlacement) *States {
	h := inspect.EdgePlacement(p)
	switch {
	case p.Status.State == "":
		return state(Cell{Text: "Not known yet", Tone: NotKnown})
	case h.State == inspect.Healthy:
		h.Reason, h.Message = "", ""
	}
	return state(Cell{Text: string(p.Status.State), Tone: ToneOf(h.State), Since: h.Since, More: h.Explanation()})
}

func edgeNode(n *edgev1alpha1.EdgeNode) *States {
	if n.Status.ReportTime == nil {
		return state(Cell{Text: "Never", Tone: NotKnown})
	}
	return state(Cell{Since: n.Status.ReportTime})
}

func certificateRequest(r *certificatesv1.CertificateSigningRequest) *States {
	h := inspect.CertificateRequest(r)
	cell := Cell{Text: h.Reason, Tone: ToneOf(h.State), Since: h.Since, More: h.Message}
	if h.Reason == string(certificatesv1.CertificateApproved) {
		cell.Text = "Approved, not issued yet"
	}
	return state(cell)
}

// service is an APIService, as far as the page reads it.
type service struct {
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func apiService(s *service) *States {
	return state(available.cell(meta.FindStatusCondition(s.Status.Conditions, "Available")))
}
