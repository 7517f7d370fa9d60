// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"cmp"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func withTTL(ttl time.Duration, created time.Time) *v1alpha1.AccessRequest {
	ar := request("a", "1")
	ar.CreationTimestamp = metav1.NewTime(created)
	ar.Spec.TTL = &metav1.Duration{Duration: ttl}
	return ar
}

func TestLifetimeFor_NoTokenOutlivesItsRequest(t *testing.T) {
	now := time.Now()
	if got := lifetimeFor(request("a", "1"), now); got != 30*24*time.Hour {
		t.Errorf("without a ttl: %s", got)
	}
	for name, c := range map[string]struct {
		ttl, age, want time.Duration
	}{
		"the ttl":                    {ttl: 24 * time.Hour, want: 24 * time.Hour},
		"what is left of it":         {ttl: 24 * time.Hour, age: 20 * time.Hour, want: 4 * time.Hour},
		"the least that servers do":  {ttl: 30 * time.Second, want: 10 * time.Minute},
		"little is left":             {ttl: time.Hour, age: 59 * time.Minute, want: 10 * time.Minute},
		"it is over":                 {ttl: time.Hour, age: 2 * time.Hour, want: 10 * time.Minute},
		"a ttl beyond what is asked": {ttl: 365 * 24 * time.Hour, want: 30 * 24 * time.Hour},
	} {
		if got := lifetimeFor(withTTL(c.ttl, now.Add(-c.age)), now); got < c.want-time.Second || got > c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestOutlives(t *testing.T) {
	created := time.Now()
	for name, c := range map[string]struct {
		ttl, lifetime time.Duration
		want          bool
	}{
		"as asked for":                   {ttl: time.Hour, lifetime: time.Hour},
		"a cluster whose clock is ahead": {ttl: time.Hour, lifetime: time.Hour + 30*time.Second},
		"a ttl that was made shorter":    {ttl: time.Hour, lifetime: 24 * time.Hour, want: true},
		"an earlier version's":           {ttl: 30 * time.Second, lifetime: 30 * 24 * time.Hour, want: true},
		"the least that servers do":      {ttl: 30 * time.Second, lifetime: 10 * time.Minute},
	} {
		if got := outlives(withTTL(c.ttl, created), created, created.Add(c.lifetime)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if outlives(request("a", "1"), created, created.Add(365*24*time.Hour)) {
		t.Error("what has no end is outlived")
	}
}

func TestRenewalOf_NotOfATokenThatEndsWithItsRequest(t *testing.T) {
	created := time.Now()
	if got := renewalOf(withTTL(time.Hour, created), created, created.Add(time.Hour)); !got.IsZero() {
		t.Errorf("renewed at %s", got)
	}
	// The cluster gives less than asked for.
	if got := renewalOf(withTTL(24*time.Hour, created), created, created.Add(time.Hour)); got.IsZero() || got.After(created.Add(time.Hour)) {
		t.Errorf("renewed at %s", got)
	}
}

// A token cannot be called back, but its ServiceAccount can go.
func TestEndOldTokens_OnlyThoseThatOutliveTheirRequest(t *testing.T) {
	own := identity{name: "p", environment: "e"}
	now := time.Now()
	for name, c := range map[string]struct {
		ttl   time.Duration
		gone  bool
		other bool
	}{
		"a ttl that was made shorter": {ttl: time.Hour, gone: true},
		"a ttl that was made longer":  {ttl: 60 * 24 * time.Hour},
		"somebody else's account":     {ttl: time.Hour, other: true},
	} {
		ar := withTTL(c.ttl, now)
		account := serviceAccount(own.hash(ar))
		account.UID = "sa"
		if !c.other {
			account.Labels = own.accessLabels(ar)
		}
		in := fake.NewClientBuilder().WithScheme(targetScheme).WithObjects(account).Build()
		to := &target{Client: in, labels: own.accessLabels(ar)}
		r := newAccess(own, nil, nil, nil, &events.FakeRecorder{})
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ar.Namespace, Name: secretName(ar.Name), Labels: own.ownLabels(),
				OwnerReferences: []metav1.OwnerReference{{UID: ar.UID, Controller: new(true)}}},
			Data: map[string][]byte{
				v1alpha1.SecretKeyCreationTimestamp:   []byte(unix(now)),
				v1alpha1.SecretKeyExpirationTimestamp: []byte(unix(now.Add(24 * time.Hour))),
			},
		}
		r.live = fake.NewClientBuilder().WithScheme(hubScheme).WithObjects(secret).Build()
		if err := r.endOldTokens(t.Context(), ar, to, own.hash(ar)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := in.Get(t.Context(), client.ObjectKeyFromObject(account), &corev1.ServiceAccount{})
		if apierrors.IsNotFound(err) != c.gone {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// Whoever brings an issuer must not become whom the cluster gives rights to.
func TestFitToTrust(t *testing.T) {
	subject := func(kind, name string) rbacv1.Subject { return rbacv1.Subject{Kind: kind, Name: name} }
	ask := func(username, groups *string) *v1alpha1.AccessRequest {
		ar := request("a", "1")
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
			Name: "corp", Issuer: "https://corp", UsernamePrefix: username, GroupsPrefix: groups,
			RoleBindings: []v1alpha1.RoleBindings{{
				Subjects: []rbacv1.Subject{subject("User", "ann")}, RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}},
			}},
		}}
		return ar
	}
	nothing := ask(nil, nil)
	nothing.Spec.OIDC.RoleBindings = []v1alpha1.RoleBindings{{Subjects: []rbacv1.Subject{}, RoleRefs: []v1alpha1.RoleRef{}}}
	trusted := ask(new(""), nil)
	rememberTrust(trusted)
	asItIs := func(issuer, name string) *v1alpha1.AccessRequest {
		ar := request("platform", "2")
		ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
			Name: "p", Issuer: issuer, RoleBindings: []v1alpha1.RoleBindings{{Subjects: []rbacv1.Subject{subject("Group", name)}}},
		}}
		return ar
	}
	blue := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	own := identity{name: "p", environment: "e"}
	ours := own.accessLabels(request("other", "2"))
	for name, c := range map[string]struct {
		ar       *v1alpha1.AccessRequest
		bound    []rbacv1.Subject
		byUs     bool
		insecure bool
		refused  bool
		reason   string
		another  *v1alpha1.AccessRequest
	}{
		"its own name":                                         {ar: ask(nil, nil)},
		"prefixes with separators":                             {ar: ask(new("x/"), new("y#"))},
		"no prefix of users":                                   {ar: ask(new(""), nil), refused: true},
		"no prefix of groups":                                  {ar: ask(nil, new("")), refused: true},
		"a prefix without a separator":                         {ar: ask(new("corp"), nil), refused: true},
		"a prefix that ends like a name":                       {ar: ask(new("dev-"), nil), refused: true},
		"a prefix of the cluster":                              {ar: ask(new("system:node:"), nil), refused: true},
		"no role for anybody":                                  {ar: nothing, refused: true, reason: v1alpha1.ReasonConfigurationProblem},
		"by a flag, no prefix":                                 {ar: ask(new(""), new("")), insecure: true},
		"by a flag, but bound":                                 {ar: ask(new(""), nil), insecure: true, bound: []rbacv1.Subject{subject("User", "kubernetes-admin")}, refused: true},
		"what has been trusted":                                {ar: trusted, bound: []rbacv1.Subject{subject("User", "corp:x")}},
		"a prefix that another's users have":                   {ar: ask(nil, nil), bound: []rbacv1.Subject{subject("User", "corp:boss")}, refused: true},
		"a prefix that groups have":                            {ar: ask(nil, nil), bound: []rbacv1.Subject{subject("Group", "corp:admins")}, refused: true},
		"a name that another request gives rights to as it is": {ar: ask(nil, nil), another: asItIs("https://other", "::corp:admins"), refused: true},
		"a name that its own issuer's requests give rights to": {ar: ask(nil, nil), another: asItIs("https://corp", "::corp:admins")},
		"another name of another request":                      {ar: ask(nil, nil), another: asItIs("https://other", "::admins")},
		"a name of another request's issuer":                   {ar: ask(nil, nil), another: asItIs("https://other", "corp:admins")},
		"of a request of ours":                                 {ar: ask(nil, nil), bound: []rbacv1.Subject{subject("User", "corp:boss")}, byUs: true},
		"other subjects": {ar: ask(nil, nil), bound: []rbacv1.Subject{
			subject("User", "corporal"), subject("ServiceAccount", "corp:x"), subject("Group", "system:masters"),
		}},
	} {
		for kind, binding := range map[string]client.Object{
			"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Subjects: c.bound},
			"RoleBinding":        &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}, Subjects: c.bound},
		} {
			if c.byUs {
				binding.SetLabels(ours)
			}
			hub := fake.NewClientBuilder().WithScheme(hubScheme).
				WithIndex(&v1alpha1.AccessRequest{}, byCluster, func(client.Object) []string { return []string{"teams/blue"} })
			if c.another != nil {
				hub.WithObjects(c.another)
			}
			r := newAccess(own, nil, hub.Build(), nil, &events.FakeRecorder{})
			r.anyOIDCPrefix = c.insecure
			to := &target{Client: fake.NewClientBuilder().WithScheme(targetScheme).WithObjects(binding).Build()}
			err := r.fitToTrust(t.Context(), c.ar, blue, to)
			if c.refused != (err != nil) || err != nil && reasonOf(err, "") != cmp.Or(c.reason, reasonOIDCPrefixRefused) {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}

func TestMissingRoles_OnlyThoseThatAreReferredTo(t *testing.T) {
	wanted, err := tokenRights(&v1alpha1.TokenConfig{
		Permissions: []v1alpha1.PermissionsRequest{{Name: "brought"}},
		RoleRefs: []v1alpha1.RoleRef{
			{Kind: "ClusterRole", Name: "view"}, {Kind: "ClusterRole", Name: "typo"}, {Kind: "ClusterRole", Name: "typo"},
			{Kind: "Role", Namespace: "web", Name: "there"}, {Kind: "Role", Namespace: "api", Name: "there"}, {Kind: "ClusterRole", Name: "brought"},
		},
	}, "h")
	if err != nil {
		t.Fatal(err)
	}
	to := &target{Client: fake.NewClientBuilder().WithScheme(targetScheme).WithObjects(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "there"}},
	).Build()}
	got := to.missingRoles(t.Context(), wanted)
	if want := "; not in the cluster, and so without any right as yet: ClusterRole typo, Role api/there"; got != want {
		t.Errorf("got %q", got)
	}
}
