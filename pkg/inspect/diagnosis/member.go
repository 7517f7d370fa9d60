// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
)

// Findings about the members of sets.
const (
	// SetMissing: the hub has no such set.
	SetMissing ID = "SetMissing"
	// SetSelectsNothing: the selector of the set matches no cluster whatever its labels.
	SetSelectsNothing ID = "SetSelectsNothing"
	// LabelMissing: the cluster does not have a label that the set selects by.
	LabelMissing ID = "LabelMissing"
	// LabelDiffers: it has the label with another value.
	LabelDiffers ID = "LabelDiffers"
	// LabelExcludes: it has a label that the set excludes.
	LabelExcludes ID = "LabelExcludes"
	// NotAMember: the hub does not list it as a member, and the user may not see its labels.
	NotAMember ID = "NotAMember"
	// NotYetMember: its labels match, and the hub does not list it as a member.
	NotYetMember ID = "NotYetMember"
)

// MemberFacts are the known facts about a cluster and a set.
type MemberFacts struct {
	Cluster, Set string
	Now          time.Time

	Object Read[*clusterv1.ManagedCluster]
	// Selects is the set, in the version that has all selectors.
	Selects Read[*v1beta1.ManagedClusterSet]
	// Member is the member that the hub serves for the cluster and the set.
	Member Read[*viewv1alpha1.ClusterSetMember]
	// Others are all sets that the user may see: one of them may claim the label of the cluster.
	Others Read[[]v1beta1.ManagedClusterSet]
	// MayLabel reports whether the user may write the labels that would add the cluster to the set.
	MayLabel Read[bool]
}

type memberChain struct {
	MemberFacts
	cluster *clusterv1.ManagedCluster
	set     *v1beta1.ManagedClusterSet
}

// OfMember explains why a cluster is in a set, or is not.
func OfMember(facts MemberFacts) Answer {
	m := &memberChain{MemberFacts: facts}
	m.cluster, _ = facts.Object.Get()
	m.set, _ = facts.Selects.Get()
	a := follow([]link{{"cluster", m.clusterThere}, {"set", m.setThere}, {"selector", m.selects}, {"member", m.member}})
	subject := fmt.Sprintf("Cluster %s is", facts.Cluster)
	if a.Finding != nil {
		a.Verdict = fmt.Sprintf("%s not in the set %s", subject, facts.Set)
		return a
	}
	return a.setVerdict(fmt.Sprintf("%s in the set %s", subject, facts.Set))
}

func (m *memberChain) clusterThere() outcome {
	switch {
	case m.cluster != nil:
		return passed("created %s", ago(m.Now, m.cluster.CreationTimestamp.Time))
	case m.Object.IsMissing():
		return broken("the hub has no ManagedCluster "+m.Cluster, Finding{ID: ClusterMissing, Severity: Error, Object: "managedcluster/" + m.Cluster,
			Cause: "The hub has no ManagedCluster " + m.Cluster + ", so it is in no set.", Turn: "an admin of the cluster", Fix: []string{ShellCommand("kubectl", "hub", "why", "cluster", m.Cluster)}})
	}
	if _, is := m.Member.Get(); is {
		return passed("you see it as a member of the set").without(m.Object.Why())
	}
	return unseen(m.Object.Why())
}

func (m *memberChain) setThere() outcome {
	switch {
	case m.set != nil:
		return passed("created %s", ago(m.Now, m.set.CreationTimestamp.Time))
	case m.Selects.IsMissing():
		return broken("the hub has no set "+m.Set, Finding{ID: SetMissing, Severity: Error, Object: "managedclusterset/" + m.Set,
			Cause: "The hub has no ManagedClusterSet " + m.Set + ".", Turn: "a user who may create sets",
			Fix: []string{"kubectl hub get clustersets", ShellCommand("kubectl", "hub", "create", "clusterset", m.Set)}})
	}
	return unseen(m.Selects.Why())
}

