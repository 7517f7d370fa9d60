// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"io"
	"slices"
	"strings"
)

// Policy is a document that has been validated.
type Policy struct {
	Text       string
	Statements []Statement
}

type Statement struct {
	allow                                        bool
	actions, notActions, resources, notResources []string
	Principals                                   []Principal
	conditions                                   []condition
}

// Principal is a principal of a trust policy. For a role or user it has the unique ID at the time when the policy was written, as in AWS: another
// role of the same name is a different principal.
type Principal struct {
	Federated string // ARN of the provider
	AWS       string // as written: "*", an account, or an ARN
	ID        string
}

// List is a JSON string or array of strings.
type List []string

func (l *List) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = List{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// values is a list whose elements may be JSON booleans and numbers.
type values []string

func (v *values) UnmarshalJSON(data []byte) error {
	var raw []any
	if json.Unmarshal(data, &raw) != nil {
		var one any
		if err := json.Unmarshal(data, &one); err != nil {
			return err
		}
		raw = []any{one}
	}
	for _, element := range raw {
		switch element.(type) {
		case string, bool, float64:
			*v = append(*v, fmt.Sprint(element))
		default:
			return errors.New("a condition's value is a string or a list of strings")
		}
	}
	return nil
}

type statementJSON struct {
	Sid, Effect                              string
	Action, NotAction, Resource, NotResource List
	Principal                                json.RawMessage
	Condition                                map[string]map[string]values
}

// Resolver returns the unique ID of the role or user with an ARN.
type Resolver func(arn string) (id string, ok bool)

// Parse parses an identity policy or, with a resolver, a role's trust policy.
func Parse(text string, resolve Resolver) (*Policy, error) {
	var doc struct {
		Version, ID string
		Statement   json.RawMessage
	}
	if err := strict([]byte(text), &doc); err != nil {
		return nil, api.Malformed("This policy contains invalid Json: %v", err)
	}
	if doc.Version != "2012-10-17" && doc.Version != "2008-10-17" && doc.Version != "" {
		return nil, api.Malformed("The policy must contain a valid version string")
	}
	raw := bytes.TrimSpace(doc.Statement)
	if len(raw) > 0 && raw[0] == '{' {
		raw = slices.Concat([]byte("["), raw, []byte("]"))
	}
	var list []statementJSON
	if err := strict(raw, &list); err != nil || len(list) == 0 {
		return nil, api.Malformed("Syntax errors in policy: %v", err)
	}
	p := &Policy{Text: text}
	for _, from := range list {
		s, err := newStatement(from, resolve)
		if err != nil {
			return nil, err
		}
		p.Statements = append(p.Statements, *s)
	}
	return p, nil
}

func strict(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("text after the document")
	}
	return nil
}

func newStatement(from statementJSON, resolve Resolver) (*Statement, error) {
	s := &Statement{
		allow: from.Effect == "Allow", actions: from.Action, notActions: from.NotAction,
		resources: from.Resource, notResources: from.NotResource,
	}
	if !s.allow && from.Effect != "Deny" {
		return nil, api.Malformed("Syntax errors in policy: Effect must be Allow or Deny")
	}
	if (len(s.actions) == 0) == (len(s.notActions) == 0) {
		return nil, api.Malformed("Policy statement must contain actions.")
	}
	for _, action := range slices.Concat(s.actions, s.notActions) {
		if service, name, ok := strings.Cut(action, ":"); action != "*" && (!ok || service == "" || name == "") {
			return nil, api.Malformed("Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.")
		}
		if resolve != nil && !strings.HasPrefix(strings.ToLower(action), "sts:") {
			return nil, api.Malformed("AssumeRole policy may only specify STS AssumeRole actions.")
		}
	}
	switch {
	case resolve == nil && from.Principal != nil:
		return nil, api.Malformed("Policy document should not specify a principal.")
	case resolve == nil && (len(s.resources) == 0) == (len(s.notResources) == 0):
		return nil, api.Malformed("Policy statement must contain resources.")
	case resolve != nil && len(s.resources)+len(s.notResources) > 0:
		return nil, api.Malformed("Has prohibited field Resource")
	case resolve != nil && from.Principal == nil:
		return nil, api.Malformed("Missing required field Principal")
	}
	for _, resource := range slices.Concat(s.resources, s.notResources) {
		if resource != "*" && !strings.HasPrefix(resource, "arn:") {
			return nil, api.Malformed("Resource %s must be in ARN format or \"*\".", resource)
		}
	}
	if err := s.setPrincipals(from.Principal, resolve); err != nil {
		return nil, err
	}
	for operator, keys := range from.Condition {
		for key, wanted := range keys {
			c, err := newCondition(operator, key, wanted)
			if err != nil {
				return nil, err
			}
			s.conditions = append(s.conditions, *c)
		}
	}
	return s, nil
}

