// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// groups are the API groups of hub-apiserver, and the one by which upstream's roles name permissions.
var groups = []string{cluster.GroupName, "clusterview.open-cluster-management.io", "view.clusterhub.dev", "clusters.openmcp.cloud", registration.RegisterGroup,
	work.GroupName, edge.GroupName}

// clusters are the clusters of a hub, with whether they are accepted. The watch cache may be stale.
type clusters struct {
	cached, live map[string]bool
	err          error
	// reads counts the reads from etcd.
	reads int
}

func (c *clusters) Get(_ context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if c.err != nil {
		return nil, c.err
	}
	from := c.cached
	if options.ResourceVersion != "0" {
		c.reads++
		from = c.live
	}
	accepted, there := from[name]
	if !there {
		return nil, apierrors.NewNotFound(cluster.Resource("managedclusters"), name)
	}
	return &cluster.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cluster.ManagedClusterSpec{HubAcceptsClient: accepted},
	}, nil
}

// hub returns an authorizer with c1 and c2, which are accepted, and d1, which is not. n1 does not exist.
func hub() *Authorizer {
	a := New(groups, registration.DefaultAgentLabels())
	there := map[string]bool{"c1": true, "c2": true, "d1": false}
	a.Clusters = &clusters{cached: there, live: there}
	return a
}

func agent(name string) user.Info {
	return &user.DefaultInfo{Name: registration.ClusterUser(name, "a"),
		Groups: []string{registration.ClusterGroup(name), registration.ManagedClustersGroup, "system:authenticated"}}
}

func awsAgent(name string) user.Info {
	return &user.DefaultInfo{Name: registration.AWSGroup(name),
		Groups: []string{registration.AWSGroup(name), registration.AWSManagedClustersGroup, "system:authenticated"}}
}

// attributesOf returns the attributes that the server derives from a request.
func attributesOf(t *testing.T, who user.Info, method, path string) authorizer.Attributes {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis", "api"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	a, err := filters.GetAuthorizerAttributes(request.WithUser(request.WithRequestInfo(r.Context(), info), who))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func decide(t *testing.T, a *Authorizer, who user.Info, method, path string) (authorizer.Decision, string) {
	t.Helper()
	decision, reason, err := a.authorize(t.Context(), attributesOf(t, who, method, path))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if (decision == noOpinion) != (reason == "") {
		t.Errorf("%s %s: decision %v has the reason %q", method, path, decision, reason)
	}
	return decision, reason
}

const v1 = "/apis/cluster.open-cluster-management.io/v1/managedclusters"

// TestAuthorize_AgentRequests sends the requests of ours and of upstream's agents.
func TestAuthorize_AgentRequests(t *testing.T) {
	for _, c := range []struct {
		method, path string
		whenAccepted bool
	}{
		{method: "GET", path: v1 + "/NAME"},
		{method: "GET", path: v1 + "?fieldSelector=metadata.name%3DNAME"},
		{method: "GET", path: v1 + "?fieldSelector=metadata.name%3DNAME&limit=500&resourceVersion=0"},
		{method: "GET", path: v1 + "?allowWatchBookmarks=true&fieldSelector=metadata.name%3DNAME&watch=true"},
		{method: "GET", path: "/apis/cluster.open-cluster-management.io/v1/watch/managedclusters/NAME"},
		{method: "PUT", path: v1 + "/NAME", whenAccepted: true},
		{method: "PUT", path: v1 + "/NAME/status", whenAccepted: true},
		{method: "PATCH", path: v1 + "/NAME/status", whenAccepted: true},
		{method: "PUT", path: v1 + "/NAME/leave", whenAccepted: true},
	} {
		for name, accepted := range map[string]bool{"c1": true, "c2": true, "d1": false, "n1": false} {
			for _, who := range []user.Info{agent(name), awsAgent(name)} {
				want := deny
				if accepted || !c.whenAccepted {
					want = allow
				}
				got, reason := decide(t, hub(), who, c.method, strings.ReplaceAll(c.path, "NAME", name))
				if got != want || got == deny && !strings.Contains(reason, `cluster "`+name+`" is not accepted`) {
					t.Errorf("%s by the agent of %s: %v (%s), want %v", c.method+" "+c.path, name, got, reason, want)
				}
			}
		}
	}
}

