// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	leasePath  = "/apis/coordination.k8s.io/v1/namespaces/c1/leases/managed-cluster-lease"
	reviewPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	selfPath   = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	whoamiPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// newWell returns a hub with a cluster that has no problems.
func newWell(t *testing.T) (*clitest.Server, *clusterv1.ManagedCluster, string) {
	t.Helper()
	c1 := clitest.NewCluster("c1", nil)
	c1.Spec.HubAcceptsClient = true
	for _, name := range []string{registration.ConditionHubAccepted, registration.ConditionJoined, registration.ConditionAvailable} {
		c1.Status.Conditions = append(c1.Status.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue})
	}
	s := clitest.NewServer(t, c1)
	lease := &coordinationv1.Lease{}
	lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now()))
	s.Answer("GET "+leasePath, lease)
	return s, c1, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
}

// codeOf returns the exit code of a command.
func codeOf(err error) int {
	var end *command.Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &end):
		return end.Code
	}
	return 1
}

func TestWhyCluster_ExitCodes(t *testing.T) {
	s, c1, config := newWell(t)
	out, _, err := clitest.Run(t, config, "why", "cluster", "c1")
	if codeOf(err) != 0 {
		t.Errorf("a cluster that is well: %v: %s", err, out)
	}
	clitest.Says(t, out, "Cluster c1 works with the hub.", "agent heard  passed")

	c1.Spec.HubAcceptsClient = false
	c1.Status.Conditions[1].Message = "x\x1b[2J"
	s.Put(c1)
	for _, format := range []string{"json", "yaml", "text"} {
		out, _, err = clitest.Run(t, config, "why", "cluster", "c1", "--context", "hub", "-o", format)
		if codeOf(err) != 2 {
			t.Errorf("a cluster that is not accepted: %v: %s", err, out)
		}
		answer := diagnosis.Answer{}
		switch format {
		case "json":
			err = json.Unmarshal([]byte(out), &answer)
		case "yaml":
			err = yaml.Unmarshal([]byte(out), &answer)
		default:
			clitest.Says(t, out, "accepted     BROKEN", "Next:         kubectl hub --kubeconfig=", " --context=hub accept --clusters c1\n", "docs/findings.md#clusternotaccepted")
			continue
		}
		if err != nil || answer.Finding == nil || answer.Finding.ID != diagnosis.ClusterNotAccepted || answer.Steps[2].State != diagnosis.Broken {
			t.Errorf("%s is read as %+v: %v", format, answer, err)
		}
	}

	c1.Spec.HubAcceptsClient = true
	c1.Status.Conditions[2] = metav1.Condition{Type: registration.ConditionAvailable, Status: metav1.ConditionFalse, Message: "x\x1b[2J"}
	s.Put(c1)
	if out, _, err := clitest.Run(t, config, "why", "cluster", "c1"); codeOf(err) != 2 || strings.Contains(out, "\x1b") {
		t.Errorf("a message that moves the cursor: %v: %q", err, out)
	}
}

// TestWhyCluster_Forbidden verifies that the output names what the user may not see, and that the command does not succeed.
func TestWhyCluster_Forbidden(t *testing.T) {
	s, _, config := newWell(t)
	s.Refuse("GET "+leasePath, clitest.Forbidden("leases", "get"))
	s.Refuse("GET /apis/certificates.k8s.io/v1/certificatesigningrequests", clitest.Forbidden("certificatesigningrequests", "list"))
	out, _, err := clitest.Run(t, config, "why", "cluster", "c1")
	if codeOf(err) != 1 {
		t.Errorf("%v: %s", err, out)
	}
	clitest.Says(t, out, "agent heard  NOT SEEN", "Not seen:", "you may not get leases in the namespace c1")

	const view = "/apis/clusterview.open-cluster-management.io/v1/managedclusters/c1"
	s.Refuse("GET /apis/cluster.open-cluster-management.io/v1/managedclusters/c1", clitest.Forbidden("managedclusters", "get"))
	s.Refuse("GET "+view, apierrors.NewNotFound(schema.GroupResource{Resource: "managedclusters"}, "c1"))
	out, _, err = clitest.Run(t, config, "why", "cluster", "c1")
	if codeOf(err) != 1 || strings.Contains(out, "is not on the hub") {
		t.Errorf("a cluster that is hidden: %v: %s", err, out)
	}
	s.Refuse("GET /apis/cluster.open-cluster-management.io/v1/managedclusters/c1", apierrors.NewInternalError(errors.New("etcd")))
	out, _, err = clitest.Run(t, config, "why", "cluster", "c1")
	if codeOf(err) != 1 || out != "" {
		t.Errorf("an error of the server: %v: %s", err, out)
	}
}

