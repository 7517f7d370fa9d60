// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/base64"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// AWS's quotas: characters without white space in a trust policy and in all inline policies of a role, and the number of tags.
const (
	trustQuota  = 2048
	inlineQuota = 10240
	tagQuota    = 50
)

type role struct {
	id, name, path, arn, description string
	created                          time.Time
	maxSession                       time.Duration
	trust                            *iampolicy.Policy
	policies                         map[string]*iampolicy.Policy
	attached                         []string // ARNs of managed policies
	boundary                         string   // ARN of a managed policy, or ""
	tags                             []api.Tag

	// hiddenReads and hiddenUntil are the remaining time in which the role is not visible.
	hiddenReads int
	hiddenUntil time.Time

	pastPolicies past[policies]
	pastTags     past[[]api.Tag]
}

func iamOperations() []operation {
	read := func(name string, run func(*request) (any, error)) operation {
		return operation{service: "iam", name: name, fails: []string{"NoSuchEntity"}, needs: onRole("iam:" + name), run: run}
	}
	write := func(name string, run func(*request) (any, error), fails ...string) operation {
		op := read(name, run)
		op.write, op.fails = true, append(fails, op.fails...)
		return op
	}
	in := func(op operation, contexts ...func(*request, iampolicy.Context)) operation {
		op.context = func(r *request, ctx iampolicy.Context) {
			for _, context := range contexts {
				context(r, ctx)
			}
		}
		return op
	}
	return []operation{
		in(operation{service: "iam", name: "CreateRole", write: true, needs: createRoleNeeds, run: createRole,
			fails: []string{"EntityAlreadyExists", "MalformedPolicyDocument", "LimitExceeded", "InvalidInput"}}, tagContext, newBoundaryContext),
		read("GetRole", getRole),
		write("DeleteRole", deleteRole, "DeleteConflict"),
		write("UpdateAssumeRolePolicy", updateAssumeRolePolicy, "MalformedPolicyDocument", "LimitExceeded"),
		in(write("PutRolePolicy", putRolePolicy, "MalformedPolicyDocument", "LimitExceeded"), boundaryContext),
		read("GetRolePolicy", getRolePolicy),
		in(write("DeleteRolePolicy", deleteRolePolicy), boundaryContext),
		read("ListRolePolicies", listRolePolicies),
		read("ListAttachedRolePolicies", listAttachedRolePolicies),
		in(write("AttachRolePolicy", attachRolePolicy, "LimitExceeded"), attachedContext, boundaryContext),
		in(write("DetachRolePolicy", detachRolePolicy), attachedContext, boundaryContext),
		in(write("PutRolePermissionsBoundary", putRolePermissionsBoundary), newBoundaryContext),
		in(write("DeleteRolePermissionsBoundary", deleteRolePermissionsBoundary), boundaryContext),
		in(write("TagRole", tagRole, "LimitExceeded", "InvalidInput"), tagContext),
		write("UntagRole", untagRole),
		read("ListRoleTags", listRoleTags),
		{service: "iam", name: "ListRoles", run: listRoles, needs: func(r *request) []right {
			return []right{{"iam:ListRoles", r.who.account.arn("iam", "", "role"+r.pathPrefix())}}
		}},
	}
}

// onRole returns the permission for an action on the role that the request names.
func onRole(action string) func(*request) []right {
	return func(r *request) []right {
		name, a := r.params.Str("RoleName"), r.who.account
		arn := a.arn("iam", "", "role/"+name)
		if known := a.role(name); known != nil {
			arn = known.arn
		}
		return []right{{action, arn}}
	}
}

func createRoleNeeds(r *request) []right {
	path := r.params.Str("Path")
	if path == "" {
		path = "/"
	}
	arn := r.who.account.arn("iam", "", "role"+path+r.params.Str("RoleName"))
	needs := []right{{"iam:CreateRole", arn}}
	if r.params.Has("Tags") {
		needs = append(needs, right{"iam:TagRole", arn})
	}
	return needs
}

// role returns a role, whether it is visible or not. Names that differ only in case are equal.
func (a *Account) role(name string) *role { return a.roles[strings.ToLower(name)] }

