// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"github.com/clusterhub/clusterhub/test/fakeaws/jwt"
	"slices"
	"strings"
	"time"
)

// chainedSession is the longest duration of a role's session that another role's session has assumed.
const chainedSession = time.Hour

func stsOperations() []operation {
	return []operation{
		// Whether a role may be assumed also depends on its trust policy, so assumeRole decides.
		{service: "sts", name: "AssumeRole", free: true, run: assumeRole, needs: func(r *request) []right {
			return []right{{"sts:AssumeRole", r.params.Str("RoleArn")}}
		}},
		{service: "sts", name: "AssumeRoleWithWebIdentity", open: true, free: true, run: assumeRoleWithWebIdentity,
			fails: []string{"InvalidIdentityToken", "ExpiredTokenException", "IDPRejectedClaim"}},
		{service: "sts", name: "GetCallerIdentity", free: true, run: getCallerIdentity},
	}
}

func getCallerIdentity(r *request) (any, error) {
	return struct {
		Arn, Account string
		UserID       string `xml:"UserId" json:"UserId"`
	}{r.who.arn(), r.who.account.ID, r.who.userID()}, nil
}

// target returns the role that the request wants to assume, or nil.
func (r *request) target() (*Account, *role) {
	part := strings.SplitN(r.params.Str("RoleArn"), ":", 6)
	if len(part) != 6 || part[2] != "iam" || r.accounts[part[4]] == nil {
		return nil, nil
	}
	a := r.accounts[part[4]]
	if found := a.seen(part[5][strings.LastIndex(part[5], "/")+1:]); found != nil && found.arn == r.params.Str("RoleArn") {
		return a, found
	}
	return a, nil
}

// plain rejects parameters that would change the session's permissions, rather than ignoring them.
func (r *request) plain() error {
	for _, name := range []string{"Policy", "PolicyArns", "Tags", "TransitiveTagKeys", "SerialNumber", "ProvidedContexts", "SourceIdentity"} {
		if r.params.Has(name) {
			return api.Unsupported(name + " of " + r.op.name)
		}
	}
	return nil
}

func assumeRole(r *request) (any, error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	if r.who.isRoot() {
		return nil, api.Fail("AccessDenied", "Roles may not be assumed by root accounts.")
	}
	refused := api.Fail("AccessDenied", "User: %s is not authorized to perform: sts:AssumeRole on resource: %s", r.who.arn(), r.params.Str("RoleArn"))
	a, wanted := r.target()
	if wanted == nil || a.Partition != r.who.account.Partition {
		return nil, refused
	}
	ctx := r.who.context()
	if id := r.params.Str("ExternalId"); id != "" {
		ctx.Set("sts:ExternalId", id)
	}
	ctx.Set("sts:RoleSessionName", r.params.Str("RoleSessionName"))
	own := r.who.may("sts:AssumeRole", wanted.arn, ctx)
	trust, byAccount := wanted.trust.DecideTrust("sts:AssumeRole", ctx, r.who.is)
	// In the role's own account its trust policy is enough, if it names the caller and not just the account.
	enough := !byAccount && a == r.who.account
	if own == iampolicy.Denied || trust != iampolicy.Allowed || (own != iampolicy.Allowed && !enough) {
		return nil, refused
	}
	longest := wanted.maxSession
	if r.who.role != nil {
		longest = chainedSession
	}
	return r.session(a, wanted, longest)
}

func assumeRoleWithWebIdentity(r *request) (any, error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	refused := api.Fail("AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
	a, wanted := r.target()
	if a == nil {
		return nil, refused
	}
	token, err := jwt.Parse(r.params.Str("WebIdentityToken"))
	if err != nil {
		return nil, api.Fail("InvalidIdentityToken", "The ID Token provided is not a valid JWT: %v", err)
	}
	from := a.providers[strings.TrimPrefix(token.Issuer, "https://")]
	if from == nil || !strings.HasPrefix(token.Issuer, "https://") {
		return nil, api.Fail("InvalidIdentityToken", "No OpenIDConnect provider found in your account for %s", token.Issuer)
	}
	if !slices.ContainsFunc(from.keys, token.SignedBy) {
		return nil, api.Fail("InvalidIdentityToken", "Couldn't retrieve verification key from your identity provider, or the signature is wrong")
	}
	now := r.now()
	if expiry := time.Unix(int64(token.Expiry), 0); !now.Before(expiry) {
		return nil, api.Fail("ExpiredTokenException", "Token expired: current date/time %d must be before the expiration date/time %d",
			now.Unix(), expiry.Unix())
	}
	if before := time.Unix(int64(token.NotBefore), 0); now.Add(api.SigValidity).Before(before) {
		return nil, api.Fail("InvalidIdentityToken", "Token is not yet valid")
	}
	i := slices.IndexFunc(token.Audience, func(audience string) bool { return slices.Contains(from.audiences, audience) })
	if i < 0 {
		return nil, api.Fail("InvalidIdentityToken", "Incorrect token audience")
	}
	audience := token.Audience[i]
	if token.Subject == "" {
		return nil, api.Fail("InvalidIdentityToken", "Missing a required claim: sub")
	}
	if wanted == nil {
		return nil, refused
	}
	ctx := identity{}.context()
	ctx.Set(from.name+":sub", token.Subject)
	ctx.Set(from.name+":aud", audience)
	ctx.Set("aws:FederatedProvider", from.arn)
	ctx.Set("sts:RoleSessionName", r.params.Str("RoleSessionName"))
	trust, _ := wanted.trust.DecideTrust("sts:AssumeRoleWithWebIdentity", ctx, func(p iampolicy.Principal) (bool, bool) {
		return p.Federated == from.arn, false
	})
	if trust != iampolicy.Allowed {
		return nil, refused
	}
	out, err := r.session(a, wanted, wanted.maxSession)
	out.Provider, out.Audience, out.SubjectFromWebIdentityToken = from.arn, audience, token.Subject
	return out, err
}

// session is the response of both operations that assume a role.
type session struct {
	Credentials struct {
		AccessKeyID     string `xml:"AccessKeyId"`
		SecretAccessKey string
		SessionToken    string
		Expiration      xmlTime
	}
	AssumedRoleUser struct {
		Arn           string
		AssumedRoleID string `xml:"AssumedRoleId"`
	}
	SubjectFromWebIdentityToken, Provider, Audience string `xml:",omitempty"`
}

func (r *request) session(a *Account, of *role, longest time.Duration) (session, error) {
	var out session
	duration := time.Duration(r.params.Num("DurationSeconds", 3600)) * time.Second
	if duration > longest {
		if longest < of.maxSession {
			return out, api.Fail("ValidationError", "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining")
		}
		return out, api.Fail("ValidationError", "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
	}
	who := identity{account: a, role: of, session: r.params.Str("RoleSessionName")}
	key, expires := r.newKey(who, duration)
	out.Credentials.AccessKeyID, out.Credentials.SecretAccessKey, out.Credentials.SessionToken = key.AccessKeyID, key.SecretAccessKey, key.SessionToken
	out.Credentials.Expiration = xmlTime(expires)
	out.AssumedRoleUser.Arn, out.AssumedRoleUser.AssumedRoleID = who.arn(), who.userID()
	return out, nil
}
