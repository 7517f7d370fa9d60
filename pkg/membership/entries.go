// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
)

// memberSpace is the name space of the members' UIDs, which are derived from those of the cluster and the set: the
// same on every replica and after every restart.
var memberSpace = uuid.MustParse("8f0d2a4e-6a53-4c56-9a0e-3f0f5f0b7c21")

// Name returns the name of the member that stands for a cluster in a set. A cluster's name has no dot, so the first dot
// separates the two.
func Name(clusterName, setName string) string { return clusterName + "." + setName }

func newMember(c *clusterEntry, s *setEntry) *view.ClusterSetMember {
	created := c.created
	if created.Before(&s.created) {
		created = s.created
	}
	m := &view.ClusterSetMember{
		ObjectMeta: metav1.ObjectMeta{
			Name:              Name(c.name, s.name),
			UID:               types.UID(uuid.NewSHA1(memberSpace, []byte(c.uid+"."+s.uid)).String()),
			CreationTimestamp: created,
			Labels:            c.labels,
		},
		Spec:   view.ClusterSetMemberSpec{ClusterSet: s.name, Cluster: c.name},
		Status: c.status,
	}
	m.Status.SelectedBy = s.selectedBy
	return m
}

func statusOf(obj *cluster.ManagedCluster) view.ClusterSetMemberStatus {
	status := view.ClusterSetMemberStatus{
		Accepted:          obj.Spec.HubAcceptsClient,
		Joined:            conditionStatus(obj, cluster.ManagedClusterConditionJoined),
		Available:         conditionStatus(obj, cluster.ManagedClusterConditionAvailable),
		KubernetesVersion: obj.Status.Version.Kubernetes,
	}
	for _, t := range obj.Spec.Taints {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		status.Taints = append(status.Taints, text+":"+string(t.Effect))
	}
	return status
}

func conditionStatus(obj *cluster.ManagedCluster, conditionType string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(obj.Status.Conditions, conditionType); c != nil {
		// Only one of the three constants is stored, since the decoded string would be kept in memory.
		switch c.Status {
		case metav1.ConditionTrue:
			return metav1.ConditionTrue
		case metav1.ConditionFalse:
			return metav1.ConditionFalse
		}
	}
	return metav1.ConditionUnknown
}

func statusEqual(a, b *view.ClusterSetMemberStatus) bool {
	return a.Accepted == b.Accepted && a.Joined == b.Joined && a.Available == b.Available &&
		a.KubernetesVersion == b.KubernetesVersion && slices.Equal(a.Taints, b.Taints)
}

func compareSets(a, b *setEntry) int { return cmp.Compare(a.name, b.name) }

func compareClusters(a, b *clusterEntry) int { return cmp.Compare(a.name, b.name) }

func (s *setEntry) addCluster(c *clusterEntry) {
	if i, found := slices.BinarySearchFunc(s.clusters, c, compareClusters); !found {
		s.clusters = slices.Insert(s.clusters, i, c)
	}
}

func (s *setEntry) removeCluster(c *clusterEntry) {
	if i, found := slices.BinarySearchFunc(s.clusters, c, compareClusters); found {
		s.clusters = slices.Delete(s.clusters, i, i+1)
	}
}

func (c *clusterEntry) addSet(s *setEntry) {
	if i, found := slices.BinarySearchFunc(c.sets, s, compareSets); !found {
		c.sets = slices.Insert(c.sets, i, s)
	}
}

func (c *clusterEntry) removeSet(s *setEntry) {
	if i, found := slices.BinarySearchFunc(c.sets, s, compareSets); found {
		c.sets = slices.Delete(c.sets, i, i+1)
	}
}

func (x *Index) indexLabels(c *clusterEntry) {
	for k, v := range c.labels {
		byValue := x.clustersByLabel[k]
		if byValue == nil {
			byValue = map[string][]*clusterEntry{}
			x.clustersByLabel[k] = byValue
		}
		i, found := slices.BinarySearchFunc(byValue[v], c, compareClusters)
		if !found {
			byValue[v] = slices.Insert(byValue[v], i, c)
		}
	}
}

func (x *Index) unindexLabels(c *clusterEntry) {
	for k, v := range c.labels {
		byValue := x.clustersByLabel[k]
		i, found := slices.BinarySearchFunc(byValue[v], c, compareClusters)
		if !found {
			continue
		}
		byValue[v] = slices.Delete(byValue[v], i, i+1)
		if len(byValue[v]) == 0 {
			delete(byValue, v)
		}
		if len(byValue) == 0 {
			delete(x.clustersByLabel, k)
		}
	}
}