// TestAuthorize_Attacks verifies that none of these requests is allowed, whatever the state of the cluster, and that RBAC is not consulted.
func TestAuthorize_Attacks(t *testing.T) {
	for served, resources := range map[string]string{
		"cluster.open-cluster-management.io/v1":       "managedclusters x",
		"cluster.open-cluster-management.io/v1beta1":  "managedclusters managedclustersets managedclustersetbindings placements",
		"cluster.open-cluster-management.io/v1beta2":  "managedclusters managedclustersets managedclustersetbindings",
		"cluster.open-cluster-management.io/v1alpha1": "managedclusters managedclustersets",
		"cluster.open-cluster-management.io/v2":       "managedclusters",
		"clusterview.open-cluster-management.io/v1":   "managedclusters managedclustersets",
		"view.clusterhub.dev/v1alpha1":                "clustersetmembers managedclusters",
		"clusters.openmcp.cloud/v1alpha1":             "clusters clusterrequests accessrequests clusterprofiles managedclusters",
		"register.open-cluster-management.io/v1":      "managedclusters",
		"work.open-cluster-management.io/v1":          "appliedmanifestworks managedclusters",
		"work.open-cluster-management.io/v1alpha1":    "manifestworkreplicasets manifestworkreplicasetrevisions",
	} {
		for resource := range strings.FieldsSeq(resources) {
			ours := strings.HasPrefix(served, cluster.GroupName) && resource == "managedclusters"
			for _, base := range []string{"/apis/" + served, "/apis/" + served + "/watch"} {
				attack(t, base+"/"+resource, ours)
				attack(t, base+"/namespaces/OWN/"+resource, false)
			}
		}
	}
}

// attack tries all verbs below a path. For the agent's own cluster it tries those verbs that agents do not have.
func attack(t *testing.T, path string, ours bool) {
	t.Helper()
	var tried []string // METHOD path
	each := func(methods, path string) {
		for method := range strings.FieldsSeq(methods) {
			tried = append(tried, method+" "+path)
		}
	}
	const every = "GET HEAD PUT PATCH POST DELETE OPTIONS"
	// All objects, and those of others.
	for _, query := range []string{
		"", "?watch=true", "?limit=1", "?resourceVersion=0", "?labelSelector=a%3Db", "?labelSelector=metadata.name%3DOWN",
		"?fieldSelector=metadata.name%3Dother", "?fieldSelector=metadata.name!%3DOWN", "?fieldSelector=spec.hubAcceptsClient%3Dtrue",
		"?fieldSelector=metadata.name%3Dother&fieldSelector=metadata.name%3DOWN",
		"?fieldSelector=metadata.name%3D", "?fieldSelector=metadata.namespace%3DOWN", "?fieldSelector=metadata.name%3D%2A",
		"?watch=true&fieldSelector=metadata.name%3Dother", "?fieldselector=metadata.name%3DOWN", "?name=OWN",
	} {
		each(every, path+query)
	}
	for _, subresource := range []string{"", "/status", "/leave", "/accept", "/finalizers", "/clientcertificates", "/join", "/bind", "/token", "/x", "/status/x"} {
		each(every, path+"/other"+subresource)
	}
	for _, subresource := range []string{"", "/status"} {
		each(every, path+"/other"+subresource+"?fieldSelector=metadata.name%3DOWN")
		each(every, path+"/OWN%2F..%2Fother"+subresource)
		each(every, path+"/OWN%20"+subresource)
	}
	// Deletions with a selector for the own cluster, with which reads are allowed.
	each("DELETE", path+"?fieldSelector=metadata.name%3DOWN")
	if ours {
		each("POST PATCH DELETE", path+"/OWN")
		each("GET HEAD POST DELETE", path+"/OWN/status")
		each("GET PATCH POST DELETE", path+"/OWN/leave")
		each("GET PUT PATCH DELETE", path+"/OWN/label")
	} else {
		each(every, path+"/OWN")
		each(every, path+"/OWN/status")
		each(every, path+"/OWN/leave")
		each("GET PUT PATCH DELETE", path+"/OWN/label")
		each("GET", path+"?fieldSelector=metadata.name%3DOWN")
	}
	of := []string{"c1"}
	if ours {
		of = append(of, "d1", "n1")
	}
	for _, each := range tried {
		method, path, _ := strings.Cut(each, " ")
		for _, name := range of {
			if strings.Contains(path, "/watch/") && method != "GET" {
				continue // the verb is in the path
			}
			path := strings.NewReplacer("OWN", name, "other", "c2").Replace(path)
			if got, reason := decide(t, attacked, agent(name), method, path); got != deny {
				t.Errorf("%s %s by the agent of %s: %v (%s)", method, path, name, got, reason)
			}
		}
	}
}

