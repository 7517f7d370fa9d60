// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// question is a request to the hub. All of it is built here, from checked parts.
type question struct {
	method string
	// path is relative to the hub's address.
	path  string
	query url.Values
	// apiVersion and kind are those of the object in the body.
	apiVersion, kind string
	body             []byte
	accept           string
	// token is the user's credential, if the configuration for the hub has none.
	token string
	// watch reports whether the response is a stream, and text whether it is not JSON.
	watch, text bool
	// resource is the resource of the objects in the response, such as managedclusters.cluster.open-cluster-management.io, and states reports whether
	// their states are added.
	resource string
	states   bool
}

const clusterGroup = "cluster.open-cluster-management.io"

// resources are the resources that the page shows, by group. Others are not read: no Secrets, no ConfigMaps, no pods, no logs.
var resources = map[string][]string{
	"": {"events", "namespaces"},
	clusterGroup: {"addonplacementscores", "clusterclaims", "managedclusters", "managedclustersetbindings", "managedclustersets",
		"placementdecisions", "placements"},
	"clusterview.open-cluster-management.io": {"managedclusters", "managedclustersets"},
	"view.clusterhub.dev":                    {"clustersetmembers"},
	"clusters.openmcp.cloud":                 {"accessrequests", "clusterprofiles", "clusterrequests", "clusters"},
	"work.open-cluster-management.io": {"appliedmanifestworks", "manifestworkreplicasetrevisions", "manifestworkreplicasets",
		"manifestworks"},
	"edge.clusterhub.dev":                 {"deploymentpatterns", "deploymentpolicies", "edgenodes", "edgeplacements", "edgeservices"},
	"operator.open-cluster-management.io": {"clustermanagers", "klusterlets"},

	"apiregistration.k8s.io":    {"apiservices"},
	"certificates.k8s.io":       {"certificatesigningrequests"},
	"coordination.k8s.io":       {"leases"},
	"events.k8s.io":             {"events"},
	"rbac.authorization.k8s.io": {"clusterrolebindings", "clusterroles", "rolebindings", "roles"},
}

// subresources are the subresources that may be read. Others may not, such as accessrequests/token and serviceaccounts/token.
var subresources = map[string][]string{clusterGroup + "/placements": {"explain"}}

// reviews are objects that are not stored, and whose status has a result, by group and resource, with their kinds, and whether they are namespaced.
var reviews = map[string]struct {
	kind       string
	namespaced bool
}{
	"authorization.k8s.io/selfsubjectaccessreviews": {kind: "SelfSubjectAccessReview"},
	"authorization.k8s.io/selfsubjectrulesreviews":  {kind: "SelfSubjectRulesReview"},
	"authentication.k8s.io/selfsubjectreviews":      {kind: "SelfSubjectReview"},
	"edge.clusterhub.dev/deploychecks":              {kind: "DeployCheck", namespaced: true},
}

var (
	// readParameters are the parameters of lists, watches and gets.
	readParameters = []string{"allowWatchBookmarks", "continue", "fieldSelector", "includeObject", "labelSelector", "limit", "resourceVersion",
		"resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"}
	explainParameters = []string{"cluster", "continue", "limit"}

	// segments matches names, also those of roles, which have colons. None begins with a dot, and none needs to be encoded twice.
	segments = regexp.MustCompile(`^[A-Za-z0-9_:@~+-][A-Za-z0-9._:@~+-]{0,252}$`)
	versions = regexp.MustCompile(`^v[1-9][0-9]{0,2}((alpha|beta)[1-9][0-9]{0,2})?$`)
)

// ask converts a path below /hub and its parameters to a question, or returns a refusal.
func ask(method, path, query string) (*question, *refusal) {
	if method != http.MethodGet && method != http.MethodPost {
		return nil, refuse(http.StatusMethodNotAllowed, "the page only reads: %s is not passed on to the hub", method)
	}
	parts, ok := split(path)
	if !ok {
		return nil, refuse(http.StatusBadRequest, "the path is not one of the hub's API: expected names with a slash between two of them")
	}
	q := &question{method: method}
	parameters, ok := q.route(parts)
	if !ok {
		return nil, refuse(http.StatusForbidden, "the page does not need this of the hub: %s is not passed on", method)
	}
	q.path = "/" + strings.Join(parts, "/") // no character that segments matches needs to be encoded
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the parameters cannot be read: expected name=value with & between two of them")
	}
	for name, all := range values {
		if !slices.Contains(parameters, name) || len(all) != 1 {
			return nil, refuse(http.StatusBadRequest, "a parameter is not passed on: expected one or none of each of %q", parameters)
		}
	}
	q.query = values
	q.watch = values.Has("watch") && !slices.Contains([]string{"false", "0"}, values.Get("watch"))
	return q, nil
}

// split splits a path into its segments, each of which is decoded once.
func split(path string) ([]string, bool) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return nil, false
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		if err != nil || !segments.MatchString(decoded) {
			return nil, false
		}
		parts[i] = decoded
	}
	return parts, true
}

// route reports whether a path is allowed, and with which parameters.
func (q *question) route(parts []string) (parameters []string, ok bool) {
	reads := q.method == http.MethodGet
	switch {
	case len(parts) == 1 && parts[0] == "readyz":
		q.text = true
		return []string{"verbose"}, reads
	case len(parts) == 1 && slices.Contains([]string{"version", "api", "apis"}, parts[0]):
		return nil, reads
	case parts[0] == "api" && len(parts) > 1 && parts[1] == "v1":
		return q.routeGroup("", "v1", parts[2:])
	case parts[0] == "apis" && len(parts) > 1 && knownGroup(parts[1]):
		if len(parts) == 2 {
			return nil, reads
		}
		return q.routeGroup(parts[1], parts[2], parts[3:])
	}
	return nil, false
}

func knownGroup(group string) bool {
	return group != "" && (resources[group] != nil || group == "authorization.k8s.io" || group == "authentication.k8s.io")
}

// routeGroup does the same for the part after the version.
func (q *question) routeGroup(group, version string, parts []string) (parameters []string, ok bool) {
	if !versions.MatchString(version) {
		return nil, false
	}
	namespaced := len(parts) > 2 && parts[0] == "namespaces"
	if namespaced {
		parts = parts[2:]
	}
	if q.method == http.MethodPost {
		if len(parts) != 1 {
			return nil, false
		}
		review, ok := reviews[group+"/"+parts[0]]
		q.apiVersion, q.kind = group+"/"+version, review.kind
		return nil, ok && review.namespaced == namespaced
	}
	if len(parts) == 0 {
		return nil, true // discovery of the group
	}
	if !slices.Contains(resources[group], parts[0]) {
		return nil, false
	}
	switch len(parts) {
	case 1, 2:
		q.resource = parts[0] + "." + group
		return readParameters, true
	case 3:
		return explainParameters, namespaced && slices.Contains(subresources[group+"/"+parts[0]], parts[2])
	}
	return nil, false
}

// accepted returns the formats to request from the hub: JSON, as objects or as a table.
func accepted(header string) string {
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	if firstOf(header) == table {
		return table + ",application/json"
	}
	return "application/json"
}

// firstOf returns the first format of an Accept header.
func firstOf(header string) string {
	first, _, _ := strings.Cut(strings.ReplaceAll(header, " ", ""), ",")
	return first
}
