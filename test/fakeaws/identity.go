// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"strings"
)

// identity is a caller: a user, a session of a role or, with neither, the root user of the account.
type identity struct {
	account *Account
	user    *user
	role    *role
	session string
}

func (i identity) isRoot() bool { return i.user == nil && i.role == nil }

// arn returns the ARN that GetCallerIdentity returns.
func (i identity) arn() string {
	switch {
	case i.role != nil:
		return i.account.arn("sts", "", "assumed-role/"+i.role.name+"/"+i.session)
	case i.user != nil:
		return i.user.arn
	}
	return i.account.arn("iam", "", "root")
}

// principal returns the ARN of the user or role itself.
func (i identity) principal() string {
	if i.role != nil {
		return i.role.arn
	}
	return i.arn()
}

func (i identity) userID() string {
	switch {
	case i.role != nil:
		return i.role.id + ":" + i.session
	case i.user != nil:
		return i.user.id
	}
	return i.account.ID
}

func (i identity) policies() []*iampolicy.Policy {
	switch {
	case i.role != nil:
		out := make([]*iampolicy.Policy, 0, len(i.role.policies))
		for _, p := range i.role.policies {
			out = append(out, p)
		}
		for _, arn := range i.role.attached {
			out = append(out, managedPolicy(i.account, arn))
		}
		return out
	case i.user != nil:
		return i.user.policies
	}
	return nil
}

// context returns the condition keys of the caller.
func (i identity) context() iampolicy.Context {
	ctx := iampolicy.Context{}
	if i.account == nil {
		return ctx // no caller: AssumeRoleWithWebIdentity
	}
	kind := "Account"
	switch {
	case i.role != nil:
		kind = "AssumedRole"
		for _, tag := range i.role.tags {
			ctx.Set("aws:PrincipalTag/"+tag.Key, tag.Value)
		}
	case i.user != nil:
		kind = "User"
		ctx.Set("aws:username", i.user.name)
	}
	ctx.Set("aws:PrincipalArn", i.principal())
	ctx.Set("aws:PrincipalAccount", i.account.ID)
	ctx.Set("aws:PrincipalType", kind)
	ctx.Set("aws:userid", i.userID())
	return ctx
}

// may decides by the identity's own policies.
func (i identity) may(action, resource string, ctx iampolicy.Context) iampolicy.Effect {
	if i.isRoot() {
		return iampolicy.Allowed
	}
	return i.bounded(iampolicy.Decide(i.policies(), action, resource, ctx), action, resource, ctx)
}

// is reports whether a trust policy matches this identity, and whether only because it names the whole account.
func (i identity) is(p iampolicy.Principal) (matches, byAccount bool) {
	switch {
	case i.account == nil || p.AWS == "":
		return false, false
	case p.AWS == "*":
		return true, false
	case p.ID == i.account.ID:
		return true, true
	case i.role != nil:
		return p.ID == i.role.id || p.ID == i.userID(), false
	}
	return p.ID == i.userID(), false
}

// resolverOf returns a resolver of ARNs, account numbers and unique IDs to unique IDs. It does not find new roles that are not visible yet. The caller
// holds the lock.
func resolverOf(s *Server, partition string) iampolicy.Resolver {
	return func(name string) (string, bool) {
		if a := s.accounts[name]; a != nil {
			return name, a.Partition == partition
		}
		if s.ids[name] {
			return name, true
		}
		part := strings.SplitN(name, ":", 6)
		if len(part) != 6 || part[0] != "arn" || part[1] != partition || part[3] != "" || s.accounts[part[4]] == nil {
			return "", false
		}
		a := s.accounts[part[4]]
		kind, rest, _ := strings.Cut(part[5], "/")
		switch part[2] + " " + kind {
		case "iam root":
			return a.ID, true
		case "iam user":
			if u := a.users[rest]; u != nil {
				return u.id, true
			}
		case "iam role":
			if r := a.seen(rest[strings.LastIndex(rest, "/")+1:]); r != nil && r.arn == name {
				return r.id, true
			}
		case "sts assumed-role":
			role, session, ok := strings.Cut(rest, "/")
			if r := a.seen(role); r != nil && ok {
				return r.id + ":" + session, true
			}
		}
		return "", false
	}
}

// trustText returns the trust policy like AWS: with the unique ID in place of a deleted principal.
func trustText(a *Account, trust *iampolicy.Policy) string {
	text := trust.Text
	for _, s := range trust.Statements {
		for _, p := range s.Principals {
			id, _, _ := strings.Cut(p.ID, ":")
			if strings.HasPrefix(p.AWS, "arn:") && a.server.accounts[id] == nil && !a.server.ids[id] {
				text = strings.ReplaceAll(text, `"`+p.AWS+`"`, `"`+p.ID+`"`)
			}
		}
	}
	return text
}
