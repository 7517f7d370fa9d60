// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/join"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	rbacPath        = "/apis/rbac.authorization.k8s.io/v1"
	worksRightsPath = rbacPath + "/clusterrolebindings/" + deploy.WorksRights
	worksCRDPath    = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/appliedmanifestworks.work.open-cluster-management.io"
)

// newJoiningWorks is newJoining with a cluster that has the namespaces a and b.
func newJoiningWorks(t *testing.T) (cluster *clitest.Server, config string, args []string) {
	t.Helper()
	_, cluster, config, args = newJoining(t)
	for _, name := range []string{"a", "b"} {
		cluster.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return cluster, config, args
}

const (
	everywhere = "ClusterRoleBinding works, ClusterRoleBinding works-namespaces, %, ClusterRole works, ClusterRole works-namespaces"
	inSome     = "ClusterRoleBinding works, ClusterRole works, %"
)

func TestJoinWorks_ReplacesRights(t *testing.T) {
	cluster, config, args := newJoiningWorks(t)
	// Objects of other owners stay, whatever their names.
	others := []*rbacv1.RoleBinding{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: deploy.WorksRights}, RoleRef: rbacv1.RoleRef{Name: "theirs"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "ours-by-label-only", Labels: kit.Owner.Labels}, RoleRef: rbacv1.RoleRef{Name: "theirs"}},
	}
	for _, o := range others {
		cluster.Put(o)
	}
	on := "--works --agent-id=" + registration.AgentNamespace
	for _, step := range []struct {
		flags              []string
		want, flagsOfAgent string
		says, json         string
	}{
		{nil, "c=theirs", "", "It applies no works: join with --works to let it.", `"role": "none"`},
		{[]string{"--works=admin"}, strings.ReplaceAll(everywhere, "%", "=admin") + ", c=theirs", on, "It applies works with the rights of admin in all namespaces.", `"role": "admin"`},
		{[]string{"--works=cluster-admin"}, strings.ReplaceAll(everywhere, "%", "=cluster-admin") + ", c=theirs", on,
			"It applies works with the rights of cluster-admin in all namespaces.", `"role": "cluster-admin"`},
		{[]string{"--works=admin", "--works-namespaces=b,a,b"}, strings.ReplaceAll(inSome, "%", "a=admin, b=admin") + ", c=theirs", on,
			"It applies works with the rights of admin in these namespaces: a, b.", `"namespaces": [`},
		{[]string{"--works=cluster-admin", "--works-namespaces=b"}, strings.ReplaceAll(inSome, "%", "b=cluster-admin") + ", c=theirs", on,
			"It applies works with the rights of cluster-admin in these namespaces: b.", `"role": "cluster-admin"`},
		{[]string{"--works=none"}, "c=theirs", "", "It applies no works", `"role": "none"`},
	} {
		stdout, stderr, err := clitest.Run(t, config, append(args, step.flags...)...)
		if err != nil {
			t.Fatalf("%q: %v: %s", step.flags, err, stderr)
		}
		clitest.Says(t, stdout, step.says)
		got, want := strings.Split(cluster.RightsOfWorks(), ", "), strings.Split(step.want, ", ")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: there are %q, want %q", step.flags, got, want)
		}
		if got := cluster.FlagsOfWorks(); got != step.flagsOfAgent {
			t.Errorf("%q: the agent has the flags %q, want %q", step.flags, got, step.flagsOfAgent)
		}
		cluster.Asked = nil
		again, stderr, err := clitest.Run(t, config, append(args, append(step.flags, "-o", "json")...)...)
		if len(step.flags) == 0 {
			step.flags = []string{"none"}
		}
		if err != nil || strings.Contains(stderr, " created\n") || strings.Contains(stderr, " deleted\n") {
			t.Errorf("%q again: %v: %s", step.flags, err, stderr)
		}
		clitest.Says(t, again, step.json)
	}
	for _, o := range others {
		if cluster.Get(rbacPath+"/namespaces/"+o.Namespace+"/rolebindings/"+o.Name) == nil {
			t.Errorf("%s/%s of another is gone", o.Namespace, o.Name)
		}
	}
	// Join does not delete the records: an agent may have created some.
	if cluster.Get(worksCRDPath) == nil {
		t.Error("the definition of the records is gone")
	}
}

// TestJoinWorks_RevokesBeforeGranting verifies that permissions are revoked before others are granted, so that an interrupted join does not leave both.
func TestJoinWorks_RevokesBeforeGranting(t *testing.T) {
	cluster, config, args := newJoiningWorks(t)
	if _, _, err := clitest.Run(t, config, append(args, "--works=cluster-admin")...); err != nil {
		t.Fatal(err)
	}
	cluster.Asked = nil
	if _, _, err := clitest.Run(t, config, append(args, "--works=admin", "--works-namespaces=a")...); err != nil {
		t.Fatal(err)
	}
	changes := slices.DeleteFunc(cluster.Changes(), func(change string) bool { return strings.HasPrefix(change, "POST") })
	if len(changes) == 0 || changes[0] != "DELETE "+deploy.WorksRights {
		t.Errorf("it changes %q", changes)
	}
}

