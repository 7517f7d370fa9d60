// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command"
)

const (
	accessRequests = "/apis/clusters.openmcp.cloud/v1alpha1/namespaces/teams/accessrequests"
	// annsBlue is the name of ann's request for the cluster blue. It contains a hash of both.
	annsBlue     = "blue-f8fd451f26"
	accessToken  = "the-clusters-token"
	clusterToken = `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "x", "user": "u"}}],
		"users": [{"name": "u", "user": {"token": "` + accessToken + `"}}],
		"clusters": [{"name": "x", "cluster": {"server": "https://blue.example.com"}}]}`
)

// newAccess returns a hub that knows the user as ann. It grants a request after it was read the given number of times.
func newAccess(t *testing.T, looks int) (*fakeServer, string) {
	t.Helper()
	s := newServer(t)
	s.answer(whoAmI, authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
		Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "ann"}}})
	s.answer("POST "+accessRequests+"/"+annsBlue+"/token", v1alpha1.AccessToken{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "AccessToken"},
		Status:   v1alpha1.AccessTokenStatus{Token: accessToken, ExpirationTimestamp: metav1.NewTime(expiry), Kubeconfig: clusterToken}})
	s.on["GET "+accessRequests+"/"+annsBlue] = func(http.ResponseWriter, []byte) bool {
		if r := s.get(accessRequests + "/" + annsBlue); r != nil {
			looks--
			if looks <= 0 {
				r.Object["status"] = map[string]any{"phase": v1alpha1.REQUEST_GRANTED, "observedGeneration": int64(0)}
				s.putRaw(r)
			}
		}
		return false
	}
	return s, kubeconfig(t, map[string]*fakeServer{"hub": s})
}

func (s *fakeServer) accessRequest() *v1alpha1.AccessRequest {
	s.t.Helper()
	r := &v1alpha1.AccessRequest{}
	s.as(accessRequests+"/"+annsBlue, r)
	return r
}

func TestAccess_CreatesRequestAndContext(t *testing.T) {
	s, file := newAccess(t, 3)
	stdout, stderr, err := run(t, file, "access", "blue", "-n", "teams", "--cluster-role", "view", "--role", "web/deployer", "--ttl", "8h")
	if err != nil || stderr != "accessrequest/"+annsBlue+" created\n" ||
		stdout != file+" has the context teams--blue for cluster teams/blue: kubectl --context teams--blue ...\n" {
		t.Fatalf("%v: %q, %q", err, stdout, stderr)
	}
	spec := s.accessRequest().Spec
	want := []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}, {Kind: "Role", Namespace: "web", Name: "deployer"}}
	if *spec.ClusterRef != (v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}) || spec.TTL.Duration != 8*time.Hour || !slices.Equal(spec.Token.RoleRefs, want) {
		t.Errorf("it asks for %+v", spec)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	user, entry := config.AuthInfos["teams--blue"], config.Contexts["teams--blue"]
	if config.CurrentContext != "hub" || entry.Cluster != "teams--blue" || entry.AuthInfo != "teams--blue" || user.Token != "" ||
		config.Clusters["teams--blue"].Server != "https://blue.example.com" {
		t.Errorf("the kubeconfig has %+v, %+v", entry, user)
	}
	if args := []string{"access-token", "--request=teams/" + annsBlue, "--kubeconfig=" + file, "--context=hub"}; !slices.Equal(user.Exec.Args, args) {
		t.Errorf("kubectl is to run %q", user.Exec.Args)
	}
}

func TestAccess_UpdatesExistingRequest(t *testing.T) {
	for name, test := range map[string]struct {
		args  string
		says  string
		roles []string
		ttl   time.Duration
	}{
		"the same":    {"--cluster-role view", "", []string{"view"}, time.Hour},
		"nothing new": {"", "", []string{"view"}, time.Hour},
		"other roles": {"--cluster-role edit,admin", "accessrequest/" + annsBlue + " configured\n", []string{"edit", "admin"}, time.Hour},
		"longer":      {"--ttl 2h", "accessrequest/" + annsBlue + " configured\n", []string{"view"}, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s, file := newAccess(t, 1)
			if _, _, err := run(t, file, "access", "blue", "-n", "teams", "--cluster-role", "view", "--ttl", "1h"); err != nil {
				t.Fatal(err)
			}
			// The user sets a namespace in the context, which must stay.
			config, err := clientcmd.LoadFromFile(file)
			if err != nil {
				t.Fatal(err)
			}
			config.Contexts["teams--blue"].Namespace = "web"
			if err := clientcmd.WriteToFile(*config, file); err != nil {
				t.Fatal(err)
			}
			_, stderr, err := run(t, file, append([]string{"access", "teams/blue", "-n", "teams"}, strings.Fields(test.args)...)...)
			if err != nil || stderr != test.says {
				t.Errorf("%v: %q", err, stderr)
			}
			spec := s.accessRequest().Spec
			if got := len(spec.Token.RoleRefs); got != len(test.roles) || spec.Token.RoleRefs[0].Name != test.roles[0] || spec.TTL.Duration != test.ttl {
				t.Errorf("it asks for %+v, %s", spec.Token, spec.TTL.Duration)
			}
			config, err = clientcmd.LoadFromFile(file)
			if err != nil || config.Contexts["teams--blue"].Namespace != "web" {
				t.Errorf("the namespace is lost: %v", err)
			}
		})
	}
}

