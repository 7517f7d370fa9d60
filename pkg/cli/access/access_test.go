// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

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
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/command"
)

// newAccess returns a hub that knows the user as ann. It grants a request after it was read the given number of times.
func newAccess(t *testing.T, looks int) (*clitest.Server, string) {
	t.Helper()
	s := clitest.NewServer(t)
	s.Answer(clitest.WhoAmI, authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
		Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "ann"}}})
	s.Answer("POST "+clitest.AccessRequests+"/"+clitest.AnnsBlue+"/token", v1alpha1.AccessToken{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "AccessToken"},
		Status:   v1alpha1.AccessTokenStatus{Token: clitest.AccessToken, ExpirationTimestamp: metav1.NewTime(clitest.Expiry), Kubeconfig: clitest.ClusterToken}})
	s.On["GET "+clitest.AccessRequests+"/"+clitest.AnnsBlue] = func(http.ResponseWriter, []byte) bool {
		if r := s.Get(clitest.AccessRequests + "/" + clitest.AnnsBlue); r != nil {
			looks--
			if looks <= 0 {
				r.Object["status"] = map[string]any{"phase": v1alpha1.REQUEST_GRANTED, "observedGeneration": int64(0)}
				s.PutRaw(r)
			}
		}
		return false
	}
	return s, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
}

