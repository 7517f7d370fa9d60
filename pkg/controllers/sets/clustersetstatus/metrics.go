// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetstatus

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// maxMeasured is the maximum number of sets with series of their own. Users create as many sets as they like.
const maxMeasured = 100

var (
	sizeDescription = prometheus.NewDesc("clusterhub_clusterset_members",
		"Clusters in each of the largest cluster sets, at most 100 of them.", []string{"clusterset"}, nil)
	setsDescription = prometheus.NewDesc("clusterhub_clustersets_with_members",
		"Cluster sets with at least one cluster.", nil, nil)
)

// sizes collects the sizes of sets.
type sizes struct{ *members }

var _ prometheus.Collector = sizes{}

// Describe implements prometheus.Collector.
func (s sizes) Describe(to chan<- *prometheus.Desc) {
	to <- sizeDescription
	to <- setsDescription
}

// Collect implements prometheus.Collector. It returns nothing until all members are known.
func (s sizes) Collect(to chan<- prometheus.Metric) {
	select {
	case <-s.synced:
	default:
		return
	}
	all := s.sizes()
	to <- prometheus.MustNewConstMetric(setsDescription, prometheus.GaugeValue, float64(len(all)))
	for _, set := range all[:min(len(all), maxMeasured)] {
		to <- prometheus.MustNewConstMetric(sizeDescription, prometheus.GaugeValue, float64(set.members), set.name)
	}
}

type size struct {
	name    string
	members int
}

// sizes returns the sizes of all sets with members, the largest first.
func (m *members) sizes() []size {
	m.mu.Lock()
	all := make([]size, 0, len(m.sets))
	for name, clusters := range m.sets {
		if len(clusters) > 0 {
			all = append(all, size{name, len(clusters)})
		}
	}
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b size) int { return cmp.Or(cmp.Compare(b.members, a.members), cmp.Compare(a.name, b.name)) })
	return all
}