// TestJoinWorks_OmittedFlagRetainsWorks verifies that an agent does not stop applying works because a flag was left out.
func TestJoinWorks_OmittedFlagRetainsWorks(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		want  string
	}{
		"everywhere": {[]string{"--works=admin"}, "the agent of this cluster applies works (--works=admin): set --works to the rights with which it continues, or end this by --works=none"},
		"in some":    {[]string{"--works=admin", "--works-namespaces=a,b"}, "applies works (--works=admin --works-namespaces=a,b)"},
		"by hand":    {nil, "applies works (with rights that kubectl hub did not grant)"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, config, args := newJoiningWorks(t)
			if _, _, err := clitest.Run(t, config, append(args, test.flags...)...); err != nil {
				t.Fatal(err)
			}
			if test.flags == nil {
				agentArgs(t, "--works")(cluster)
			}
			cluster.Asked = nil
			_, _, err := clitest.Run(t, config, args...)
			if err == nil {
				t.Fatal("it goes on")
			}
			clitest.Says(t, command.ErrorLine(err), test.want)
			cluster.WantUnchanged()
		})
	}
}

// TestJoinWorks_InvalidArguments verifies that errors are reported before anything is changed.
func TestJoinWorks_InvalidArguments(t *testing.T) {
	escalation := func(resource string) *apierrors.StatusError {
		return apierrors.NewForbidden(rbacv1.Resource(resource), "x", errors.New(`user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["pods"], Verbs:["*"]}`))
	}
	refuse := func(request string, err *apierrors.StatusError) func(*clitest.Server) {
		return func(s *clitest.Server) { s.Refuse(request, err) }
	}
	inTheWay := func(o *unstructured.Unstructured) func(*clitest.Server) {
		return func(s *clitest.Server) { s.PutRaw(o) }
	}
	theirs := func(kind, namespace, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind}}
		o.SetName(name)
		o.SetNamespace(namespace)
		return o
	}
	for name, test := range map[string]struct {
		flags  []string
		change func(*clitest.Server)
		want   []string
	}{
		"another role":        {[]string{"--works=edit"}, nil, []string{`--works must be none, admin or cluster-admin, not "edit"`}},
		"namespaces alone":    {[]string{"--works-namespaces=a"}, nil, []string{"--works-namespaces is for --works=admin and --works=cluster-admin"}},
		"namespaces of none":  {[]string{"--works=none", "--works-namespaces=a"}, nil, []string{"--works-namespaces is for"}},
		"an empty list":       {[]string{"--works=admin", "--works-namespaces="}, nil, []string{"--works-namespaces must name at least one namespace; omit the flag for all"}},
		"an empty name":       {[]string{"--works=admin", "--works-namespaces=a,,b"}, nil, []string{`"" is not the name of a namespace`}},
		"all by a star":       {[]string{"--works=admin", "--works-namespaces=*"}, nil, []string{`--works-namespaces: "*" is not the name of a namespace`}},
		"a path":              {[]string{"--works=admin", "--works-namespaces=../kube-system"}, nil, []string{`"../kube-system" is not the name of a namespace`}},
		"letters":             {[]string{"--works=admin", "--works-namespaces=A"}, nil, []string{`"A" is not the name of a namespace`}},
		"the agent's own":     {[]string{"--works=admin", "--works-namespaces=" + registration.AgentNamespace}, nil, []string{"it is the agent's own"}},
		"no such namespace":   {[]string{"--works=admin", "--works-namespaces=a,x,y"}, nil, []string{"--works-namespaces: the cluster does not have the namespaces x, y: create them first"}},
		"another's binding":   {[]string{"--works=admin"}, inTheWay(theirs("ClusterRoleBinding", "", deploy.WorksRights)), []string{"ClusterRoleBinding " + deploy.WorksRights + " already exists and was not created by kubectl hub"}},
		"a tenant's binding":  {[]string{"--works=admin", "--works-namespaces=a"}, inTheWay(theirs("RoleBinding", "a", deploy.WorksRights)), []string{"RoleBinding a/" + deploy.WorksRights + " already exists and was not created by kubectl hub"}},
		"another's role":      {[]string{"--works=admin"}, inTheWay(theirs("ClusterRole", "", "clusterhub:hub-agent-works-namespaces")), []string{"ClusterRole clusterhub:hub-agent-works-namespaces already exists"}},
		"more than it has":    {[]string{"--works=cluster-admin"}, refuse("POST "+rbacPath+"/clusterrolebindings", escalation("clusterrolebindings")), []string{"this user may not grant the agent the rights of ClusterRoleBinding " + deploy.WorksRights, "Have an admin of the cluster run kubectl hub join, or grant fewer rights by --works and --works-namespaces"}},
		"more in a namespace": {[]string{"--works=admin", "--works-namespaces=a"}, refuse("POST "+rbacPath+"/namespaces/a/rolebindings", escalation("rolebindings")), []string{"this user may not grant the agent the rights of RoleBinding a/" + deploy.WorksRights}},
		"not the agent's":     {[]string{"--works=admin"}, refuse("POST "+rbacPath+"/clusterroles", escalation("clusterroles")), []string{"the rights of ClusterRole clusterhub:hub-agent-works:"}},
		"no right to try":     {[]string{"--works=admin"}, refuse("POST "+rbacPath+"/clusterroles", clitest.Forbidden("clusterroles", "create")), []string{"checking by a dry run whether ClusterRole clusterhub:hub-agent-works can be created", "cannot create"}},
		"no right to look":    {[]string{"--works=admin"}, refuse("GET "+rbacPath+"/rolebindings", clitest.Forbidden("rolebindings", "list")), []string{"cannot list"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, config, args := newJoiningWorks(t)
			if test.change != nil {
				test.change(cluster)
			}
			before := cluster.Paths()
			stdout, _, err := clitest.Run(t, config, append(args, test.flags...)...)
			if err == nil || stdout != "" {
				t.Fatalf("it goes on: %v, %q", err, stdout)
			}
			clitest.Says(t, command.ErrorLine(err), test.want...)
			if strings.Contains(err.Error(), "APIGroups") {
				t.Errorf("it prints the rules: %v", err)
			}
			if after := cluster.Paths(); !slices.Equal(after, before) {
				t.Errorf("it has deployed something: %q", after)
			}
		})
	}
}