// attacked is one hub for all attacks, since none of them changes it.
var attacked = hub()

// TestAuthorize_ListIsOfAuthorizedName: of two names in a selector the first is authorized, and the list only has objects that match both. A
// selector that cannot be parsed has no name.
func TestAuthorize_ListIsOfAuthorizedName(t *testing.T) {
	path := v1 + "?fieldSelector=metadata.name%3Dc1,metadata.name%3Dc2"
	if got, _ := decide(t, hub(), agent("c1"), "GET", path); got != allow {
		t.Errorf("got %v, want allowed: it selects nothing, or c1", got)
	}
	if got, _ := decide(t, hub(), agent("c2"), "GET", path); got != deny {
		t.Errorf("got %v, want denied", got)
	}
	for _, selector := range []string{"metadata.name+in+(c1)", "%00"} {
		if got, _ := decide(t, hub(), agent("c1"), "GET", v1+"?fieldSelector="+selector); got != deny {
			t.Errorf("%s: got %v, want denied", selector, got)
		}
	}
}

func TestAuthorize_AmbiguousUsersAreDenied(t *testing.T) {
	for what, who := range map[string]*user.DefaultInfo{
		"no cluster":         {Name: "a", Groups: []string{registration.ManagedClustersGroup}},
		"no cluster, by AWS": {Name: "a", Groups: []string{registration.AWSManagedClustersGroup}},
		"its name alone":     {Name: registration.ClusterUser("c1", "a"), Groups: []string{registration.ManagedClustersGroup}},
		"two":                {Name: "a", Groups: []string{registration.ManagedClustersGroup, registration.ClusterGroup("c1"), registration.ClusterGroup("c2")}},
		"another name": {Name: registration.ClusterUser("c2", "a"),
			Groups: []string{registration.ManagedClustersGroup, registration.ClusterGroup("c1")}},
		"an admin":      {Name: "admin", Groups: []string{"system:masters", registration.ManagedClustersGroup}},
		"the other way": {Name: "a", Groups: []string{registration.AWSManagedClustersGroup, registration.ClusterGroup("c1")}},
		"reserved":      {Name: "a", Groups: []string{registration.ManagedClustersGroup, registration.ClusterGroup("work")}},
	} {
		for _, request := range []string{"GET " + v1, "GET " + v1 + "/c1", "GET " + v1 + "/work", "PUT " + v1 + "/c1", "PUT " + v1 + "/c2/status",
			"DELETE " + v1 + "/c1", "POST " + v1 + "/info.open-cluster-management.io%2Fregion:apac/label",
			"POST " + v1 + "/env:x/label", "GET " + v1 + "/", "GET /apis/view.clusterhub.dev/v1alpha1/clustersetmembers"} {
			method, path, _ := strings.Cut(request, " ")
			if got, reason := decide(t, hub(), who, method, path); got != deny || !strings.Contains(reason, "of which one cluster") {
				t.Errorf("%s, %s: %v (%s)", what, request, got, reason)
			}
		}
	}
	// Other groups of an agent do not give it permissions.
	admin := &user.DefaultInfo{Name: "admin", Groups: append([]string{"system:masters"}, agent("c1").GetGroups()...)}
	if got, _ := decide(t, hub(), admin, "GET", v1+"/c2"); got != deny {
		t.Errorf("an admin in the groups of an agent: %v", got)
	}
}

