// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

type row struct {
	title string
	shown []shown
}

// shown is a panel: a curve, or the number of now.
type shown struct {
	title, about, unit string
	now                bool
	queries            []query
}

type query struct{ expr, legend string }

// Units, as Grafana calls them.
const number, seconds, bytes, share, perSecond = "short", "s", "bytes", "percentunit", "reqps"

// ofHub selects the requests for the kinds of the hub.
const ofHub = `group=~"(cluster|clusterview|work)\\.open-cluster-management\\.io|clusters\\.openmcp\\.cloud|(view|edge)\\.clusterhub\\.dev"`

func one(expr, legend string) []query { return []query{{expr, legend}} }

// quantiles are the middle and the slowest hundredth of a histogram, of the last five minutes or, for one of the fleet, of now.
func quantiles(buckets string) (queries []query) {
	for _, q := range []string{"0.5", "0.99"} {
		queries = append(queries, query{fmt.Sprintf("histogram_quantile(%s, sum by (le) (%s))", q, buckets), q})
	}
	return queries
}

func slowest(histogram string) []query { return quantiles("rate(" + histogram + "_bucket[5m])") }

var rows = []row{
	{"Clusters", []shown{
		{title: "Accepted", unit: number, now: true, queries: one(`sum(clusterhub_managed_clusters_by_condition{accepted="true"})`, "")},
		{title: "Available", unit: number, now: true, queries: one(`sum(clusterhub_managed_clusters_by_condition{accepted="true",available="true"})`, "")},
		{title: "Waiting for an admin", unit: number, now: true, queries: one(`sum(clusterhub_registration_requests_pending)`, "")},
		{title: "Processes that lead", about: "1 where all is well.", unit: number, now: true, queries: one(`sum(leader_election_master_status{name="hub-controller-manager"})`, "")},
		{title: "Clusters that have joined", about: "By whether they are available; unknown are those whose agents are silent.", unit: number,
			queries: one(`sum by (available) (clusterhub_managed_clusters_by_condition{accepted="true",joined="true"})`, "{{available}}")},
		{title: "Signs of life", about: "How long ago agents were seen to be alive.", unit: seconds, queries: quantiles("clusterhub_managed_cluster_lease_age_seconds_bucket")},
		{title: "Certificates that end within a week", unit: number,
			queries: one(`sum(clusterhub_managed_cluster_certificate_expiration_seconds_bucket{le="604800"})`, "agents")},
		{title: "Acceptances in an hour", unit: number, queries: one(`sum by (by) (increase(clusterhub_acceptances_total[1h]))`, "by a {{by}}")},
		{title: "From acceptance to joined", unit: seconds, queries: slowest("clusterhub_registration_duration_seconds")},
		{title: "Oldest registration that waits", unit: seconds, queries: one(`max by (reason) (clusterhub_registration_oldest_pending_seconds)`, "for {{reason}}")},
	}},
	{"API", []shown{
		{title: "Requests", unit: perSecond, queries: one(fmt.Sprintf(`sum by (resource) (rate(apiserver_request_total{%s}[5m]))`, ofHub), "{{resource}}")},
		{title: "Failed requests", about: "Those that end with a code of the server.", unit: share, queries: one(fmt.Sprintf(
			`(sum(rate(apiserver_request_total{%[1]s,code=~"5.."}[5m])) or vector(0)) / sum(rate(apiserver_request_total{%[1]s}[5m]))`, ofHub), "of all")},
		{title: "Time of requests", about: "For single objects.", unit: seconds,
			queries: quantiles(fmt.Sprintf(`rate(apiserver_request_duration_seconds_bucket{%s,verb!~"WATCH|CONNECT|LIST"}[5m])`, ofHub))},
		{title: "Watches", unit: number, queries: one(fmt.Sprintf(`sum by (resource) (apiserver_longrunning_requests{%s,verb="WATCH"})`, ofHub), "{{resource}}")},
		{title: "Database", unit: bytes, queries: []query{{"clusterhub_embedded_etcd_size_bytes", "size"}, {"clusterhub_embedded_etcd_quota_bytes", "quota"}}},
		{title: "APIs that are not available", unit: number, queries: one(
			`sum(aggregator_unavailable_apiservice{name=~".+\\.(open-cluster-management\\.io|openmcp\\.cloud|clusterhub\\.dev)"})`, "APIs")},
	}},
	{"Members of sets", []shown{
		{title: "From a change to its events", about: "Within hub-apiserver.", unit: seconds, queries: slowest("clusterhub_membership_lag_seconds")},
		{title: "Computed anew", unit: seconds, queries: slowest("clusterhub_membership_rebuild_duration_seconds")},
		{title: "Age of the RBAC rules", unit: seconds, queries: one("time() - max by (kind) (clusterhub_rbac_last_heard_timestamp_seconds)", "{{kind}}")},
	}},
	{"Controllers", []shown{
		{title: "Objects that wait", unit: number, queries: one(`sum by (name) (workqueue_depth{job=~".*hub-controller-manager"})`, "{{name}}")},
		{title: "Errors", unit: perSecond, queries: one(`sum by (controller) (rate(controller_runtime_reconcile_errors_total{job=~".*hub-controller-manager"}[5m]))`, "{{controller}}")},
		{title: "Longest under way", unit: seconds, queries: one(`max by (name) (workqueue_longest_running_processor_seconds{job=~".*hub-controller-manager"})`, "{{name}}")},
	}},
	{"Placements, works and access", []shown{
		{title: "Placements", about: "By whether all clusters that they ask for were found.", unit: number, queries: one(`sum by (satisfied) (clusterhub_placements)`, "{{satisfied}}")},
		{title: "Choosing clusters", unit: seconds, queries: slowest("scheduling_scheduling_duration_seconds")},
		{title: "Works that are applied", unit: number, queries: one(`sum by (applied) (clusterhub_works)`, "{{applied}}")},
		{title: "Clusters in rollouts", unit: number, queries: one(`sum by (state) (clusterhub_replicaset_clusters)`, "{{state}}")},
		{title: "Edge placements", unit: number, queries: one(`sum by (state) (clusterhub_edge_placements)`, "{{state}}")},
		{title: "Requests for access", unit: number, queries: one(`sum by (phase) (clusterhub_access_requests)`, "{{phase}}")},
	}},
}