// seen returns a visible role. Each read shortens the time in which a new role is not visible.
func (a *Account) seen(name string) *role {
	r := a.role(name)
	if r == nil {
		return nil
	}
	if r.hiddenReads > 0 {
		r.hiddenReads--
		return nil
	}
	if a.server.now().Before(r.hiddenUntil) {
		return nil
	}
	return r
}

// newRole creates a role that is not in the account yet.
func (a *Account) newRole(name, path, trust string) (*role, error) {
	p, err := a.parseTrust(trust)
	if err != nil {
		return nil, err
	}
	r := &role{
		id: newID("AROA"), name: name, path: path, arn: a.arn("iam", "", "role"+path+name),
		created: a.server.now(), maxSession: time.Hour, trust: p, policies: map[string]*iampolicy.Policy{},
	}
	a.server.ids[r.id] = true
	return r, nil
}

func (a *Account) deleteRole(name string) {
	if r := a.role(name); r != nil {
		delete(a.server.ids, r.id)
		delete(a.roles, strings.ToLower(name))
	}
}

func (a *Account) parseTrust(text string) (*iampolicy.Policy, error) {
	if size(text) > trustQuota {
		return nil, api.Fail("LimitExceeded", "Cannot exceed quota for ACLSizePerRole: %d", trustQuota)
	}
	return iampolicy.Parse(text, resolverOf(a.server, a.Partition))
}

// size returns the size of a policy as the quotas count it.
func size(text string) int {
	n := 0
	for _, c := range text {
		if !unicode.IsSpace(c) {
			n++
		}
	}
	return n
}

// find returns the role that the request names. Writes also find a role that is not visible yet.
func (r *request) find() (*role, error) {
	name := r.params.Str("RoleName")
	look := r.who.account.seen
	if r.op.write {
		look = r.who.account.role
	}
	if found := look(name); found != nil {
		return found, nil
	}
	return nil, api.Fail("NoSuchEntity", "The role with name %s cannot be found.", name)
}

func createRole(r *request) (any, error) {
	a, name, path := r.who.account, r.params.Str("RoleName"), r.params.Str("Path")
	boundary := r.params.Str("PermissionsBoundary")
	if r.params.Has("PermissionsBoundary") {
		if err := a.checkBoundary(boundary); err != nil {
			return nil, err
		}
	}
	if path == "" {
		path = "/"
	}
	if a.role(name) != nil {
		return nil, api.Fail("EntityAlreadyExists", "Role with name %s already exists.", name)
	}
	if a.roleQuota > 0 && len(a.roles) >= a.roleQuota {
		return nil, api.Fail("LimitExceeded", "Cannot exceed quota for RolesPerAccount: %d", a.roleQuota)
	}
	tags, err := withTags(nil, r.params.Tags("Tags"))
	if err != nil {
		return nil, err
	}
	created, err := a.newRole(name, path, r.params.Str("AssumeRolePolicyDocument"))
	if err != nil {
		return nil, err
	}
	created.description, created.tags, created.boundary = r.params.Str("Description"), tags, boundary
	created.maxSession = time.Duration(r.params.Num("MaxSessionDuration", 3600)) * time.Second
	created.hiddenReads = r.delay.reads
	if r.delay.until > 0 {
		created.hiddenUntil = r.now().Add(r.delay.until)
	}
	a.roles[strings.ToLower(name)] = created
	return struct{ Role xmlRole }{newXMLRole(a, created)}, nil
}

func getRole(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	shown := newXMLRole(r.who.account, found)
	seen := seenPolicies(r, found)
	shown.AssumeRolePolicyDocument, shown.PermissionsBoundary = api.URIEncode(trustText(r.who.account, seen.trust), true), newXMLBoundary(seen.boundary)
	shown.Tags = seenTags(r, found)
	return struct{ Role xmlRole }{shown}, nil
}

func deleteRole(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	if len(found.attached) > 0 {
		return nil, api.Fail("DeleteConflict", "Cannot delete entity, must detach all policies first.")
	}
	if len(found.policies) > 0 {
		return nil, api.Fail("DeleteConflict", "Cannot delete entity, must delete policies first.")
	}
	r.who.account.deleteRole(found.name)
	return nil, nil
}