func TestAuthorize_NoOpinionOnOthers(t *testing.T) {
	for _, who := range []user.Info{agent("c1"), agent("d1"), awsAgent("c1"), &user.DefaultInfo{Name: "a", Groups: []string{registration.ManagedClustersGroup}}} {
		for _, request := range []string{
			"GET /", "GET /apis", "GET /apis/" + cluster.GroupName, "GET /apis/" + cluster.GroupName + "/v1", "GET /openapi/v3", "GET /healthz",
			"GET /metrics", "GET /api/v1/namespaces/c1/secrets", "PUT /apis/coordination.k8s.io/v1/namespaces/c1/leases/managed-cluster-lease",
			"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "POST /apis/certificates.k8s.io/v1/certificatesigningrequests",
		} {
			method, path, _ := strings.Cut(request, " ")
			if got, reason := decide(t, hub(), who, method, path); got != noOpinion {
				t.Errorf("%s: %v (%s)", request, got, reason)
			}
		}
	}
	for what, who := range map[string]user.Info{
		"people":            &user.DefaultInfo{Name: "ann", Groups: []string{"system:authenticated", registration.AWSGroup("admins")}},
		"an admin":          &user.DefaultInfo{Name: "admin", Groups: []string{"system:masters"}},
		"a bootstrap token": &user.DefaultInfo{Name: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers:managedcluster"}},
		"an addon's agent": &user.DefaultInfo{Name: "system:open-cluster-management:cluster:c1:addon:x:agent:y",
			Groups: []string{"system:open-cluster-management:cluster:c1:addon:x", "system:open-cluster-management:addon:x"}},
		"nobody": nil,
	} {
		for _, request := range []string{"GET " + v1, "DELETE " + v1 + "/c1", "PUT " + v1 + "/c1", "POST " + v1} {
			method, path, _ := strings.Cut(request, " ")
			if got, reason := decide(t, hub(), who, method, path); got != noOpinion {
				t.Errorf("%s by %s: %v (%s)", request, what, got, reason)
			}
		}
	}
}

// permission returns the attributes of a check by an admission plugin.
func permission(who user.Info, verb, group, resource, name string) authorizer.Attributes {
	resource, subresource, _ := strings.Cut(resource, "/")
	return authorizer.AttributesRecord{
		User: who, Verb: verb, APIGroup: group, APIVersion: "v1", Resource: resource, Subresource: subresource, Name: name, ResourceRequest: true,
	}
}

func TestAuthorize_Labels(t *testing.T) {
	for name, want := range map[string]authorizer.Decision{
		registration.LabelRegion + ":apac": allow, registration.LabelRegion + ":*": allow, registration.LabelRegion + ":": allow,
		registration.LabelRegion: allow, registration.LabelCloud + ":Amazon": allow, registration.LabelVendor + ":a": allow,
		// RBAC decides on these as for all users.
		"*": noOpinion, "": noOpinion, ":": noOpinion, cluster.ClusterSetLabel + ":dev": noOpinion, registration.LabelRegion + "x:apac": noOpinion,
		"info.open-cluster-management.io/middlewareEnabled:true": noOpinion, "Info.open-cluster-management.io/region:a": noOpinion,
		"x:" + registration.LabelRegion + ":apac": noOpinion, " " + registration.LabelRegion + ":apac": noOpinion,
	} {
		for _, who := range []user.Info{agent("c1"), awsAgent("c1")} {
			if got, _, err := hub().authorize(t.Context(), permission(who, "create", cluster.GroupName, "managedclusters/label", name)); got != want || err != nil {
				t.Errorf("%q: %v, %v, want %v", name, got, err, want)
			}
		}
		for _, of := range []string{"d1", "n1"} {
			if got, _, _ := hub().authorize(t.Context(), permission(agent(of), "create", cluster.GroupName, "managedclusters/label", name)); got == allow {
				t.Errorf("%q by the agent of %s, which is not accepted", name, of)
			}
		}
		if got, _, _ := New(groups, nil).authorize(t.Context(), permission(agent("c1"), "create", cluster.GroupName, "managedclusters/label", name)); got != noOpinion {
			t.Errorf("%q with no labels for agents: %v", name, got)
		}
	}
}

// TestAuthorize_Permissions has the checks of admission plugins and of the members' storage with hub-apiserver's authorizer.
func TestAuthorize_Permissions(t *testing.T) {
	for _, c := range []struct{ verb, group, resource, name string }{
		{"update", cluster.GroupName, "managedclusters/accept", "c1"},
		{"update", registration.RegisterGroup, "managedclusters/accept", "c1"},
		{"update", cluster.GroupName, "managedclusters/finalizers", "c1"},
		{"update", cluster.GroupName, "managedclusters/leave", "c2"},
		{"delete", cluster.GroupName, "managedclusters", "c1"},
		{"update", cluster.GroupName, "managedclusters/label", registration.LabelRegion + ":apac"},
		{"create", registration.RegisterGroup, "managedclusters/label", registration.LabelRegion + ":apac"},
		{"create", cluster.GroupName, "managedclustersets/join", "dev"},
		{"create", cluster.GroupName, "managedclustersets/bind", "dev"},
		{"get", cluster.GroupName, "managedclustersets", "dev"},
		{"get", cluster.GroupName, "managedclustersets", "c1"},
		{"list", "view.clusterhub.dev", "clustersetmembers", ""},
		{"watch", "view.clusterhub.dev", "clustersetmembers", "c1"},
		{"get", "view.clusterhub.dev", "clustersetmembers", "c1.dev"},
	} {
		for _, who := range []user.Info{agent("c1"), awsAgent("c1")} {
			if got, reason, err := hub().authorize(t.Context(), permission(who, c.verb, c.group, c.resource, c.name)); got != deny || err != nil {
				t.Errorf("%v: %v (%s), %v", c, got, reason, err)
			}
		}
	}
	if got, _, err := hub().authorize(t.Context(), permission(agent("c1"), "update", cluster.GroupName, "managedclusters/leave", "c1")); got != allow || err != nil {
		t.Errorf("to leave: %v, %v", got, err)
	}
}

func TestAuthorize_DeniesOnLookupError(t *testing.T) {
	for what, c := range map[string]*clusters{"no answer": {err: errors.New("etcd is away")}, "not assembled": nil} {
		a := New(groups, registration.DefaultAgentLabels())
		if c != nil {
			a.Clusters = c
		}
		for _, method := range []string{http.MethodPut, http.MethodGet} {
			got, _, err := a.authorize(t.Context(), attributesOf(t, agent("c1"), method, v1+"/c1"))
			if reads := method == http.MethodGet; (got == allow) != reads || (err == nil) != reads || !reads && got != deny {
				t.Errorf("%s, %s: %v, %v", what, method, got, err)
			}
		}
	}
}

func TestRights_VerbsAreUnique(t *testing.T) {
	seen := sets.New[string]()
	for _, r := range rights {
		for _, verb := range r.verbs {
			if id := strings.Join([]string{verb, r.group, r.resource, r.subresource}, " "); seen.Has(id) {
				t.Errorf("%s is there twice: the first counts", id)
			} else {
				seen.Insert(id)
			}
		}
		if !slices.Contains(groups, r.group) {
			t.Errorf("%s is in none of the groups that are decided on", r.group)
		}
	}
}