// TestJoinWorks_UsesServedKind verifies that no definition is created if the cluster serves the kind of the records already, and that a
// definition of another owner is used without change.
func TestJoinWorks_UsesServedKind(t *testing.T) {
	service := func(backend string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"`+join.WorksServiceName+`"},"spec":{`+backend+`}}`), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	crd.SetName(clitest.NameOf(worksCRDPath))
	for name, test := range map[string]struct {
		there *unstructured.Unstructured
		made  bool
	}{
		"a hub":                {there: service(`"service":{"name":"hub-apiserver","namespace":"clusterhub-system"}`)},
		"a definition is made": {there: service(``), made: true},
		"another's":            {there: crd},
	} {
		cluster, config, args := newJoiningWorks(t)
		cluster.PutRaw(test.there)
		if _, _, err := clitest.Run(t, config, append(args, "--works=admin")...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		have := cluster.Get(worksCRDPath)
		if made := have != nil && kit.Owner.Owns(have); made != test.made || cluster.Get(worksRightsPath) == nil {
			t.Errorf("%s: a definition was made: %t; there are %q", name, made, cluster.Paths())
		}
		if _, _, err := clitest.Run(t, config, "unjoin", "--cluster-name", "c1"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if left := cluster.Get(worksCRDPath); (left != nil) != (test.there == crd) {
			t.Errorf("%s: unjoin leaves %v", name, left)
		}
	}
	cluster, config, args := newJoiningWorks(t)
	cluster.Refuse("GET /apis/apiregistration.k8s.io/v1/apiservices/"+join.WorksServiceName, clitest.Forbidden("apiservices", "get"))
	if _, _, err := clitest.Run(t, config, append(args, "--works=admin")...); err == nil || !strings.Contains(err.Error(), "cannot get") {
		t.Errorf("without knowing whether it is a hub: %v", err)
	}
}

func TestJoinWorks_PrintsManifests(t *testing.T) {
	_, config, args := newJoiningWorks(t)
	clitest.Says(t, clitest.MustRun(t, config, append(args, "-o", "yaml", "--works=admin")...), "kind: CustomResourceDefinition\n", "name: "+deploy.WorksRights+"\n", "- --works\n", "  name: admin\n")
	got := clitest.MustRun(t, config, append(args, "-o", "yaml", "--works=cluster-admin", "--works-namespaces=a,not-there-yet")...)
	clitest.Says(t, got, "namespace: not-there-yet\n", "  name: cluster-admin\n")
	if strings.Contains(got, "hub-agent-works-namespaces") {
		t.Error("works can have namespaces")
	}
}

// TestJoinWorks_ChecksByDryRun verifies that the dry runs that check permissions create nothing.
func TestJoinWorks_ChecksByDryRun(t *testing.T) {
	cluster, config, args := newJoiningWorks(t)
	tried := 0
	for _, path := range []string{"/clusterroles", "/clusterrolebindings", "/namespaces/a/rolebindings"} {
		cluster.On["POST "+rbacPath+path] = func(http.ResponseWriter, []byte) bool { tried++; return false }
	}
	if _, _, err := clitest.Run(t, config, append(args, "--works=admin", "--works-namespaces=a")...); err != nil {
		t.Fatal(err)
	}
	for _, request := range cluster.Asked {
		if strings.HasPrefix(request, "POST ") && !strings.Contains(request, "dryRun=All") {
			t.Errorf("it asked for %s", request)
		}
	}
	if tried != 2 {
		t.Errorf("it tried %d rights", tried)
	}
}