func TestAccess_PrintsKubeconfig(t *testing.T) {
	_, file := newAccess(t, 1)
	stdout, _, err := run(t, file, "access", "blue", "-n", "teams", "--cluster-role", "view", "-o", "kubeconfig", "--as", "bob", "--as-group", "devs")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(stdout))
	if err != nil || config.CurrentContext != "teams--blue" || !slices.Contains(config.AuthInfos["teams--blue"].Exec.Args, "--as=bob") ||
		!slices.Contains(config.AuthInfos["teams--blue"].Exec.Args, "--as-group=devs") || strings.Contains(stdout, accessToken) {
		t.Errorf("%v: %s", err, stdout)
	}
	if own, err := clientcmd.LoadFromFile(file); err != nil || own.Contexts["teams--blue"] != nil {
		t.Errorf("the user's kubeconfig has changed: %v", err)
	}
}

func TestAccess_Revoke(t *testing.T) {
	s, file := newAccess(t, 1)
	if _, _, err := run(t, file, "access", "blue", "-n", "teams", "--cluster-role", "view"); err != nil {
		t.Fatal(err)
	}
	// The request is gone when the provider has revoked the access.
	looks := 0
	delete(s.on, "GET "+accessRequests+"/"+annsBlue)
	s.on["DELETE "+accessRequests+"/"+annsBlue] = func(w http.ResponseWriter, _ []byte) bool {
		s.on["GET "+accessRequests+"/"+annsBlue] = func(http.ResponseWriter, []byte) bool {
			looks++
			if looks == 3 {
				s.mu.Lock()
				delete(s.objects, accessRequests+"/"+annsBlue)
				s.mu.Unlock()
			}
			return false
		}
		writeJSON(w, http.StatusOK, s.get(accessRequests+"/"+annsBlue))
		return true
	}
	if got := mustRun(t, file, "access", "blue", "-n", "teams", "--revoke"); got != "accessrequest \""+annsBlue+"\" deleted: access to cluster teams/blue revoked\n" || looks != 3 {
		t.Errorf("it prints %q after %d looks", got, looks)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil || config.Contexts["teams--blue"] != nil || config.AuthInfos["teams--blue"] != nil || config.Clusters["teams--blue"] != nil || config.Contexts["hub"] == nil {
		t.Errorf("%v: the kubeconfig has %v", err, config.Contexts)
	}
	delete(s.on, "DELETE "+accessRequests+"/"+annsBlue)
	if got := mustRun(t, file, "access", "blue", "-n", "teams", "--revoke"); got != "accessrequest \""+annsBlue+"\" not found\n" {
		t.Errorf("again: %q", got)
	}
}

func TestAccess_Errors(t *testing.T) {
	const token = "POST " + accessRequests + "/" + annsBlue + "/token"
	request := func(change func(*v1alpha1.AccessRequest)) func(*fakeServer, string) {
		return func(s *fakeServer, _ string) {
			r := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: annsBlue},
				Spec: v1alpha1.AccessRequestSpec{Token: &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}}}}}
			change(r)
			s.put(r)
			delete(s.on, "GET "+accessRequests+"/"+annsBlue)
		}
	}
	waits := func(r *v1alpha1.AccessRequest) {
		r.Status.Conditions = []metav1.Condition{{Type: "Prepared", Status: metav1.ConditionFalse, Message: "a\x1b[1A\x1b[2Kb\u202ec"},
			{Type: "AccessReady", Status: metav1.ConditionUnknown, Reason: "Busy"}, {Type: "Fine", Status: metav1.ConditionTrue, Message: "no"}}
	}
	for name, test := range map[string]struct {
		change func(*fakeServer, string)
		args   string
		want   string
	}{
		"no rights":       {nil, "", "--cluster-role or --role must be set to the rights that you need, such as --cluster-role view"},
		"no right to ask": {func(s *fakeServer, _ string) { s.refuse("POST "+accessRequests, forbidden("accessrequests", "create")) }, "--cluster-role view", "cannot create"},
		"not looked at":   {request(func(*v1alpha1.AccessRequest) {}), "--cluster-role view", "waiting for AccessRequest teams/" + annsBlue + ": interrupted: no controller has handled it yet"},
		// A user who can write the status of a request must not be able to move the cursor of the requester.
		"it waits": {request(waits), "--cluster-role view", `interrupted: a\x1b[1A\x1b[2Kb\u202ec; Busy`},
		"it is denied": {request(func(r *v1alpha1.AccessRequest) { waits(r); r.Status.Phase = v1alpha1.REQUEST_DENIED }), "--cluster-role view",
			`AccessRequest teams/` + annsBlue + ` is denied: a\x1b[1A\x1b[2Kb\u202ec; Busy (this is final: delete it before you request access again)`},
		"of an older generation": {request(func(r *v1alpha1.AccessRequest) { r.Generation, r.Status.Phase = 2, v1alpha1.REQUEST_GRANTED }), "--cluster-role view", "interrupted"},
		"it is being deleted":    {request(func(r *v1alpha1.AccessRequest) { r.DeletionTimestamp = &metav1.Time{Time: expiry} }), "--cluster-role view", "is still being deleted: try again when it is gone"},
		"no token":               {func(s *fakeServer, _ string) { s.refuse(token, forbidden("accessrequests/token", "create")) }, "--cluster-role view", "cannot create"},
		"a token without a kubeconfig": {func(s *fakeServer, _ string) { s.answer(token, v1alpha1.AccessToken{}) }, "--cluster-role view",
			"the hub returned no kubeconfig for AccessRequest teams/" + annsBlue},
		"another's context": {func(_ *fakeServer, file string) { addContext(t, file) }, "--cluster-role view",
			"the kubeconfig has a context, cluster or user teams--blue that kubectl hub did not create: rename it, or use another --kubeconfig"},
		"revoke, and no right": {func(s *fakeServer, _ string) {
			s.refuse("DELETE "+accessRequests+"/"+annsBlue, forbidden("accessrequests", "delete"))
		}, "--revoke", "cannot delete"},
		"revoke that lasts": {func(s *fakeServer, file string) {
			request(waits)(s, file)
			s.answer("DELETE "+accessRequests+"/"+annsBlue, s.get(accessRequests+"/"+annsBlue))
		}, "--revoke", `to go: interrupted: a\x1b[1A`},
	} {
		t.Run(name, func(t *testing.T) {
			s, file := newAccess(t, 1)
			if test.change != nil {
				test.change(s, file)
			}
			ctx := s.interruptedAt("GET "+accessRequests+"/"+annsBlue, 4)
			stdout, stderr, err := runIn(ctx, t, file, append([]string{"access", "blue", "-n", "teams"}, strings.Fields(test.args)...)...)
			if err == nil || stdout != "" || strings.Contains(stderr, "\x1b") {
				t.Fatalf("it goes on: %v, %q, %q", err, stdout, stderr)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %q, without %q", err, test.want)
			}
		})
	}
}