func TestAccess_CreatesRequestAndContext(t *testing.T) {
	s, file := newAccess(t, 3)
	stdout, stderr, err := clitest.Run(t, file, "access", "blue", "-n", "teams", "--cluster-role", "view", "--role", "web/deployer", "--ttl", "8h")
	if err != nil || stderr != "accessrequest/"+clitest.AnnsBlue+" created\n" ||
		stdout != file+" has the context teams--blue for cluster teams/blue: kubectl --context teams--blue ...\n" {
		t.Fatalf("%v: %q, %q", err, stdout, stderr)
	}
	spec := s.AccessRequest().Spec
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
	if args := []string{"access-token", "--request=teams/" + clitest.AnnsBlue, "--kubeconfig=" + file, "--context=hub"}; !slices.Equal(user.Exec.Args, args) {
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
		"other roles": {"--cluster-role edit,admin", "accessrequest/" + clitest.AnnsBlue + " configured\n", []string{"edit", "admin"}, time.Hour},
		"longer":      {"--ttl 2h", "accessrequest/" + clitest.AnnsBlue + " configured\n", []string{"view"}, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s, file := newAccess(t, 1)
			if _, _, err := clitest.Run(t, file, "access", "blue", "-n", "teams", "--cluster-role", "view", "--ttl", "1h"); err != nil {
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
			_, stderr, err := clitest.Run(t, file, append([]string{"access", "teams/blue", "-n", "teams"}, strings.Fields(test.args)...)...)
			if err != nil || stderr != test.says {
				t.Errorf("%v: %q", err, stderr)
			}
			spec := s.AccessRequest().Spec
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
	stdout, _, err := clitest.Run(t, file, "access", "blue", "-n", "teams", "--cluster-role", "view", "-o", "kubeconfig", "--as", "bob", "--as-group", "devs")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(stdout))
	if err != nil || config.CurrentContext != "teams--blue" || !slices.Contains(config.AuthInfos["teams--blue"].Exec.Args, "--as=bob") ||
		!slices.Contains(config.AuthInfos["teams--blue"].Exec.Args, "--as-group=devs") || strings.Contains(stdout, clitest.AccessToken) {
		t.Errorf("%v: %s", err, stdout)
	}
	if own, err := clientcmd.LoadFromFile(file); err != nil || own.Contexts["teams--blue"] != nil {
		t.Errorf("the user's kubeconfig has changed: %v", err)
	}
}

func TestAccess_Revoke(t *testing.T) {
	s, file := newAccess(t, 1)
	if _, _, err := clitest.Run(t, file, "access", "blue", "-n", "teams", "--cluster-role", "view"); err != nil {
		t.Fatal(err)
	}
	// The request is gone when the provider has revoked the access.
	looks := 0
	delete(s.On, "GET "+clitest.AccessRequests+"/"+clitest.AnnsBlue)
	s.On["DELETE "+clitest.AccessRequests+"/"+clitest.AnnsBlue] = func(w http.ResponseWriter, _ []byte) bool {
		s.On["GET "+clitest.AccessRequests+"/"+clitest.AnnsBlue] = func(http.ResponseWriter, []byte) bool {
			looks++
			if looks == 3 {
				s.Mu.Lock()
				delete(s.Objects, clitest.AccessRequests+"/"+clitest.AnnsBlue)
				s.Mu.Unlock()
			}
			return false
		}
		clitest.WriteJSON(w, http.StatusOK, s.Get(clitest.AccessRequests+"/"+clitest.AnnsBlue))
		return true
	}
	if got := clitest.MustRun(t, file, "access", "blue", "-n", "teams", "--revoke"); got != "accessrequest \""+clitest.AnnsBlue+"\" deleted: access to cluster teams/blue revoked\n" || looks != 3 {
		t.Errorf("it prints %q after %d looks", got, looks)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil || config.Contexts["teams--blue"] != nil || config.AuthInfos["teams--blue"] != nil || config.Clusters["teams--blue"] != nil || config.Contexts["hub"] == nil {
		t.Errorf("%v: the kubeconfig has %v", err, config.Contexts)
	}
	delete(s.On, "DELETE "+clitest.AccessRequests+"/"+clitest.AnnsBlue)
	if got := clitest.MustRun(t, file, "access", "blue", "-n", "teams", "--revoke"); got != "accessrequest \""+clitest.AnnsBlue+"\" not found\n" {
		t.Errorf("again: %q", got)
	}
}

func TestAccess_Errors(t *testing.T) {
	const token = "POST " + clitest.AccessRequests + "/" + clitest.AnnsBlue + "/token"
	request := func(change func(*v1alpha1.AccessRequest)) func(*clitest.Server, string) {
		return func(s *clitest.Server, _ string) {
			r := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: clitest.AnnsBlue},
				Spec: v1alpha1.AccessRequestSpec{Token: &v1alpha1.TokenConfig{RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}}}}}
			change(r)
			s.Put(r)
			delete(s.On, "GET "+clitest.AccessRequests+"/"+clitest.AnnsBlue)
		}
	}
	waits := func(r *v1alpha1.AccessRequest) {
		r.Status.Conditions = []metav1.Condition{{Type: "Prepared", Status: metav1.ConditionFalse, Message: "a\x1b[1A\x1b[2Kb\u202ec"},
			{Type: "AccessReady", Status: metav1.ConditionUnknown, Reason: "Busy"}, {Type: "Fine", Status: metav1.ConditionTrue, Message: "no"}}
	}
	for name, test := range map[string]struct {
		change func(*clitest.Server, string)
		args   string
		want   string
	}{
		"no rights": {nil, "", "--cluster-role or --role must be set to the rights that you need, such as --cluster-role view"},
		"no right to ask": {func(s *clitest.Server, _ string) {
			s.Refuse("POST "+clitest.AccessRequests, clitest.Forbidden("accessrequests", "create"))
		}, "--cluster-role view", "cannot create"},
		"not looked at": {request(func(*v1alpha1.AccessRequest) {}), "--cluster-role view", "waiting for AccessRequest teams/" + clitest.AnnsBlue + ": interrupted: no controller has handled it yet"},
		// A user who can write the status of a request must not be able to move the cursor of the requester.
		"it waits": {request(waits), "--cluster-role view", `interrupted: a\x1b[1A\x1b[2Kb\u202ec; Busy`},
		"it is denied": {request(func(r *v1alpha1.AccessRequest) { waits(r); r.Status.Phase = v1alpha1.REQUEST_DENIED }), "--cluster-role view",
			`AccessRequest teams/` + clitest.AnnsBlue + ` is denied: a\x1b[1A\x1b[2Kb\u202ec; Busy (this is final: delete it before you request access again)`},
		"of an older generation": {request(func(r *v1alpha1.AccessRequest) { r.Generation, r.Status.Phase = 2, v1alpha1.REQUEST_GRANTED }), "--cluster-role view", "interrupted"},
		"it is being deleted":    {request(func(r *v1alpha1.AccessRequest) { r.DeletionTimestamp = &metav1.Time{Time: clitest.Expiry} }), "--cluster-role view", "is still being deleted: try again when it is gone"},
		"no token": {func(s *clitest.Server, _ string) {
			s.Refuse(token, clitest.Forbidden("accessrequests/token", "create"))
		}, "--cluster-role view", "cannot create"},
		"a token without a kubeconfig": {func(s *clitest.Server, _ string) { s.Answer(token, v1alpha1.AccessToken{}) }, "--cluster-role view",
			"the hub returned no kubeconfig for AccessRequest teams/" + clitest.AnnsBlue},
		"another's context": {func(_ *clitest.Server, file string) { addContext(t, file) }, "--cluster-role view",
			"the kubeconfig has a context, cluster or user teams--blue that kubectl hub did not create: rename it, or use another --kubeconfig"},
		"revoke, and no right": {func(s *clitest.Server, _ string) {
			s.Refuse("DELETE "+clitest.AccessRequests+"/"+clitest.AnnsBlue, clitest.Forbidden("accessrequests", "delete"))
		}, "--revoke", "cannot delete"},
		"revoke that lasts": {func(s *clitest.Server, file string) {
			request(waits)(s, file)
			s.Answer("DELETE "+clitest.AccessRequests+"/"+clitest.AnnsBlue, s.Get(clitest.AccessRequests+"/"+clitest.AnnsBlue))
		}, "--revoke", `to go: interrupted: a\x1b[1A`},
	} {
		t.Run(name, func(t *testing.T) {
			s, file := newAccess(t, 1)
			if test.change != nil {
				test.change(s, file)
			}
			ctx := s.InterruptedAt("GET "+clitest.AccessRequests+"/"+clitest.AnnsBlue, 4)
			stdout, stderr, err := clitest.RunIn(ctx, t, file, append([]string{"access", "blue", "-n", "teams"}, strings.Fields(test.args)...)...)
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
	const token = "POST " + clitest.AccessRequests + "/" + clitest.AnnsBlue + "/token"
	stdout := clitest.MustRun(t, file, "access-token", "--request", "teams/"+clitest.AnnsBlue, "--lifetime", "30m")
	var credential clientauthenticationv1.ExecCredential
	if err := json.Unmarshal([]byte(stdout), &credential); err != nil || credential.Kind != "ExecCredential" || credential.Status.Token != clitest.AccessToken ||
		!credential.Status.ExpirationTimestamp.Equal(&metav1.Time{Time: clitest.Expiry}) {
		t.Errorf("%v: %s", err, stdout)
	}
	clitest.Says(t, s.Bodies[token], `"expirationSeconds":1800`)
	s.WantAsked(token)
	for want, err := range map[string]*apierrors.StatusError{
		"AccessRequest teams/" + clitest.AnnsBlue + " does not exist any more: it has expired or was deleted. Request access again with kubectl hub access": apierrors.NewNotFound(schema.GroupResource{}, clitest.AnnsBlue),
		"does not accept the credentials (401): check --context and --kubeconfig":                                                                           apierrors.NewUnauthorized("no"),
		"it has changed since it was granted": apierrors.NewConflict(schema.GroupResource{}, clitest.AnnsBlue, errChanged),
	} {
		s.Refuse(token, err)
		stdout, stderr, got := clitest.Run(t, file, "access-token", "--request", "teams/"+clitest.AnnsBlue)
		if got == nil || stdout+stderr != "" {
			t.Fatalf("%s: it goes on: %q, %q", want, stdout, stderr)
		}
		clitest.Says(t, command.ErrorLine(got), want)
	}
}

var errChanged = errors.New("it has changed since it was granted")