func TestWhyCluster_WithoutHubAPI(t *testing.T) {
	s, _, config := newWell(t)
	s.Refuse("GET /apis/cluster.open-cluster-management.io/v1", apierrors.NewServiceUnavailable("no endpoints"))
	for _, service := range []any{nil, map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "x"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "x509", "lastTransitionTime": "2026-01-02T03:04:05Z"}}}}} {
		want := []string{"cannot be checked", "returned 503"}
		if service != nil {
			s.Answer("GET /apis/apiregistration.k8s.io/v1/apiservices/v1.cluster.open-cluster-management.io", service)
			want = []string{"FailedDiscoveryCheck: x509", "2026-01-02T03:04:05Z"}
		}
		for _, of := range [][]string{{"why", "cluster", "c1"}, {"why", "work", "web"}} {
			out, _, err := clitest.Run(t, config, of...)
			if codeOf(err) != 2 {
				t.Errorf("%q: %v: %s", of, err, out)
			}
			clitest.Says(t, out, want...)
		}
	}
}

func TestWhyAccess_ReviewsAndReadsRules(t *testing.T) {
	s, _, config := newWell(t)
	rule := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"managedclustersets"}, Verbs: []string{"get"}}
	s.Put(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{rule}})
	s.Put(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "team"}}})
	s.Put(clitest.NewSet("payments"))
	s.Answer("POST "+whoamiPath, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "ann", Groups: []string{"team"}}}})
	review := func(path string, who func(authorizationv1.SubjectAccessReview) bool) {
		s.On["POST "+path] = func(w http.ResponseWriter, body []byte) bool {
			asked := authorizationv1.SubjectAccessReview{}
			object, err := clitest.Decode(body) // it is encoded as protobuf
			if err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, &asked)
			}
			if err != nil {
				t.Error(err)
			}
			asked.Status.Allowed = who(asked)
			clitest.WriteJSON(w, http.StatusCreated, asked)
			return true
		}
	}
	review(reviewPath, func(r authorizationv1.SubjectAccessReview) bool {
		return strings.Contains(strings.Join(r.Spec.Groups, " "), "team")
	})
	review(selfPath, func(authorizationv1.SubjectAccessReview) bool { return true })
	for name, test := range map[string]struct {
		args string
		code int
		want []string
	}{
		"a group":                {"dana get payments --group team", 0, []string{"by ClusterRoleBinding b of ClusterRole r to group team"}},
		"without it":             {"dana get set/payments", 2, []string{"dana may not get the set payments", " grant payments --role viewer --user dana\n"}},
		"for oneself":            {"ann get payments", 0, []string{"to group team"}},
		"neither of both":        {"dana get nothing", 1, nil},
		"no such kind":           {"dana get node/x", 1, nil},
		"no such verb":           {"dana eat payments", 1, nil},
		"a cluster, by its name": {"dana accept c1", 2, []string{"update managedclusters/accept c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := clitest.Run(t, config, append([]string{"why", "access"}, strings.Fields(test.args)...)...)
			if codeOf(err) != test.code {
				t.Errorf("%v: %s", err, out)
			}
			clitest.Says(t, out, test.want...)
		})
	}
	s.Refuse("POST "+reviewPath, clitest.Forbidden("subjectaccessreviews", "create"))
	s.Refuse("GET /apis/rbac.authorization.k8s.io/v1/clusterroles", clitest.Forbidden("clusterroles", "list"))
	out, _, err := clitest.Run(t, config, "why", "access", "dana", "get", "payments", "--group", "team")
	if codeOf(err) != 1 {
		t.Errorf("a user who may ask and read nothing: %v: %s", err, out)
	}
	clitest.Says(t, out, "you may not list clusterroles", "you may not create subjectaccessreviews")
}