// addContext adds a context with the name that access would use, created by another program.
func addContext(t *testing.T, file string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["teams--blue"], config.Clusters["teams--blue"] = config.Contexts["hub"], config.Clusters["hub"]
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
}

// TestAccessToken: kubectl runs access-token, which prints an ExecCredential for client-go.
func TestAccessToken(t *testing.T) {
	s, file := newAccess(t, 1)
	const token = "POST " + accessRequests + "/" + annsBlue + "/token"
	stdout := mustRun(t, file, "access-token", "--request", "teams/"+annsBlue, "--lifetime", "30m")
	var credential clientauthenticationv1.ExecCredential
	if err := json.Unmarshal([]byte(stdout), &credential); err != nil || credential.Kind != "ExecCredential" || credential.Status.Token != accessToken ||
		!credential.Status.ExpirationTimestamp.Equal(&metav1.Time{Time: expiry}) {
		t.Errorf("%v: %s", err, stdout)
	}
	says(t, s.bodies[token], `"expirationSeconds":1800`)
	s.wantAsked(token)
	for want, err := range map[string]*apierrors.StatusError{
		"AccessRequest teams/" + annsBlue + " does not exist any more: it has expired or was deleted. Request access again with kubectl hub access": apierrors.NewNotFound(schema.GroupResource{}, annsBlue),
		"does not accept the credentials (401): check --context and --kubeconfig":                                                                   apierrors.NewUnauthorized("no"),
		"it has changed since it was granted": apierrors.NewConflict(schema.GroupResource{}, annsBlue, errChanged),
	} {
		s.refuse(token, err)
		stdout, stderr, got := run(t, file, "access-token", "--request", "teams/"+annsBlue)
		if got == nil || stdout+stderr != "" {
			t.Fatalf("%s: it goes on: %q, %q", want, stdout, stderr)
		}
		says(t, command.ErrorLine(got), want)
	}
}

var errChanged = errors.New("it has changed since it was granted")