func updateAssumeRolePolicy(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	p, err := r.who.account.parseTrust(r.params.Str("PolicyDocument"))
	if err != nil {
		return nil, err
	}
	keepPolicies(r, found)
	found.trust = p
	return nil, nil
}

func putRolePolicy(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	name, text := r.params.Str("PolicyName"), r.params.Str("PolicyDocument")
	p, err := iampolicy.Parse(text, nil)
	if err != nil {
		return nil, err
	}
	total := size(text)
	for other, p := range found.policies {
		if other != name {
			total += size(p.Text)
		}
	}
	if total > inlineQuota {
		return nil, api.Fail("LimitExceeded", "Maximum policy size of %d bytes exceeded for role %s", inlineQuota, found.name)
	}
	keepPolicies(r, found)
	found.policies[name] = p
	return nil, nil
}

// findPolicy returns the inline policy that the request names.
func (r *request) findPolicy() (*role, *iampolicy.Policy, error) {
	found, err := r.find()
	if err != nil {
		return nil, nil, err
	}
	name := r.params.Str("PolicyName")
	all := found.policies
	if !r.op.write {
		all = seenPolicies(r, found).inline
	}
	if p := all[name]; p != nil {
		return found, p, nil
	}
	return nil, nil, api.Fail("NoSuchEntity", "The role policy with name %s cannot be found.", name)
}

func getRolePolicy(r *request) (any, error) {
	found, p, err := r.findPolicy()
	if err != nil {
		return nil, err
	}
	return struct{ RoleName, PolicyName, PolicyDocument string }{found.name, r.params.Str("PolicyName"), api.URIEncode(p.Text, true)}, nil
}

func deleteRolePolicy(r *request) (any, error) {
	found, _, err := r.findPolicy()
	if err != nil {
		return nil, err
	}
	keepPolicies(r, found)
	delete(found.policies, r.params.Str("PolicyName"))
	return nil, nil
}

func listRolePolicies(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	var out struct {
		PolicyNames []string `xml:"PolicyNames>member"`
		page
	}
	out.PolicyNames, out.page, err = paginate(r, slices.Sorted(maps.Keys(seenPolicies(r, found).inline)), func(s string) string { return s })
	return out, err
}

func (r *request) pathPrefix() string {
	if prefix := r.params.Str("PathPrefix"); prefix != "" {
		return prefix
	}
	return "/"
}

func listRoles(r *request) (any, error) {
	a := r.who.account
	var all []*role
	for _, name := range slices.Sorted(maps.Keys(a.roles)) {
		if found := a.seen(name); found != nil && strings.HasPrefix(found.path, r.pathPrefix()) {
			all = append(all, found)
		}
	}
	var out struct {
		Roles []xmlRole `xml:"Roles>member"`
		page
	}
	var some []*role
	var err error
	some, out.page, err = paginate(r, all, func(r *role) string { return r.name })
	for _, found := range some {
		x := newXMLRole(a, found)
		x.Tags, x.PermissionsBoundary = nil, nil // as in AWS, only reads of one role return them
		out.Roles = append(out.Roles, x)
	}
	return out, err
}

type page struct {
	IsTruncated bool
	Marker      string `xml:",omitempty"`
}

// paginate returns the page of a sorted list that the request is for.
func paginate[T any](r *request, all []T, key func(T) string) ([]T, page, error) {
	if marker := r.params.Str("Marker"); marker != "" {
		last, err := base64.RawURLEncoding.DecodeString(marker)
		if err != nil {
			return nil, page{}, api.Fail("ValidationError", "Invalid Marker.")
		}
		for len(all) > 0 && strings.ToLower(key(all[0])) <= strings.ToLower(string(last)) {
			all = all[1:]
		}
	}
	if n := r.params.Num("MaxItems", 100); n < len(all) {
		return all[:n], page{true, base64.RawURLEncoding.EncodeToString([]byte(key(all[n-1])))}, nil
	}
	return all, page{}, nil
}