func TestWhyPlacement_PrintsExplanation(t *testing.T) {
	s, config := clitest.NewExplained(t, clitest.Explained(clitest.Fell("a", "NumberOfClusters", "2 are wanted")))
	out, _, err := clitest.Run(t, config, "why", "placement", "web", "-n", "dev", "--cluster", "a")
	if codeOf(err) != 2 {
		t.Errorf("%v: %s", err, out)
	}
	clitest.Says(t, out, "Number        BROKEN", `numberOfClusters":3`)
	s.Refuse("GET "+clitest.ExplainPath, clitest.Forbidden("placements/explain", "get"))
	out, _, err = clitest.Run(t, config, "why", "placement", "web", "-n", "dev", "--cluster", "a")
	if codeOf(err) != 1 {
		t.Errorf("%v: %s", err, out)
	}
	clitest.Says(t, out, "you may not get placements/explain")
}

func TestWhyWork_DefaultsToOnlyCluster(t *testing.T) {
	s, _, config := newWell(t)
	if _, _, err := clitest.Run(t, config, "why", "work", "web"); err == nil || !strings.Contains(err.Error(), "there is no work web") {
		t.Errorf("no such work: %v", err)
	}
	s.Put(&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web"}})
	out, _, err := clitest.Run(t, config, "why", "work", "web")
	if codeOf(err) != 2 {
		t.Errorf("%v: %s", err, out)
	}
	clitest.Says(t, out, "Work web on cluster c1 is not done", "cluster         passed    Cluster c1 works with the hub", "taken by agent  BROKEN")
	s.Put(&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c2", Name: "web"}})
	if _, _, err := clitest.Run(t, config, "why", "work", "web"); err == nil || !strings.Contains(err.Error(), "2 clusters have a work web: choose one by --cluster: c1, c2") {
		t.Errorf("two of them: %v", err)
	}
}

func TestWhy_CompletesNames(t *testing.T) {
	s, _, config := newWell(t)
	s.Put(clitest.NewSet("payments"))
	for typed, want := range map[string]string{
		"why cluster c": "c1", "why member c": "c1", "why member c1 --set p": "payments", "why access dana a": "accept", "why access dana get cluster/": "cluster/c1",
		"why access dana get set/": "set/payments", "why placement web --cluster c": "c1", "why work web --cluster c": "c1",
	} {
		out, _, err := clitest.Run(t, config, append([]string{cobra.ShellCompRequestCmd}, strings.Fields(typed)...)...)
		if lines := strings.Split(out, "\n"); err != nil || lines[0] != want {
			t.Errorf("%q is completed to %q: %v", typed, out, err)
		}
	}
}

// TestWhyAccessRequest_ReadsReferencedObjects verifies that the objects that a request refers to are read, too, as far as the user may.
func TestWhyAccessRequest_ReadsReferencedObjects(t *testing.T) {
	s, _, config := newWell(t)
	const namespace = "/apis/clusters.openmcp.cloud/v1alpha1/namespaces/teams/"
	r := &openmcpv1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "ann"}}
	r.Spec.RequestRef = &openmcpv1alpha1.ObjectReference{Namespace: "teams", Name: "shop"}
	s.Answer("GET "+namespace+"accessrequests/ann", r)
	s.Answer("GET "+namespace+"clusterrequests/shop", &openmcpv1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "shop"}})
	s.Refuse("GET "+namespace+"clusters/blue", clitest.Forbidden("clusters", "get"))
	s.Refuse("GET "+namespace+"accessrequests/bob", clitest.Forbidden("accessrequests", "get"))
	out, _, err := clitest.Run(t, config, "why", "accessrequest", "ann", "-n", "teams")
	if codeOf(err) != 2 {
		t.Errorf("a request that waits: %v: %s", err, out)
	}
	clitest.Says(t, out, "AccessRequest teams/ann waits for the scheduler of hub-controller-manager.", "ClusterRequest  BROKEN", "docs/findings.md#clusterrequestwaits")

	r.Spec.ClusterRef, r.Status.Phase = &openmcpv1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}, openmcpv1alpha1.REQUEST_GRANTED
	r.Labels = map[string]string{openmcpv1alpha1.ProviderLabel: "kind", openmcpv1alpha1.ProfileLabel: "x"}
	out, _, err = clitest.Run(t, config, "why", "accessrequest", "ann", "-n", "teams")
	if codeOf(err) != 0 {
		t.Errorf("a request that is granted: %v: %s", err, out)
	}
	clitest.Says(t, out, "gives access", "Not seen:", "you may not get clusters in the namespace teams")
	out, _, err = clitest.Run(t, config, "why", "accessrequest", "bob", "-n", "teams")
	if codeOf(err) != 1 {
		t.Errorf("a request that is hidden: %v: %s", err, out)
	}
}