// selects compares the selector with the labels, one requirement after the other.
func (m *memberChain) selects() outcome {
	if m.set == nil {
		return unseen(m.Selects.Why())
	}
	selects, err := selector.ForV1beta1(m.set)
	if err != nil {
		return m.selectsNothing(err.Error())
	}
	requirements, selectable := selects.Requirements()
	if !selectable {
		return m.selectsNothing("its selector is not valid")
	}
	if m.cluster == nil {
		if member, is := m.Member.Get(); is {
			return passed("the set selects by %s", orEvery(member.Status.SelectedBy.Selector))
		}
		return unseen(m.Object.Why())
	}
	var has []string
	for _, r := range requirements {
		if !r.Matches(labels.Set(m.cluster.Labels)) {
			return m.mismatch(selects, requirements, &r)
		}
		if value, ok := m.cluster.Labels[r.Key()]; ok {
			has = append(has, r.Key()+"="+value+after(", written ", m.writer(r.Key())))
		}
	}
	return passed("the set selects by %s; the cluster has %s", orEvery(selects.String()), orNothing(strings.Join(has, "; ")))
}

func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

func orEvery(selector string) string {
	if selector == "" {
		return "nothing: it has all clusters"
	}
	return selector
}

func orNothing(text string) string {
	if text == "" {
		return "the labels that this requires"
	}
	return text
}

// writer returns which program wrote a label.
func (m *memberChain) writer(key string) string {
	return whoSet(&m.cluster.ObjectMeta, m.Now, "metadata", "labels", key)
}

func (m *memberChain) selectsNothing(why string) outcome {
	return broken(why, Finding{ID: SetSelectsNothing, Severity: Error, Object: "managedclusterset/" + m.Set, Since: since(m.set.CreationTimestamp),
		Cause: "The selector of the set " + m.Set + " matches no cluster, whatever its labels: " + why + ".", Turn: "a user who may change the set",
		Fix: []string{ShellCommand("kubectl", "edit", "managedclusterset", m.Set)}})
}

// mismatch returns which requirement the cluster does not meet, and which set has the cluster by that label.
func (m *memberChain) mismatch(selects labels.Selector, all labels.Requirements, r *labels.Requirement) outcome {
	key := r.Key()
	value, has := m.cluster.Labels[key]
	f := Finding{Severity: Error, Object: "managedcluster/" + m.Cluster, Turn: m.labeller(key)}
	text := fmt.Sprintf("the set selects by %s, and the cluster has no label %s", selects, key)
	switch {
	case !has:
		f.ID = LabelMissing
		f.Cause = fmt.Sprintf("The set %s selects by %s, and cluster %s has no label %s.", m.Set, selects, m.Cluster, key)
	default:
		text = fmt.Sprintf("the set selects by %s, and the cluster has %s=%s", selects, key, value)
		f.ID = LabelDiffers
		if excludes(r) {
			f.ID = LabelExcludes
		}
		f.Cause = fmt.Sprintf("The set %s selects by %s, and cluster %s has %s=%s%s.", m.Set, selects, m.Cluster, key, value, after(", written ", m.writer(key)))
		if claimer := m.claimer(key, value); claimer != "" {
			f.Cause += fmt.Sprintf(" This label puts it into the set %s, which claims the label exclusively: a cluster is in one of these sets at a time, and leaves the other one when its label changes.", claimer)
		}
	}
	f.Fix = m.fix(all)
	o := broken(text, f)
	if cluster.IsReservedLabel(key) {
		o = o.without(m.Others.Why(), m.MayLabel.Why())
	}
	return o
}

func excludes(r *labels.Requirement) bool {
	return slices.Contains([]selection.Operator{selection.NotIn, selection.NotEquals, selection.DoesNotExist}, r.Operator())
}

// labeller returns who must write a label.
func (m *memberChain) labeller(key string) string {
	who := "a user who may write the label " + key + " of the cluster"
	if may, known := m.MayLabel.Get(); known && may {
		return "you, or another user who may write the label " + key
	} else if known {
		return who + ": you may not"
	}
	return who
}

