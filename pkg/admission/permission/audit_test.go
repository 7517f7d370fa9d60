// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	at "github.com/clusterhub/clusterhub/pkg/admission/admissiontest"
	"github.com/clusterhub/clusterhub/pkg/admission/permission"
)

const (
	key   = "permission.clusterhub.dev/someplugin"
	label = `create managedclusters.cluster.open-cluster-management.io/label`
)

// audited returns the context of a request, and a function that returns its audit annotations.
func audited(t *testing.T) (context.Context, func() map[string]string) {
	ctx := audit.WithAuditContext(t.Context())
	return ctx, audit.AuditContextFrom(ctx).GetEventAnnotations
}

func TestDecision_IsAudited(t *testing.T) {
	bind := at.Rule("bind", "g", "sets/bind", "s")
	bind.Namespace = "n"
	for want, decide := range map[string]func(*permission.Decision){
		"": func(*permission.Decision) {},
		`allowed: ` + label + ` "a:b", ` + label + ` "*"`: func(d *permission.Decision) {
			d.Uses(at.Label("a:b"))
			d.Uses(at.Label("*"))
			d.Uses(at.Label("*"))
		},
		// Nothing was written, so the permission that the user has was not used.
		`refused: ` + label + ` "a:b"`: func(d *permission.Decision) {
			d.Uses(at.Label("*"))
			d.Lacks("do this", at.Label("a:b"), errors.New("connection refused"))
		},
		`allowed: bind sets.g/bind "s" in "n"`: func(d *permission.Decision) { d.Uses(bind) },
		// The server has not generated the name yet.
		`allowed: delete sets.g`:                     func(d *permission.Decision) { d.Uses(at.Rule("delete", "g", "sets", "")) },
		`allowed: delete sets.g "a\", delete \"b\n"`: func(d *permission.Decision) { d.Uses(at.Rule("delete", "g", "sets", "a\", delete \"b\n")) },
	} {
		ctx, told := audited(t)
		g := permission.NewGuard("SomePlugin")
		d := g.Decide(at.Request{Object: at.Cluster("c1")}.Attributes())
		decide(d)
		err := d.End(ctx)
		if (err != nil) != strings.HasPrefix(want, "refused") {
			t.Errorf("%s: %v", want, err)
		}
		expected := map[string]string{key: want}
		if want == "" {
			expected = nil
		}
		if !maps.Equal(told(), expected) {
			t.Errorf("got  %v\nwant %v", told(), expected)
		}
	}
}

func TestDecision_AuditAnnotationIsShort(t *testing.T) {
	ctx, told := audited(t)
	g := permission.NewGuard("SomePlugin")
	d := g.Decide(at.Request{Object: at.Cluster("c1")}.Attributes())
	for i := range 64 {
		d.Uses(at.Label(fmt.Sprint(strings.Repeat("\x00", 100), i)))
	}
	_ = d.End(ctx)
	if got := told()[key]; len(got) > 1024 || len(got) < 400 || !strings.HasSuffix(got, `" 62 more`) {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}

// TestDecision_DifferentDecisionIsAuditedAgain: the storage decides again when the object was changed concurrently, and the last decision takes effect.
func TestDecision_DifferentDecisionIsAuditedAgain(t *testing.T) {
	ctx, told := audited(t)
	request := at.Request{Object: at.Cluster("c1")}.Attributes()
	decide := func(grants ...string) {
		g := permission.NewGuard("SomePlugin")
		g.SetAuthorizer(&at.Authorizer{Grants: at.Labels(grants...)})
		_ = g.Require(ctx, request, "do this", at.Labels("a", "b")...)
	}
	decide()
	decide()
	decide("b")
	decide("b")
	decide()
	want := map[string]string{key: "refused: " + label + ` "a"`, key + ".2": "allowed: " + label + ` "b"`, key + ".3": "refused: " + label + ` "a"`}
	if !maps.Equal(told(), want) {
		t.Errorf("got  %v\nwant %v", told(), want)
	}
	for range 100 {
		decide("b")
		decide()
	}
	if len(told()) != 4 {
		t.Errorf("%d annotations", len(told()))
	}
}

func TestExcused_AuditsExemptions(t *testing.T) {
	request := at.Request{Object: at.Cluster("c1")}.Attributes()
	for _, c := range []struct {
		who  *at.Authorizer
		want map[string]string
		fail bool
	}{
		{&at.Authorizer{Grants: at.Labels("b")}, map[string]string{key: "allowed: " + label + ` "b"`}, false},
		{&at.Authorizer{}, nil, false},
		{&at.Authorizer{Err: errors.New("connection refused")}, nil, true},
	} {
		ctx, told := audited(t)
		g := permission.NewGuard("SomePlugin")
		g.SetAuthorizer(c.who)
		excused, err := g.Excused(ctx, request, at.Labels("a", "b")...)
		if excused != (c.want != nil) || (err != nil) != c.fail || !maps.Equal(told(), c.want) {
			t.Errorf("%v, %v, %v, want %v", excused, err, told(), c.want)
		}
	}
}

// TestDecision_IsNotAuditedWithoutPolicy verifies that nothing is recorded for requests that the audit policy excludes.
func TestDecision_IsNotAuditedWithoutPolicy(t *testing.T) {
	ctx, told := audited(t)
	if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: auditinternal.LevelNone}, nil); err != nil {
		t.Fatal(err)
	}
	g := permission.NewGuard("SomePlugin")
	g.SetAuthorizer(&at.Authorizer{})
	if err := g.Require(ctx, at.Request{Object: at.Cluster("c1")}.Attributes(), "do this", at.Label("a")); err == nil || told() != nil {
		t.Errorf("%v, %v", err, told())
	}
}