func (s *Statement) setPrincipals(raw json.RawMessage, resolve Resolver) error {
	if raw == nil {
		return nil
	}
	var all string
	if json.Unmarshal(raw, &all) == nil {
		if all != "*" {
			return api.Malformed("Invalid principal in policy: %q", all)
		}
		s.Principals = []Principal{{AWS: "*"}}
		return nil
	}
	var byType map[string]List
	if err := json.Unmarshal(raw, &byType); err != nil || len(byType) == 0 {
		return api.Malformed("Syntax errors in policy: Principal")
	}
	for kind, names := range byType {
		for _, name := range names {
			p := Principal{}
			switch kind {
			case "Federated":
				p.Federated = name
			case "Service": // no caller here is a service
			case "AWS":
				p.AWS = name
				if name == "*" {
					break
				}
				var ok bool
				p.ID, ok = resolve(name)
				if !ok {
					return api.Malformed("Invalid principal in policy: %q:%q", kind, name)
				}
			default:
				return api.Malformed("Invalid principal in policy: %q:%q", kind, name)
			}
			s.Principals = append(s.Principals, p)
		}
	}
	return nil
}

// Effect is the verdict of policies on a request.
type Effect int

const (
	Silent Effect = iota
	Allowed
	Denied
)

// Decide returns the verdict of identity policies.
func Decide(policies []*Policy, action, resource string, ctx Context) Effect {
	verdict := Silent
	for _, p := range policies {
		for i := range p.Statements {
			s := &p.Statements[i]
			if !s.onAction(action) || !s.onResource(resource) || !s.holds(ctx) {
				continue
			}
			if !s.allow {
				return Denied
			}
			verdict = Allowed
		}
	}
	return verdict
}

// DecideTrust returns the verdict of a role's trust policy. byAccount reports whether it only matches the caller's account, so that the caller's own
// policies must allow the request, too.
func (p *Policy) DecideTrust(action string, ctx Context, is func(Principal) (matches, byAccount bool)) (verdict Effect, byAccount bool) {
	byAccount = true
	for i := range p.Statements {
		s := &p.Statements[i]
		if !s.onAction(action) || !s.holds(ctx) {
			continue
		}
		for _, who := range s.Principals {
			matches, account := is(who)
			switch {
			case !matches:
			case !s.allow:
				return Denied, false
			default:
				verdict, byAccount = Allowed, byAccount && account
			}
		}
	}
	return verdict, byAccount
}

func (s *Statement) onAction(action string) bool {
	lower := func(patterns []string) []string {
		out := make([]string, len(patterns))
		for i, p := range patterns {
			out[i] = strings.ToLower(p)
		}
		return out
	}
	action = strings.ToLower(action)
	if s.notActions != nil {
		return !AnyLike(lower(s.notActions), action)
	}
	return AnyLike(lower(s.actions), action)
}

func (s *Statement) onResource(resource string) bool {
	if s.notResources != nil {
		return !AnyLike(s.notResources, resource)
	}
	return AnyLike(s.resources, resource)
}

func (s *Statement) holds(ctx Context) bool {
	for i := range s.conditions {
		if !s.conditions[i].holds(ctx) {
			return false
		}
	}
	return true
}

func AnyLike(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Like(p, s) })
}

// Like matches AWS's wildcards: * matches any characters, including / and :, and ? matches one.
func Like(pattern, s string) bool {
	star, mark, i, j := -1, 0, 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