// claimer returns the set that a label adds clusters to, if it is not this set.
func (m *memberChain) claimer(key, value string) string {
	others, _ := m.Others.Get()
	for i := range others {
		if others[i].Name == m.Set {
			continue
		}
		if k, v, ok := Claim(&others[i]); ok && k == key && v == value {
			return others[i].Name
		}
	}
	return ""
}

// Claim returns the label that an exclusive set claims.
func Claim(set *v1beta1.ManagedClusterSet) (key, value string, ok bool) {
	internal := &cluster.ManagedClusterSet{}
	if v1beta1.Convert_v1beta1_ManagedClusterSet_To_cluster_ManagedClusterSet(set, internal, nil) != nil {
		return "", "", false
	}
	return selector.ExclusivePair(internal)
}

// fix returns commands with the labels that would add the cluster to the set, if the selector determines them.
func (m *memberChain) fix(all labels.Requirements) []string {
	changes, clear := Changes(all, m.cluster.Labels)
	words := append([]string{"kubectl", "hub", "label", m.Cluster}, changes...)
	if len(changes) > 0 {
		words = append(words, "--overwrite")
	}
	if !clear {
		return []string{ShellCommand("kubectl", "get", "managedclusterset", m.Set, "-o", "yaml"), ShellCommand("kubectl", "hub", "label", m.Cluster) + " <KEY>=<VALUE> --overwrite"}
	}
	fix := []string{ShellCommand(words...)}
	if may, known := m.MayLabel.Get(); known && !may {
		for _, change := range changes {
			if key, _, sets := strings.Cut(change, "="); sets && cluster.IsReservedLabel(key) {
				fix = append(fix, "kubectl hub why access <YOUR NAME> write "+ShellCommand(change))
			}
		}
	}
	return fix
}

// Changes returns the changes of labels, in the format of kubectl hub label, that make requirements match. They are not clear if a value could be
// anything.
func Changes(all labels.Requirements, have map[string]string) (changes []string, clear bool) {
	for i := range all {
		r := &all[i]
		if r.Matches(labels.Set(have)) {
			continue
		}
		values := slices.Sorted(slices.Values(r.ValuesUnsorted()))
		switch {
		case excludes(r):
			changes = append(changes, r.Key()+"-")
		case slices.Contains([]selection.Operator{selection.Equals, selection.DoubleEquals, selection.In}, r.Operator()) && len(values) > 0:
			changes = append(changes, r.Key()+"="+values[0])
		default:
			return nil, false
		}
	}
	return changes, true
}

// member checks the member that the hub serves, which decides.
func (m *memberChain) member() outcome {
	if member, is := m.Member.Get(); is {
		return passed("the hub shows it in the set, by %s", orEvery(member.Status.SelectedBy.Selector))
	}
	if !m.Member.IsMissing() {
		return unseen(m.Member.Why())
	}
	if m.set == nil {
		return unseen("the hub shows you no such member: the cluster is not in the set, or you may not see the set " + m.Set)
	}
	if m.cluster == nil { // users who see a set see all its members
		return broken("the hub shows no such member", Finding{ID: NotAMember, Severity: Error, Object: "clustersetmember/" + m.Cluster + "." + m.Set,
			Turn:  "a user who may get the cluster, and so see its labels",
			Cause: fmt.Sprintf("Cluster %s is not in the set %s, or is not on the hub. Its labels show the reason, but you may not see them.", m.Cluster, m.Set),
			Fix:   []string{ShellCommand("kubectl", "hub", "members", m.Set)}})
	}
	return broken("the hub does not show it", Finding{ID: NotYetMember, Severity: Error, Object: "clustersetmember/" + m.Cluster + "." + m.Set, Turn: "hub-apiserver",
		Cause: "The labels of the cluster match, but hub-apiserver does not show it as a member: it does so within a second of the change, or you may not see the set's members.",
		Since: since(metav1.Time{}), Fix: []string{ShellCommand("kubectl", "hub", "members", m.Set)}})
}
